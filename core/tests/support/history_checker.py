"""Checks what clients saw against what is stored: no gap, nothing twice, nothing stale, every accepted prompt once.

Clients write down what they are shown as it is shown. Messages are made of numbered words, so that a word that is
missing, doubled or out of place can be named.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Shown(NamedTuple):
    """A part of a message that a client was shown live, and the position it had."""

    session: str
    position: tuple[int, int, int]
    message: str
    text: str


class Loaded(NamedTuple):
    """A history as a client loaded it: messages and their texts."""

    session: str
    messages: list[tuple[str, str]]


class Accepted(NamedTuple):
    """A prompt that was acknowledged; its text is like no other's."""

    session: str
    text: str


@dataclass(slots=True)
class Witness:
    """What one client, or many, have seen, in order."""

    shown: list[list[Shown]] = field(default_factory=list[list[Shown]])
    """For each time a client was attached, what it was shown."""
    loaded: list[Loaded] = field(default_factory=list[Loaded])
    accepted: list[Accepted] = field(default_factory=list[Accepted])


class Stored(NamedTuple):
    """A message as it is stored in the end."""

    message: str
    text: str


def check(witness: Witness, stored: dict[str, list[Stored]]) -> list[str]:
    """Return what is wrong, in words; nothing where all is as it was promised."""
    wrong: list[str] = []
    texts: dict[str, dict[str, str]] = {}
    for session, messages in stored.items():
        texts[session] = {one.message: one.text for one in messages}
        if len(texts[session]) != len(messages):
            wrong.append(f"{session}: a message is stored twice")
        for one in messages:
            wrong += _check_words(session, one)
    wrong += _check_accepted(witness, stored)
    wrong += _check_positions(witness)
    order = {session: {one.message: at for at, one in enumerate(messages)} for session, messages in stored.items()}
    for watched in witness.shown:
        wrong += _check_shown(watched, texts, order)
    for loaded in witness.loaded:
        wrong += _check_loaded(loaded, stored.get(loaded.session, []))
    return wrong


def _check_words(session: str, one: Stored) -> list[str]:
    """Words of an answer are ``NAME.0 NAME.1 …``; find one that is not where it should be."""
    words = one.text.split()
    if "." not in one.text or one.text.startswith("say "):
        return []
    name = words[0].rpartition(".")[0]
    return [
        f"{session}: {one.message} has {word} where {name}.{number} should be"
        for number, word in enumerate(words)
        if word != f"{name}.{number}"
    ][:1]


def _check_accepted(witness: Witness, stored: dict[str, list[Stored]]) -> list[str]:
    wrong: list[str] = []
    for accepted in witness.accepted:
        count = sum(one.text == accepted.text for one in stored.get(accepted.session, []))
        if count != 1:
            wrong.append(f"{accepted.session}: an accepted prompt is stored {count} times: {accepted.text[:40]!r}")
    return wrong


def _check_positions(witness: Witness) -> list[str]:
    """Two clients may be shown the same position, but never something else there: that would be a second writer."""
    wrong: list[str] = []
    seen: dict[tuple[str, Any], Shown] = {}
    for shown in (one for watched in witness.shown for one in watched):
        first = seen.setdefault((shown.session, shown.position), shown)
        if first != shown:
            wrong.append(f"{shown.session}: {first.text!r} and {shown.text!r} were shown at {shown.position}")
    return wrong


def _check_shown(watched: list[Shown], texts: dict[str, dict[str, str]], order: dict[str, dict[str, int]]) -> list[str]:
    wrong: list[str] = []
    heard: dict[tuple[str, str], str] = {}
    last_position: dict[str, tuple[int, int, int]] = {}
    last_at: dict[str, int] = {}
    for shown in watched:
        session, message = shown.session, shown.message
        if message not in texts.get(session, {}):
            wrong.append(f"{session}: {message} was shown and is not stored: {shown.text[:40]!r}")
            continue
        heard[session, message] = heard.get((session, message), "") + shown.text
        if heard[session, message] not in texts[session][message]:
            wrong.append(f"{session}: {message} was shown otherwise than it is stored: {heard[session, message]!r}")
        if shown.position <= last_position.get(session, (0, 0, 0)):
            wrong.append(f"{session}: {shown.position} was shown after {last_position[session]}")
        if order[session][message] < last_at.get(session, 0):
            wrong.append(f"{session}: {message} was shown after a message that is stored behind it")
        last_position[session] = shown.position
        last_at[session] = order[session][message]
    return wrong


def _check_loaded(loaded: Loaded, stored: list[Stored]) -> list[str]:
    """A history that was loaded is the beginning of what is stored; its last message may have gone on."""
    for at, (message, text) in enumerate(loaded.messages):
        if at >= len(stored) or stored[at].message != message:
            return [f"{loaded.session}: {message} was loaded at place {at} and is not stored there"]
        if stored[at].text != text and not (at == len(loaded.messages) - 1 and stored[at].text.startswith(text)):
            return [f"{loaded.session}: {message} was loaded otherwise than it is stored: {text[:40]!r}"]
    return []
