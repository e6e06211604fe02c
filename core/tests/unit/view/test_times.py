"""When something began whose id does not say it."""

from __future__ import annotations

from holdfast.view.entries import EntryView
from holdfast.view.times import LONGEST, MINUTE, with_times

NOON = 29_000_000 * MINUTE


def view(role: str, at: int | None = None) -> EntryView:
    return EntryView(role, "", "", "", (), at=at)  # pyright: ignore[reportArgumentType]  (a role is one of few words)


def times(*views: EntryView) -> list[tuple[int | None, int | None]]:
    return [(each.at, each.until) for each in with_times(views)]


def test_what_lies_between_two_times_of_one_minute_began_in_it() -> None:
    said = times(view("user", NOON), view("tool"), view("plan"), view("agent", NOON + 5))
    assert said == [(NOON, None), (NOON, None), (NOON, None), (NOON + 5, None)]


def test_between_two_minutes_both_are_told() -> None:
    later = NOON + 3 * MINUTE
    said = times(view("user", NOON), view("tool"), view("agent", later), view("tool"), view("agent", later + MINUTE))
    assert said[1] == (NOON, later) and said[3] == (later, later + MINUTE)


def test_nothing_is_said_across_turns_hours_and_clocks_that_went_back() -> None:
    assert times(view("user", NOON), view("tool"), view("note"), view("user", NOON + 9))[1] == (None, None)
    assert times(view("user", NOON), view("tool"), view("user", NOON + 9))[1] == (None, None)
    assert times(view("note"), view("tool"), view("agent", NOON))[1] == (None, None)
    assert times(view("user", NOON), view("tool"), view("agent", NOON + LONGEST + 1))[1] == (None, None)
    assert times(view("user", NOON), view("tool"), view("agent", NOON - 1))[1] == (None, None)
