"""The wire types the Holdfast contenders need, typed as the SDKs type theirs: a stand-in for the surfaces."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType


class Wire(msgspec.Struct, rename="camel", omit_defaults=True):
    """Camel case on the wire; what has no value is left out."""


class TextContent(Wire, tag_field="type", tag="text"):
    text: str
    annotations: dict[str, Any] | UnsetType | None = UNSET
    _meta: dict[str, Any] | UnsetType | None = UNSET


class ImageContent(Wire, tag_field="type", tag="image"):
    data: str
    mime_type: str
    uri: str | UnsetType | None = UNSET
    annotations: dict[str, Any] | UnsetType | None = UNSET
    _meta: dict[str, Any] | UnsetType | None = UNSET


class UserMessageChunk(Wire, tag_field="sessionUpdate", tag="user_message_chunk"):
    content: TextContent | ImageContent
    message_id: str | UnsetType | None = UNSET
    _meta: dict[str, Any] | UnsetType | None = UNSET


class AgentMessageChunk(Wire, tag_field="sessionUpdate", tag="agent_message_chunk"):
    content: TextContent | ImageContent
    message_id: str | UnsetType | None = UNSET
    _meta: dict[str, Any] | UnsetType | None = UNSET


class AgentThoughtChunk(Wire, tag_field="sessionUpdate", tag="agent_thought_chunk"):
    content: TextContent | ImageContent
    message_id: str | UnsetType | None = UNSET
    _meta: dict[str, Any] | UnsetType | None = UNSET


class SessionNotification(Wire):
    session_id: str
    update: UserMessageChunk | AgentMessageChunk | AgentThoughtChunk
    _meta: dict[str, Any] | UnsetType | None = UNSET


class InitializeRequest(Wire):
    protocol_version: int
    client_capabilities: dict[str, Any] | UnsetType = UNSET


class InitializeResponse(Wire):
    protocol_version: int


class NewSessionRequest(Wire):
    cwd: str
    mcp_servers: list[dict[str, Any]]


class NewSessionResponse(Wire):
    session_id: str


class PromptRequest(Wire):
    session_id: str
    prompt: list[TextContent | ImageContent]


class PromptResponse(Wire):
    stop_reason: Literal["end_turn", "cancelled"]


class ReadTextFileRequest(Wire):
    session_id: str
    path: str


class ReadTextFileResponse(Wire):
    content: str
