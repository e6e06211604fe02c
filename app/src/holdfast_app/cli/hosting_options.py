"""The options of `holdfast serve` that say how agents are started for principals, and what they get (H10, H11)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.server.remote import TokenFile, Workspaces
    from holdfast_app.sandbox import Hosting, Launcher, UseOf

_OPTIONS = (
    click.option(
        "--workspace", "workspaces", metavar="DIR", multiple=True,
        help="A directory in which sessions may be opened; {principal} in it stands for who asks. May be given again.",
    ),
    click.option(
        "--as-user", metavar="USER",
        help="Start each principal's COMMAND as another user of this machine, as agent-{principal}; needs root.",
    ),
    click.option("--bubblewrap", is_flag=True, help="Start COMMAND in a sandbox that shows it only its own files."),
    click.option(
        "--launcher", metavar="TEMPLATE",
        help="Start COMMAND by another one, as 'docker run --rm -i -v {workspace}:{workspace} IMAGE'.",
    ),
    click.option("--home", metavar="DIR", help="The home of each principal's agent, with {principal} in it."),
    click.option(
        "--env", "environment", metavar="NAME[=VALUE]", multiple=True,
        help="A variable for agents behind a launcher: ours, or this value.",
    ),
    click.option(
        "--limit", "process_limits", metavar="NAME=AMOUNT", multiple=True,
        help="What each process of an agent may take: memory=2G, processes=200, files=1024, cpu=3600, file-size=1G.",
    ),
    click.option("--expose", metavar="DIR", multiple=True, help="A directory that agents in the sandbox may read."),
    click.option("--mcp-programs", is_flag=True, help="Start MCP servers that clients name, as this user: trust them."),
    click.option(
        "--audit", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
        help="Where it is noted who did what (default: audit.jsonl beside the store).",
    ),
    click.option("--no-audit", is_flag=True, help="Note nothing."),
)  # fmt: skip


def hosting_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def check_hosting(options: Mapping[str, Any], command: Sequence[str] | None) -> None:
    """Refuse what makes no sense before anything is started."""
    for directory in options["workspaces"]:
        if not Path(directory).is_absolute() or ("{principal}" not in directory and not Path(directory).is_dir()):
            raise click.UsageError(f"--workspace {directory}: name a directory that is there, by its absolute path")
    if has_launcher(options) and command is None:
        raise click.UsageError(
            "a launcher starts a COMMAND for each principal; an agent of ours is one too:"
            " holdfast serve … -- holdfast run FILE --store :memory:"
        )
    if not has_launcher(options) and (options["environment"] or options["process_limits"] or options["expose"]):
        raise click.UsageError("--env, --limit and --expose belong to --as-user, --bubblewrap or --launcher")


def has_launcher(options: Mapping[str, Any]) -> bool:
    """Return whether agents are started by a launcher."""
    return bool(options["as_user"] or options["bubblewrap"] or options["launcher"])


def make_workspaces(options: Mapping[str, Any], tokens: TokenFile, own: Path) -> Workspaces:
    """Return who may work where."""
    from holdfast.model import LOCAL  # noqa: PLC0415
    from holdfast.server.remote import Workspaces  # noqa: PLC0415
    from holdfast.server.remote.names import is_loopback  # noqa: PLC0415

    free = is_loopback(options["host"]) and not has_launcher(options)
    return Workspaces(options["workspaces"], named=tokens.workspaces, own=own, anywhere=(LOCAL,) if free else ())


def make_hosting(
    options: Mapping[str, Any], workspaces: Workspaces, homes: Path, table: Mapping[str, Any], on_use: UseOf | None
) -> Hosting:
    """Return what agents of principals get; `table` is what the file of settings says of it."""
    from holdfast.server.remote.workspaces import Tenant  # noqa: PLC0415
    from holdfast_app.sandbox import Hosting  # noqa: PLC0415

    launcher = _launcher(options, workspaces, homes, table) if has_launcher(options) else None
    hosting = Hosting(workspaces.of, launcher=launcher, on_use=on_use)
    if launcher is not None:
        launcher.try_out()
        workspaces.tenant_of = lambda principal: Tenant(
            launcher.owner(principal), launcher.home_name(principal), hosting.threads(principal)
        )
    return hosting


def _launcher(options: Mapping[str, Any], workspaces: Workspaces, homes: Path, table: Mapping[str, Any]) -> Launcher:
    from holdfast_app.sandbox import Launcher, PrincipalSettings, ProcessLimits  # noqa: PLC0415
    from holdfast_app.sandbox.launcher import parse_template  # noqa: PLC0415

    named = [variable.partition("=") for variable in options["environment"]]
    limits = dict(limit.partition("=")[::2] for limit in options["process_limits"])
    principals = {
        name: PrincipalSettings(one.get("user"), one.get("environment", {}))
        for name, one in table.get("principals", {}).items()
    }
    return Launcher(
        user=options["as_user"],
        sandbox=options["bubblewrap"],
        template=parse_template(options["launcher"]) if options["launcher"] else (),
        home=options["home"] or (None if options["as_user"] else str(homes / "{principal}")),
        environment={**table.get("environment", {}), **{name: value for name, sign, value in named if sign}},
        passed=[name for name, sign, _ in named if not sign],
        read=options["expose"],
        limits=ProcessLimits.parse(limits),
        directories=workspaces.of,
        principals=principals,
    )
