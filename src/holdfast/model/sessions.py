"""What is known of a session besides its conversation."""

from __future__ import annotations

import re
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from holdfast.model.options import OptionValue

ArchiveFilter: TypeAlias = Literal["exclude", "include", "only"]


class SessionInfo(msgspec.Struct, frozen=True):
    """A session as a list shows it. Times are microseconds since 1970, UTC."""

    id: str
    cwd: str
    additional: tuple[str, ...]
    title: str | None
    created_at: int
    updated_at: int
    archived: bool
    messages: int


class Page(NamedTuple):
    """One page of a list of sessions, newest activity first; the last page has no cursor."""

    sessions: tuple[SessionInfo, ...]
    cursor: str | None


class SessionState(msgspec.Struct, omit_defaults=True):
    """What a session remembers from turn to turn, stored as one JSON object."""

    options: dict[str, OptionValue] = {}
    """The options that were set; the others have their defaults."""
    latest: dict[str, Any] = {}
    """By kind, the latest update about the session itself that the agent sent, as usage."""
    permissions: dict[str, bool] = {}
    """Questions the user has answered for ever, and how."""
    memory: dict[str, Any] = {}
    """Whatever the author of the agent wants to remember."""
    title_by: Literal["", "prompt", "agent", "user"] = ""
    """Who gave the title: one that was made from a prompt never replaces another (B17)."""
    forked_from: str | None = None
    interrupted: bool = False
    """Whether the last turn was broken off by the death of its process."""


_MARKUP = re.compile(r"[`*_#>\[\]<|~]+|\s+")


def title_from(text: str) -> str | None:
    """Make a title of a prompt: its first line that says something, without markup, at most 80 characters (B17)."""
    for line in text.splitlines():
        if words := _MARKUP.sub(" ", line).split():
            title = " ".join(words)
            return title if len(title) <= 80 else f"{title[:79].rstrip()}…"
    return None
