"""Commands that are imported when they are used. A group knows the name, the module and one line of help of each."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Mapping


class LazyCommand(click.Command):
    """A command that is imported when it is used."""

    def __init__(self, name: str, home: str, short_help: str) -> None:
        super().__init__(name, short_help=short_help, add_help_option=False)
        self._home = home

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Import the command and return its context."""
        module, _, name = self._home.partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command.make_context(info_name, args, parent=parent, **extra)


class LazyGroup(click.Group):
    """A group of such commands, in the order in which they are named: ``name: (home, help)``."""

    def __init__(self, name: str | None = None, *, lazy: Mapping[str, tuple[str, str]], **attrs: Any) -> None:
        commands: dict[str, click.Command] = {command: LazyCommand(command, *about) for command, about in lazy.items()}
        super().__init__(name, commands, **attrs)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in their order."""
        del ctx
        return list(self.commands)
