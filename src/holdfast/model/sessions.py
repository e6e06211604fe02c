"""What is known of a session besides its conversation."""

from __future__ import annotations

import re
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import msgspec

from holdfast.errors import InvalidParams
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


_UNPAIRED = re.compile("[\ud800-\udfff]")
"""What Python makes of a name that is not in Unicode: it can be neither stored nor sent."""


def checked_roots(cwd: object, additional: object = ()) -> tuple[str, tuple[str, ...]]:
    """Check the directories a client names for a session (B1, B3): the working directory, and the others in order."""
    if not isinstance(cwd, str) or not _is_absolute(cwd):
        raise InvalidParams("cwd must be an absolute path")
    others: dict[str, None] = {}
    if not isinstance(additional, list | tuple):
        raise InvalidParams("additionalDirectories must be a list of absolute paths")
    for path in cast("list[object]", additional):
        if not isinstance(path, str) or not _is_absolute(path):
            raise InvalidParams("additionalDirectories must be a list of absolute paths")
        if path != cwd:
            others[path] = None
    return cwd, tuple(others)


def _is_absolute(path: str) -> bool:
    if "\0" in path or _UNPAIRED.search(path):
        return False
    return PurePosixPath(path).is_absolute() or PureWindowsPath(path).is_absolute()


_MARKUP = re.compile(r"[`*_#>\[\]<|~\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]+|\s+")
"""Also what steers a terminal or turns the direction of a text: a title is shown among others."""


def title_from(text: str) -> str | None:
    """Make a title of a prompt: its first line that says something, without markup, at most 80 characters (B17)."""
    for line in text.splitlines():
        if words := _MARKUP.sub(" ", line).split():
            title = " ".join(words)
            return title if len(title) <= 80 else f"{title[:79].rstrip()}…"
    return None
