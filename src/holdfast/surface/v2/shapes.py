"""What only version 2 clients send; `holdfast.surface.shapes` has the rest."""

from __future__ import annotations

from typing import Any

from holdfast.surface.shapes import RestoreSession


class ResumeSession(RestoreSession, kw_only=True):
    """`session/resume`, with or without a replay."""

    replay_from: dict[str, Any] | None = None
