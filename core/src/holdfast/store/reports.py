"""What a store tells about itself: how much is in it, how much space that takes, and whether all is well."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

Level: TypeAlias = Literal["ok", "note", "problem"]


class Size(msgspec.Struct, frozen=True):
    """The space a store takes, in bytes."""

    used: int
    """All of it on disk: the database, its log, and the logs of turns."""
    free: int
    """What of that is empty, and could be given back."""
    shrinks: bool = True
    """Whether a vacuum gives empty space back to the system; a server keeps it, for what is stored next."""


class Directory(msgspec.Struct, frozen=True):
    """The sessions of one working directory."""

    cwd: str
    sessions: int
    messages: int
    updated_at: int


class AgentUsage(msgspec.Struct, frozen=True):
    """What the sessions of an agent with a model have taken, as far as the agent told."""

    agent: str
    model: str
    sessions: int
    messages: int
    tokens: dict[str, int]
    """By kind, as `inputTokens`."""
    context_tokens: int
    """How many tokens are in the contexts of the models, all sessions together."""
    cost: dict[str, float]
    """By currency."""


class Stats(msgspec.Struct, frozen=True):
    """What is in a store. Times are microseconds since 1970, None where there is no session."""

    sessions: int
    archived: int
    blank: int
    """Those that never got a prompt: no list shows them."""
    messages: int
    entries: int
    """Stored lines of histories; what forks share is counted once."""
    history_bytes: int
    texts: int
    """What a search looks through: titles, messages, thoughts, tool calls."""
    oldest: int | None
    newest: int | None
    directories: tuple[Directory, ...]
    """Those with most sessions, archived ones aside."""
    size: Size
    agents: tuple[AgentUsage, ...] = ()
    """By agent and model, those with most sessions first."""


class Finding(msgspec.Struct, frozen=True):
    """What an examination found about one thing."""

    about: str
    level: Level
    says: str
    advice: str = ""
    repair: str = ""
    """By which name the store can put it right, without losing anything; empty where it cannot."""
