"""What is known of a session besides its conversation."""

from __future__ import annotations

import re
from pathlib import PureWindowsPath
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import msgspec

from holdfast.errors import InvalidParams
from holdfast.model.events import without_lone_surrogates
from holdfast.model.ids import new_id
from holdfast.model.kinds import FORKED_EARLIER
from holdfast.model.options import OptionValue

if TYPE_CHECKING:
    from holdfast.model.events import Update

ArchiveFilter: TypeAlias = Literal["exclude", "include", "only"]


LOCAL = "local"
"""The principal of everything that is not asked for over a network: the user of this machine."""

UNBOUND = ""
"""Stands for the agent of a session that belongs to none yet: one stored before sessions had agents (F6)."""


class Scope(msgspec.Struct, frozen=True):
    """Whose sessions: those of a principal with one agent (and those bound to no agent yet), or with all (F1)."""

    principal: str = LOCAL
    agent: str | None = None
    """None stands for all agents; only the principal itself sees them."""

    def covers(self, principal: str, agent: str) -> bool:
        """Whether a session of that principal and that agent is in it; one bound to no agent is in all (F6)."""
        return principal == self.principal and (self.agent is None or agent in (self.agent, UNBOUND))


class SessionInfo(msgspec.Struct, frozen=True):
    """What a list shows of a session. Times are microseconds since 1970, UTC."""

    id: str
    cwd: str
    additional: tuple[str, ...]
    title: str | None
    created_at: int
    updated_at: int
    archived: bool
    messages: int
    principal: str = LOCAL
    agent: str = UNBOUND
    """The name of the agent it belongs to."""


class Page(msgspec.Struct, frozen=True):
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
    """The permission questions that the user has answered for ever, and whether with yes."""
    memory: dict[str, Any] = {}
    """Whatever the author of the agent wants to remember."""
    title_by: Literal["", "prompt", "agent", "user"] = ""
    """Who gave the title: one that was made from a prompt never replaces another (B17)."""
    forked_from: str | None = None
    is_unopened_fork: bool = False
    """True for a fork until a wrapped agent has opened it: until then `memory` names its source's session there."""
    interrupted: bool = False
    """Whether the last turn was broken off by the death of its process."""
    background: tuple[dict[str, Any], ...] = ()
    """Terminals and tool calls whose work went on beside the turns when this was stored (C13)."""
    cut_turn: bool = False
    """Whether it is a fork that ends inside a turn: that turn's private entries are not in it."""
    model: str = ""
    """The name of the model that its last turn was done with, where its agent tells which it is."""
    tokens: dict[str, int] | None = None
    """How many tokens its turns took, by kind (`inputTokens`), where its agent told; the turns of a fork alone."""

    def add_tokens(self, usage: object) -> None:
        """Add what an agent said that a turn took. What is no count is left out."""
        counts = cast("dict[object, object]", usage) if isinstance(usage, dict) else {}
        total = dict(self.tokens or {})
        for kind, count in counts.items():
            if isinstance(kind, str) and kind.endswith("Tokens") and type(count) is int and count >= 0:
                total[kind] = total.get(kind, 0) + count
        self.tokens = total or None


def encode_state(state: SessionState) -> bytes:
    """Encode a state as it is stored. Texts from agent code may have lone surrogates in them, which become U+FFFD."""
    try:
        return msgspec.json.encode(state)
    except UnicodeEncodeError:
        return msgspec.json.encode(without_lone_surrogates(msgspec.to_builtins(state)))


def forked(
    info: SessionInfo, state: SessionState, *, fork_id: str, now: int, agent: str | None = None
) -> tuple[SessionInfo, SessionState]:
    """Return what is known of a fork when it is made (B15).

    For another agent it is the conversation alone: what was allowed, set or remembered stays behind (F2).
    """
    fork = msgspec.structs.replace(
        info,
        id=fork_id,
        title=_title_of_fork(info.title),
        created_at=now,
        updated_at=now,
        archived=False,
        agent=info.agent if agent is None else agent,
    )
    copied = msgspec.json.decode(encode_state(state), type=SessionState)
    if fork.agent != info.agent:
        copied = SessionState(title_by=copied.title_by)
    copied.forked_from = info.id
    copied.is_unopened_fork = True
    copied.cut_turn = False
    copied.tokens = None
    return fork, copied


