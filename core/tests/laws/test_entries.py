"""A history that is read entry by entry is the history that it is when it is read at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from core.tests.support.coroutines import run_alone
from core.tests.support.stores import NOTHING, info
from core.tests.support.updates import FEW, encoded, histories
from holdfast.format import Line, fold, lines_of
from holdfast.model import SessionState
from holdfast.store import open_store
from holdfast.store.entries import read_entries

if TYPE_CHECKING:
    from holdfast.model import Update

few = settings(max_examples=FEW // 2, deadline=None)


@few
@given(st.lists(histories, max_size=3), histories, st.integers(0, 9))
def test_read_one_by_one_or_at_once_it_is_the_same(turns: list[list[Update]], running: list[Update], last: int) -> None:
    sealed = [line.body for turn in turns for line in lines_of(fold(map(encoded, turn), complete=False))]
    tail = [encoded(update) for update in running]
    whole = fold([*sealed, *tail])
    expected = [encoded(list(entry.updates())) for entry in whole]

    async def read() -> None:
        store = await open_store(":memory:")
        try:
            claim = await store.create(info(), SessionState())
            await store.begin(claim, [], NOTHING)
            await store.seal(claim, [Line(line, "") for line in sealed], NOTHING, messages=0)
            await store.begin(claim, tail, NOTHING)
            seen = await store.snapshot(claim.session)
            found = [entry async for entry in read_entries(store, seen)]
            assert [encoded(list(entry.entry.updates())) for entry in found] == expected
            assert [entry.number for entry in found] == list(range(1, len(expected) + 1))
            some = [entry async for entry in read_entries(store, seen, last=last)]
            assert [entry.number for entry in some] == [entry.number for entry in found][-last or len(found) :]
        finally:
            await store.close()

    run_alone(read())
