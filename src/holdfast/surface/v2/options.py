"""Options and commands in version 2's words: those of the events, which are not changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.model import Update


def lower_options(update: Update) -> list[Update]:
    """Return the options for an answer."""
    return update["configOptions"]


def lower_commands(update: Update) -> list[Update]:
    """Return the commands for an answer."""
    return update["availableCommands"]
