"""The shapes of updates, as the newest protocol version wants them from an agent: what must be there, and as what.

Only what is known is named. Members that are not named here pass unread.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import msgspec

from holdfast.model.content import Audio, EmbeddedResource, Image, ResourceLink, Text

Object: TypeAlias = dict[str, Any]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]


class _Shape(msgspec.Struct, rename="camel", kw_only=True):
    meta: Object | None = msgspec.field(name="_meta", default=None)


class Message(_Shape, kw_only=True):
    """The whole of a message or a thought."""

    message_id: str
    content: list[Object] | None = None


class MessageChunk(_Shape, kw_only=True):
    """One block of a message or a thought."""

    message_id: str
    content: Object


class Location(_Shape, kw_only=True):
    """A file that a tool call is about."""

    path: str
    line: Count | None = None


class ToolCall(_Shape, kw_only=True):
    """Members of a tool call."""

    tool_call_id: str
    name: str | None = None
    title: str | None = None
    kind: str | None = None
    status: str | None = None
    content: list[Object] | None = None
    locations: list[Location] | None = None


class ToolCallChunk(_Shape, kw_only=True):
    """One item of what a tool call shows."""

    tool_call_id: str
    content: Object


class ExitStatus(_Shape, kw_only=True):
    """How a command ended."""

    exit_code: int | None = None
    signal: str | None = None


class Terminal(_Shape, kw_only=True):
    """Members of a terminal."""

    terminal_id: str
    command: str | None = None
    cwd: str | None = None
    output: Object | None = None
    exit_status: ExitStatus | None = None


class TerminalChunk(_Shape, kw_only=True):
    """A piece of what a terminal printed."""

    terminal_id: str
    data: str


class Compaction(_Shape, kw_only=True):
    """A summary that takes the place of what was said before."""

    compaction_id: str
    status: str
    summary: list[Object] | None = None
    error: str | None = None


class CompactionChunk(_Shape, kw_only=True):
    """One block of such a summary."""

    compaction_id: str
    content: Object


class Subagent(_Shape, kw_only=True):
    """Another session that this one has started."""

    session_id: str
    title: str | None = None
    description: str | None = None


class Plan(_Shape, kw_only=True):
    """A plan, whole."""

    plan: Object


class PlanRemoved(_Shape, kw_only=True):
    """The end of a plan."""

    plan_id: str


class PlanEntry(_Shape, kw_only=True):
    """One step of a plan."""

    content: str
    status: str
    priority: str


class PlanItems(_Shape, kw_only=True):
    """A plan made of steps."""

    plan_id: str
    entries: list[PlanEntry]


class PlanMarkdown(_Shape, kw_only=True):
    """A plan written as Markdown."""

    plan_id: str
    content: str


class PlanFile(_Shape, kw_only=True):
    """A plan in a file."""

    plan_id: str
    uri: str


class Command(_Shape, kw_only=True):
    """A slash command."""

    name: str
    description: str


class Commands(_Shape, kw_only=True):
    """All slash commands."""

    available_commands: list[Command]


class ConfigOption(_Shape, kw_only=True):
    """An option of the session."""

    config_id: str
    name: str
    type: str
    current_value: str | bool


class ConfigOptions(_Shape, kw_only=True):
    """All options."""

    config_options: list[ConfigOption]


class Info(_Shape, kw_only=True):
    """What a list shows of the session."""

    title: str | None = None
    updated_at: str | None = None


class Cost(_Shape, kw_only=True):
    """What the session has cost."""

    amount: float
    currency: str


class Usage(_Shape, kw_only=True):
    """How much of the model's context is used."""

    used: Count
    size: Count
    cost: Cost | None = None


class Notice(_Shape, kw_only=True):
    """Something for the user that is not part of the conversation."""

    severity: str
    title: str
    description: str | None = None


class State(_Shape, kw_only=True):
    """Whether the session is at work."""

    state: str


class Content(_Shape, kw_only=True):
    """A content block that a tool call shows."""

    content: Object


class Patch(_Shape, kw_only=True):
    """A diff as text."""

    format: str
    text: str


class Diff(_Shape, kw_only=True):
    """Changes of files that a tool call shows. Version 1 also needs the file's path and its old and new text."""

    changes: list[Object]
    patch: Patch | None = None
    path: str | None = None
    old_text: str | None = None
    new_text: str | None = None


class TerminalReference(_Shape, kw_only=True):
    """A terminal that a tool call shows."""

    terminal_id: str


BLOCKS: dict[str, type] = {
    "text": Text,
    "image": Image,
    "audio": Audio,
    "resource_link": ResourceLink,
    "resource": EmbeddedResource,
}
TOOL_CONTENT: dict[str, type] = {"content": Content, "diff": Diff, "terminal": TerminalReference}
PLANS: dict[str, type] = {"items": PlanItems, "markdown": PlanMarkdown, "file": PlanFile}

UPDATES: dict[str, type] = {
    "user_message": Message,
    "user_message_chunk": MessageChunk,
    "agent_message": Message,
    "agent_message_chunk": MessageChunk,
    "agent_thought": Message,
    "agent_thought_chunk": MessageChunk,
    "session_message": Message,
    "session_message_chunk": MessageChunk,
    "tool_call_update": ToolCall,
    "tool_call_content_chunk": ToolCallChunk,
    "terminal_update": Terminal,
    "terminal_output_chunk": TerminalChunk,
    "compaction_update": Compaction,
    "compaction_summary_chunk": CompactionChunk,
    "subagent_update": Subagent,
    "plan_update": Plan,
    "plan_removed": PlanRemoved,
    "available_commands_update": Commands,
    "config_option_update": ConfigOptions,
    "session_info_update": Info,
    "usage_update": Usage,
    "state_update": State,
    "notice": Notice,
}
"""By kind of update, its shape."""
