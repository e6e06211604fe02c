"""What clients send, as far as its shape is checked, the same in every version; what is not named passes unread."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType


class Params(msgspec.Struct, rename="camel", kw_only=True):
    """What all of them may have."""

    meta: dict[str, Any] | None = msgspec.field(name="_meta", default=None)


class Login(Params, kw_only=True):
    """`authenticate` and `auth/login`."""

    method_id: str


class NewSession(Params, kw_only=True):
    """`session/new`: the directories and MCP servers of a session."""

    cwd: str
    additional_directories: list[str] | None = None
    mcp_servers: list[dict[str, Any]] | None = None
    system_prompt: dict[str, Any] | None = None


class RestoreSession(NewSession, kw_only=True):
    """`session/load`, `session/resume` and `session/fork`."""

    session_id: str


class ListSessions(Params, kw_only=True):
    """`session/list`."""

    cwd: str | None = None
    cursor: str | None = None
    archived: str | None = None


class OfSession(Params, kw_only=True):
    """Whatever only names a session, as `session/close`, `session/delete` and `session/cancel`."""

    session_id: str


class SetTitle(Params, kw_only=True):
    """`session/set_title`."""

    session_id: str
    title: str


class SetConfigOption(Params, kw_only=True):
    """`session/set_config_option`; the early draft of version 2 had no `type`."""

    session_id: str
    config_id: str
    value: str | bool
    type: str | UnsetType = UNSET


class Prompt(Params, kw_only=True):
    """`session/prompt`."""

    session_id: str
    prompt: list[dict[str, Any]]


class ListSubscription(Params, kw_only=True):
    """`_session/list/subscribe`."""

    cwd: str


class OfSubscription(Params, kw_only=True):
    """`_session/list/unsubscribe`."""

    subscription_id: str


class OfSessions(Params, kw_only=True):
    """`_session/batch_get`."""

    session_ids: list[str]
