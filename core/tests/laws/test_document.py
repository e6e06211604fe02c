"""A session that is written as JSON and read again is the session it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from core.tests.support.stores import info
from core.tests.support.updates import FEW, encoded, histories, told, values
from holdfast.document.session_document import DocumentWriter, read_document
from holdfast.model import History, SessionState, event_from
from holdfast.redaction.redact import Redactor
from holdfast.view.safe_text import safe_text

if TYPE_CHECKING:
    from typing import Any

    from holdfast.model import Update

times = st.integers(0, 2**51)


def of(sequence: list[Update]) -> History:
    history = History()
    for update in sequence:
        history.apply(event_from(update))
    history.state.clear()  # what is known of the session itself is told apart from its history
    return history


@settings(max_examples=2 * FEW, deadline=None)
@given(
    histories,
    st.none() | st.text(st.characters(codec="utf-8")),
    times,
    times,
    st.dictionaries(st.text(max_size=3), values),
)
def test_written_and_read_again_it_is_the_same(
    sequence: list[Update], title: str | None, created: int, passed: int, memory: dict[str, Any]
) -> None:
    history = of(sequence)
    about = msgspec.structs.replace(
        info(), title=title, created_at=created, updated_at=created + passed, archived=bool(passed % 2)
    )
    usage = {"usage_update": {"sessionUpdate": "usage_update", "used": 1, "size": 2}}
    state = SessionState(options={"a": "b", "c": True}, memory=memory, latest=usage, title_by="agent", forked_from="s")
    writer = DocumentWriter()
    written = "".join((writer.opening(about, state), *map(writer.entry, history), writer.closing(0)))
    assert safe_text(written) == written
    read = read_document(written.encode(), "/here")
    assert told(read.history) == told(history)
    assert msgspec.structs.replace(read.info, messages=0) == msgspec.structs.replace(about, cwd="/here", additional=())
    assert read.cwd == about.cwd
    assert read.state == SessionState(latest=usage, title_by="agent", forked_from="s")
    assert read.reset == (
        "options",
        *(["memory"] if memory else []),
        *(["additionalDirectories"] * bool(about.additional)),
    )


@settings(max_examples=FEW, deadline=None)
@given(histories)
def test_where_there_are_no_secrets_redaction_changes_nothing(sequence: list[Update]) -> None:
    history = of(sequence)
    redactor = Redactor()
    clean = [told_entry for entry in history for told_entry in redactor.entry(entry).updates()]
    assert redactor.count == 0
    assert list(map(encoded, clean)) == list(map(encoded, history.updates()))
