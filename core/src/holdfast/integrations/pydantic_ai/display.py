"""How a tool of Pydantic AI is shown to the user: what its metadata say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.integrations.tool_display import ToolDisplay

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic_ai import ToolDefinition

    from holdfast.agent import Turn
    from holdfast.integrations.tool_display import Preview
    from holdfast.model import ToolKind

METADATA_KEY = "holdfast"
"""The member of a tool's metadata that is ours."""


def tool_display(
    *,
    kind: ToolKind = "other",
    title: str = "",
    path: str | None = None,
    remember: str | None = None,
    preview: Preview | None = None,
    asks: Callable[[Turn], bool] | None = None,
) -> dict[str, Any]:
    """Return the metadata of a tool: ``@agent.tool(metadata=tool_display(kind="edit", title="Edit {path}"))``.

    Args:
        kind: What kind of tool it is; editors have an icon for each.
        title: The title of a call, in which ``{name}`` is an argument of it.
        path: The name of the argument that is a path.
        remember: What "always" in an answer is about, in which ``{name}`` is an argument; the tool, if omitted.
        preview: Shows what a call is going to do: ``async def (turn, call, arguments)``.
        asks: Returns whether the user is asked for permission: ``def (turn)``.

    Returns:
        The metadata, for the library's `metadata` argument.

    """
    return {METADATA_KEY: ToolDisplay(kind, title, path, remember, preview, asks)}


def display_of(tool: ToolDefinition | None) -> ToolDisplay:
    """Return how a tool is shown."""
    found = (tool.metadata or {}).get(METADATA_KEY) if tool is not None else None
    return found if isinstance(found, ToolDisplay) else ToolDisplay()
