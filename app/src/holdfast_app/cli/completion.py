"""Completion of command lines by shells: the script they load, and the sessions they are offered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem, ShellComplete, get_completion_class

from holdfast_app.cli.main import COMPLETE

if TYPE_CHECKING:
    from collections.abc import Sequence

SHELLS = ("bash", "zsh", "fish")
OFFERED = 50
"""So many sessions are offered at a time."""


@click.command("completion", short_help="Print what makes your shell complete commands")
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print what makes your shell complete commands and session ids.

    \b
      bash: eval "$(holdfast completion bash)"       in ~/.bashrc
      zsh:  eval "$(holdfast completion zsh)"        in ~/.zshrc
      fish: holdfast completion fish | source        in ~/.config/fish/config.fish
    """  # noqa: D301  (where `\b` stands, click keeps the lines)
    from holdfast_app.cli.commands import holdfast  # noqa: PLC0415  (it names this module)

    kind = get_completion_class(shell)
    assert kind is not None
    # What a shell's own class adds is a check of the shell's version, which needs the shell.
    click.echo(ShellComplete.source(kind(holdfast, {}, "holdfast", COMPLETE)))


def complete_sessions(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> Sequence[CompletionItem]:
    """Return ids of sessions to complete with: the newest, or those that begin with what was typed."""
    import asyncio  # noqa: PLC0415

    from holdfast.errors import HoldfastError  # noqa: PLC0415

    try:
        return asyncio.run(_offered(_ctx.params.get("place"), incomplete))
    except HoldfastError:
        return []


async def _offered(place: str | None, incomplete: str) -> list[CompletionItem]:
    from holdfast.model import Scope  # noqa: PLC0415
    from holdfast.view.safe_text import safe_line  # noqa: PLC0415
    from holdfast_app.cli.store_arguments import opened, short_id  # noqa: PLC0415

    async with opened(place) as store:
        if incomplete:
            given = incomplete if incomplete.startswith("sess_") else f"sess_{incomplete}"
            found = await store.find(given, limit=OFFERED)
        else:
            found = (await store.list(Scope(), cwd=None, archived="include", cursor=None, limit=OFFERED)).sessions
    whole = incomplete.startswith("s")
    return [
        CompletionItem(info.id if whole else short_id(info.id), help=safe_line(info.title or "")[:60]) for info in found
    ]


@click.command("run", add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("agent", nargs=-1, type=click.Path())
def run(agent: tuple[str, ...]) -> int:
    """Complete the file of `holdfast run`, whose command line is parsed in `holdfast_app.cli.main`."""
    from holdfast_app.cli.main import run as run_  # noqa: PLC0415

    return run_(agent)


@click.command("wrap", add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("command", nargs=-1, type=click.Path())
def wrap(command: tuple[str, ...]) -> int:
    """Complete the command of `holdfast wrap`, whose command line is parsed in `holdfast_app.cli.main`."""
    from holdfast_app.cli.main import wrap as wrap_  # noqa: PLC0415

    return wrap_(command)
