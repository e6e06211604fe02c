"""What only version 2 clients send; `holdfast.surface.shapes` has the rest."""

from __future__ import annotations

from typing import Any

from holdfast.surface.shapes import OfSession, RestoreSession


class ResumeSession(RestoreSession, kw_only=True):
    """`session/resume`, with or without a replay."""

    replay_from: dict[str, Any] | None = None


class CancelToolCall(OfSession, kw_only=True):
    """`tool_call/cancel`."""

    tool_call_id: str


class CancelTerminal(OfSession, kw_only=True):
    """`terminal/cancel`."""

    terminal_id: str