FILES_ARE_NEW = "The files are as they are now, not as they were then."


def forked_earlier() -> Update:
    """Return the entry that ends what a fork has of its source, if the source goes on from there."""
    text = f"The conversation goes on from an earlier point here. {FILES_ARE_NEW}"
    return {"sessionUpdate": FORKED_EARLIER, "messageId": new_id("msg"), "text": text}


_UNPAIRED = "[\ud800-\udfff]"
"""Lone surrogates, as Python reads a file name that is not Unicode: they can be neither stored nor sent."""


def checked_roots(cwd: object, additional: object = ()) -> tuple[str, tuple[str, ...]]:
    """Return the directories that a client names for a session: `cwd`, and the others in order (B1, B3).

    Raise `InvalidParams` where one is no absolute path.
    """
    if not isinstance(cwd, str) or not _is_absolute(cwd):
        raise InvalidParams("cwd must be an absolute path")
    others: dict[str, None] = {}
    if not isinstance(additional, list | tuple):
        raise InvalidParams("additionalDirectories must be a list of absolute paths")
    for path in cast("list[object]", additional):
        if not isinstance(path, str) or not _is_absolute(path):
            raise InvalidParams("additionalDirectories must be a list of absolute paths")
        if normal_path(path) != normal_path(cwd):
            others[path] = None
    return normal_path(cwd), tuple(others)


def normal_path(path: str) -> str:
    """Return a path without what makes no other directory of it: `//`, `.` and a slash at its end (B10).

    A `..` stays: where it leads depends on links.
    """
    if not path.startswith("/"):
        return path
    normal = "/" + "/".join(part for part in path.split("/") if part not in ("", "."))
    return path if path == normal else normal  # one string, however many sessions and clients name it


def checked_cwd(cwd: object) -> str:
    """Check the working directory that a client names; raise `InvalidParams` where it is no absolute path."""
    return checked_roots(cwd)[0]


def _is_absolute(path: str) -> bool:
    if "\0" in path or re.search(_UNPAIRED, path):
        return False
    return path.startswith("/") or PureWindowsPath(path).is_absolute()


TITLE_LENGTH = 80

_INVISIBLE = "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]+"
"""What steers a terminal, turns the direction of a text or cannot be encoded: a title is shown among others."""

_HEADING_OR_QUOTE = r"(?:#{1,6}(?=\s|$)\s*|>\s*)+"
_FENCE = r"`{3,}[^`]*$|~{3,}"


def title_from(text: str) -> str | None:
    """Return a title for a prompt: its first line with words, as they were written, at most 80 characters (B17).

    The marks of a Markdown heading or quote before them are left out, and what cannot be seen. None where there are no
    words.
    """
    for line in text.splitlines():
        visible = " ".join(re.sub(_INVISIBLE, " ", line).split())
        title = visible[_end_of(_HEADING_OR_QUOTE, visible) :]
        if not re.match(_FENCE, title) and any(character not in _PUNCTUATION for character in title):
            return _shortened(title)
    return None


_PUNCTUATION = frozenset(" `*_#>~|=+-[]<")
"""What Markdown draws lines and tables with: a line of nothing else says nothing."""


_FORK = re.compile(r" \(fork(?: (\d{1,9}))?\)$")


def _title_of_fork(title: str | None) -> str | None:
    """Return a title that tells a fork from its parent: "Birds (fork)", and of a fork of that "Birds (fork 2)"."""
    if not title:
        return title
    found = _FORK.search(title)
    suffix = " (fork)" if found is None else f" (fork {int(found[1] or 1) + 1})"
    return f"{_shortened(_FORK.sub('', title), TITLE_LENGTH - len(suffix))}{suffix}"


def _end_of(pattern: str, text: str) -> int:
    found = re.match(pattern, text)
    return found.end() if found else 0


def _shortened(title: str, length: int = TITLE_LENGTH) -> str:
    """Cut a title between two words: half of a key would not be recognised as a secret any more (P10)."""
    if len(title) <= length:
        return title
    words = title[:length].rpartition(" ")[0]
    return f"{words or title[: length - 1]}…"
