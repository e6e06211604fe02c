"""What a version 2 client sends, as far as its shape is checked; what is not named here passes unread."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType


class Params(msgspec.Struct, rename="camel", kw_only=True):
    """What all of them may have."""

    meta: dict[str, Any] | None = msgspec.field(name="_meta", default=None)


class Login(Params, kw_only=True):
    """`auth/login`."""

    method_id: str


class Roots(Params, kw_only=True):
    """The directories and MCP servers of a session."""

    cwd: str
    additional_directories: list[str] | None = None
    mcp_servers: list[dict[str, Any]] | None = None


class NewSession(Roots, kw_only=True):
    """`session/new`."""


class LoadSession(Roots, kw_only=True):
    """`session/load`, of the early draft."""

    session_id: str


class ResumeSession(Roots, kw_only=True):
    """`session/resume`."""

    session_id: str
    replay_from: dict[str, Any] | None = None


class ForkSession(Roots, kw_only=True):
    """`session/fork`."""

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
    """`session/set_config_option`; the early draft had no `type`."""

    session_id: str
    config_id: str
    value: str | bool
    type: str | UnsetType = UNSET


class Prompt(Params, kw_only=True):
    """`session/prompt`."""

    session_id: str
    prompt: list[dict[str, Any]]
