"""Command lines that name an agent of ours, or the command of another one behind `--`."""

from __future__ import annotations

from typing import cast

import click

_COMMAND = "holdfast.command"


class AgentCommand(click.Command):
    """Keeps what stands behind `--` apart: the command of an agent, not one of our files."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse our own arguments, without the agent's command."""
        if "--" in args:
            at = args.index("--")
            ctx.meta[_COMMAND] = tuple(args[at + 1 :])
            args = args[:at]
        return super().parse_args(ctx, args)


def command_behind(ctx: click.Context, agent: str | None) -> tuple[str, ...] | None:
    """Return the command behind `--`, if there is one; refuse an agent and a command together."""
    command = cast("tuple[str, ...] | None", ctx.meta.get(_COMMAND))
    if command is not None and (agent is not None or not command):
        raise click.UsageError("name an agent, or give a command behind `--`, not both")
    return command
