"""How a tool is shown to the user: its author says so, by values alone. No library is needed for it."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from holdfast.agent import ToolCall, Turn
    from holdfast.model import ToolKind

    Preview: TypeAlias = Callable[[Turn, ToolCall, dict[str, Any]], Awaitable[None]]

_LINE_BREAKS = re.compile(r"\s*[\n\r\v\f\x85\u2028\u2029]\s*")
_BLANKS = re.compile(r"[ \t]+")
_JOINERS = "\u200c\u200d"
"""Invisible, but part of the writing of some languages, and of some emoji."""


class ToolDisplay(NamedTuple):
    """How a tool is shown. `title` and `remember` may name arguments, as ``"Edit {path}"``.

    Attributes:
        kind: what kind of tool it is; editors have an icon for each.
        title: what is done, for people to read; the tool's name, if omitted.

    """

    kind: ToolKind = "other"
    title: str = ""
    path: str | None = None
    """The name of the argument that is a path: the editor may follow the agent there."""
    remember: str | None = None
    """What "always" in an answer is about; the tool, if omitted."""
    preview: Preview | None = None
    """Shows what a call is going to do, before the user is asked for permission and before it is done."""
    asks: Callable[[Turn], bool] | None = None
    """Returns whether the user is asked for permission, when the call is about to be done. (Pydantic AI itself asks for
    calls of tools that require approval, and does them, after all other calls of the same response.)"""

    def titled(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """Return the title of a call: one line, and never cut, because people allow what it says (P13)."""
        filled = _one_line(_filled(self.title, arguments))
        return filled or _one_line(tool.replace("_", " ").capitalize()) or "Tool"

    def subject(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """Return what "always" in an answer is about."""
        filled = _filled(self.remember, arguments) if self.remember else ""
        return f"tool {tool}: {filled}" if filled else f"tool {tool}"


def _filled(template: str, arguments: Mapping[str, Any]) -> str:
    try:
        return template.format_map(arguments)
    except (KeyError, ValueError, IndexError, AttributeError):  # the model has left something out
        return ""


def _one_line(text: str) -> str:
    """Return a text as one line in which nothing is hidden: line breaks and invisible characters are visible."""
    line = _BLANKS.sub(" ", _LINE_BREAKS.sub(" ⏎ ", text.strip()))
    return line if line.isascii() and line.isprintable() else "".join(map(_visible, line))


def _visible(character: str) -> str:
    hidden = unicodedata.category(character) in {"Cc", "Cf", "Co", "Cs"} and character not in _JOINERS
    return f"\\u{ord(character):04x}" if hidden else character
