"""Where scripts say which requirement they test."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from holdfast_app.check.settings import CheckSettings
from holdfast_app.check.trial import Trial
from holdfast_app.check.wire import Wire

Script: TypeAlias = Callable[[Trial], Awaitable[None]]
Observation: TypeAlias = Callable[[Sequence[Wire], CheckSettings, int], None]
"""Looks at every wire of a run, in a version."""

CHECKS: dict[str, Script] = {}
OBSERVATIONS: dict[str, Observation] = {}


def check(requirement: str) -> Callable[[Script], Script]:
    """Register a script for a requirement."""

    def register(script: Script) -> Script:
        CHECKS[requirement] = script
        return script

    return register


def observation(requirement: str) -> Callable[[Observation], Observation]:
    """Register what looks at all that was said for a requirement."""

    def register(look: Observation) -> Observation:
        OBSERVATIONS[requirement] = look
        return look

    return register
