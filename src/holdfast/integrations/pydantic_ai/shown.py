"""How a tool is shown: its author says so in the tool's metadata, by values alone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from pydantic_ai import ToolDefinition

    from holdfast.agent import ToolCall, Turn
    from holdfast.model import ToolKind

    Preview: TypeAlias = Callable[[Turn, ToolCall, dict[str, Any]], Awaitable[None]]

KEY = "holdfast"
"""The member of a tool's metadata that is ours."""

MAX_TITLE = 120
"""A longer title is cut."""

_BLANK = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")


class Shown(NamedTuple):
    """How a tool is shown. `title` and `remember` may name arguments, as ``"Edit {path}"``."""

    kind: ToolKind = "other"
    title: str = ""
    path: str | None = None
    """The name of the argument that is a path: the editor may follow the agent there."""
    remember: str | None = None
    """What an answer given for ever is about; the tool, unless said otherwise."""
    preview: Preview | None = None
    """Shows what a call is going to do, before the user is asked for permission and before it is done."""
    asks: Callable[[Turn], bool] | None = None
    """Whether the user is asked for permission when the call's turn has come. (Calls of tools that Pydantic AI knows to
    require approval are asked for, and done, after all others of the same response.)"""

    def titled(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """Give the title of a call."""
        return _line(_filled(self.title, arguments)) or _line(tool.replace("_", " ").capitalize()) or "Tool"

    def subject(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """Say what an answer given for ever is about."""
        filled = _filled(self.remember, arguments) if self.remember else ""
        return f"tool {tool}: {filled}" if filled else f"tool {tool}"


def shown(
    *,
    kind: ToolKind = "other",
    title: str = "",
    path: str | None = None,
    remember: str | None = None,
    preview: Preview | None = None,
    asks: Callable[[Turn], bool] | None = None,
) -> dict[str, Any]:
    """Make the metadata of a tool: ``@agent.tool(metadata=shown(kind="edit", title="Edit {path}", path="path"))``."""
    return {KEY: Shown(kind, title, path, remember, preview, asks)}


def shown_of(tool: ToolDefinition | None) -> Shown:
    """Find how a tool is shown."""
    found = (tool.metadata or {}).get(KEY) if tool is not None else None
    return found if isinstance(found, Shown) else Shown()


def _filled(template: str, arguments: Mapping[str, Any]) -> str:
    try:
        return template.format_map(arguments)
    except (KeyError, ValueError, IndexError, AttributeError):  # the model has left something out
        return ""


def _line(text: str) -> str:
    line = _BLANK.sub(" ", text).strip()
    return line if len(line) <= MAX_TITLE else f"{line[: MAX_TITLE - 1]}…"
