"""What an agent knows of a conversation, found out from what it replays. Pure functions (G5).

Agents replay a past in their own way: other ids, injected texts, messages melted into one, tool calls or the user's
messages left out. So what is compared is words: the user's prompts are looked for in the replayed messages of the user,
in order, and our answers in what the agent replays after them, without regard to white space.

Where it is not clear that the agent knows something, it counts as missing: to tell it twice does little harm, not to
tell it is what users call amnesia (P11).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from holdfast.model import History, event_from
from holdfast.model.kinds import FORKED_EARLIER, TURN_END

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holdfast.model import Entry, Event
    from holdfast_app.wrap.record import AgentRecord

NEEDLE = 400
"""So many characters of a prompt are looked for: some agents cut long ones."""

_INJECTED = re.compile(
    r"<system-reminder>.*?</system-reminder>|<quoted-(?P<mark>[0-9a-f]{16,})>.*?</quoted-(?P=mark)>", re.DOTALL
)
"""What agents put into the user's words, and what we did (`retelling`): neither was said by the user."""

_OUTPUT = frozenset({"agent_message", "tool_call_update"})


class Turn(NamedTuple):
    """A message of the user and all that followed it."""

    id: str
    """The id of the user's message; empty for what was before the first."""
    user: str
    entries: tuple[Entry, ...]

    @property
    def answer(self) -> str:
        """What the agent said in it, normalised."""
        return normal("\n".join(entry.text() for entry in self.entries if entry.entity == "agent_message"))

    @property
    def was_cancelled(self) -> bool:
        """Whether the user has cancelled it."""
        return any(
            entry.members.get("sessionUpdate") == TURN_END and entry.members.get("reason") == "cancelled"
            for entry in self.entries
        )

    @property
    def is_forked_earlier(self) -> bool:
        """Whether a fork begins behind it whose source goes on."""
        return any(entry.members.get("sessionUpdate") == FORKED_EARLIER for entry in self.entries)

    @property
    def has_output(self) -> bool:
        """Whether the agent said or did anything in it."""
        return any(entry.entity in _OUTPUT for entry in self.entries)


class Comparison(NamedTuple):
    """What a comparison has found."""

    missing: Sequence[Turn] = ()
    """The turns of ours that the agent does not know, or not to their end."""
    surplus: Sequence[Event] = ()
    """What happened in the agent's session without us."""
    surplus_turn: str | None = None
    """The last turn of the surplus."""
    knows_nothing: bool = False
    """Whether it knows nothing of what was sent: it is another session, or an empty one."""
    without_users: bool = False
    """Whether it replays no messages of the user although it remembers them."""


def split_turns(history: History) -> list[Turn]:
    """Return the turns of a history."""
    turns: list[Turn] = []
    entries: list[Entry] = []
    for entry in history:
        if entry.entity == "user_message" and entries:
            turns.append(_turn(entries))
            entries = []
        entries.append(entry)
    return [*turns, _turn(entries)] if entries else turns


def _turn(entries: list[Entry]) -> Turn:
    first = entries[0]
    is_prompt = first.entity == "user_message"
    return Turn(first.key if is_prompt else "", first.text() if is_prompt else "", tuple(entries))


def normal(text: str) -> str:
    """Return a text without what agents change in it: white space, and reminders they put in."""
    return " ".join(_INJECTED.sub(" ", text).split())


def compared(turns: Sequence[Turn], record: AgentRecord, replayed: Sequence[Event] | None) -> Comparison:
    """Find out what an agent's session lacks of our turns, and what it has besides.

    `replayed` is what the agent has shown of its past; None where it showed nothing, as on a resume.
    """
    known_to = _index(turns, record.knows)
    if replayed is None:
        return Comparison(missing=turns[max(known_to + 1, _index(turns, record.seeded)) :])
    sent_from = max(_index(turns, record.since), 0)
    theirs = split_turns(_folded(replayed))
    places = _places(turns[sent_from:], theirs, from_end=record.forked_from is not None)
    if not turns:
        return Comparison(surplus=_events(theirs), surplus_turn=next((t.id for t in reversed(theirs) if t.id), None))
    if all(place is None for place in places):
        return _without_prompts(turns, sent_from, known_to, theirs)
    last = max(at for at, place in enumerate(places) if place is not None)
    last_place = next(place for place in reversed(places) if place is not None)
    missing = [
        turn
        for at, (turn, place) in enumerate(zip(turns[sent_from:], places, strict=True))
        if at > last or (sent_from + at > known_to and not _shows(theirs[place or 0 :], turn))
    ]
    surplus = _surplus(theirs[last_place:], turns[sent_from + last :])
    users = [turn.id for turn in surplus if turn.id]
    return Comparison(missing, _events(surplus), users[-1] if users else None)


def _without_prompts(turns: Sequence[Turn], sent_from: int, known_to: int, theirs: Sequence[Turn]) -> Comparison:
    """Compare by what the agent said alone, as none of the user's messages was replayed."""
    sent = turns[sent_from:]
    if not any(normal(turn.user) for turn in sent):
        return Comparison(missing=turns[known_to + 1 :])  # nothing was sent that could be looked for
    replays_users = any(normal(turn.user) for turn in theirs)
    answered = [turn for turn in sent[: known_to + 1 - sent_from] if turn.answer]
    if replays_users or not answered or not _shows(theirs, answered[-1]):
        return Comparison(knows_nothing=True)
    torn = [turn for turn in turns[known_to + 1 :] if not _shows(theirs, turn)]
    return Comparison(missing=torn, without_users=True)


def _places(sent: Sequence[Turn], theirs: Sequence[Turn], *, from_end: bool = False) -> list[int | None]:
    """Return for each turn of ours in which of theirs its prompt stands; several may stand in one.

    They are looked for in order. `from_end` begins with the last: agents exist whose forks replay no beginning
    (opencode), and the user may have sent a prompt twice.
    """
    users = [normal(turn.user) for turn in theirs]
    if from_end:
        users = [user[::-1] for user in reversed(users)]
    places: list[int | None] = []
    place = offset = 0
    for turn in reversed(sent) if from_end else sent:
        needle = normal(turn.user)[:NEEDLE]
        found = _find(users, needle[::-1] if from_end else needle, place, offset) if needle else None
        if found is not None:
            place, offset = found
        places.append(None if found is None else place)
    if from_end:
        return [None if at is None else len(users) - 1 - at for at in reversed(places)]
    return places


def _find(users: Sequence[str], needle: str, place: int, offset: int) -> tuple[int, int] | None:
    for at in range(place, len(users)):
        start = users[at].find(needle, offset if at == place else 0)
        if start >= 0:
            return at, start + len(needle)
    return None


def _shows(theirs: Sequence[Turn], turn: Turn) -> bool:
    """Return whether a replay has all that the agent said in a turn of ours."""
    if not turn.answer:
        return not turn.has_output or any(their.has_output for their in theirs[:1])
    return turn.answer in normal(" ".join(their.answer for their in theirs))


def _surplus(theirs: Sequence[Turn], ours: Sequence[Turn]) -> list[Turn]:
    """Return the turns that happened without us, behind the first of theirs, which has the last prompt of ours.

    What an agent replays in pieces may be a part of our last answer: its words are in ours. Where the first has all of
    our words, none of the others is a part of them, though an agent may say "Done." twice.
    """
    said = normal(" ".join(turn.answer for turn in ours))
    if said and said in theirs[0].answer:
        said = ""
    calls = {entry.key for turn in ours for entry in turn.entries if entry.entity == "tool_call_update"}
    return [turn for turn in theirs[1:] if turn.has_output and not _is_in(turn, said, calls)]


def _is_in(turn: Turn, said: str, calls: set[str]) -> bool:
    if turn.answer:
        return turn.answer in said
    return any(entry.key in calls for entry in turn.entries)


def _folded(events: Iterable[Event]) -> History:
    history = History()
    for event in events:
        history.apply(event)
    return history


def _events(turns: Sequence[Turn]) -> list[Event]:
    return [event_from(update) for turn in turns for entry in turn.entries for update in entry.updates()]


def _index(turns: Sequence[Turn], turn_id: str | None) -> int:
    """Return where a turn stands, -1 where it is not there."""
    if turn_id is None:
        return -1
    return next((at for at, turn in enumerate(turns) if turn.id == turn_id), -1)
