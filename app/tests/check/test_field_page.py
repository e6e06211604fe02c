"""The page about the field says what the verdicts say that are kept, and a run changes only what it has tried."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.tests.field import kept_verdicts
from app.tests.field.agents import declared
from app.tests.field.page import page_text, tables_of
from holdfast_app.check import Outcome
from holdfast_app.check.report import Report, Result, from_json

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_the_page_is_that_of_the_verdicts() -> None:
    assert tables_of(page_text()) == tables_of(page_text(declared()))


def report(date: str, *results: Result) -> Report:
    return Report("/somewhere/bin/pebble acp", "pebble 1", ("spec",), "", "0", results, name="Pebble", date=date)


def test_a_run_of_some_rules_leaves_the_other_verdicts_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_verdicts, "VERDICTS", tmp_path)
    frames = Result(
        "new", 1, Outcome.FAILED, "an id", "no file /home/ada/x.db\nat da/lib/x/y.py all", ("→ {}",), "words", 2.5
    )
    kept_verdicts.keep("pebble", "pebble acp", report("2026-11-16", Result("cancel", 1, Outcome.PASSED), frames))
    again = report("2026-11-18", Result("cancel", 1, Outcome.FAILED, "a", "b"), Result("new", 1, Outcome.NOT_RUN))
    file = kept_verdicts.keep("pebble", "pebble acp", again)
    kept = from_json(file.read_bytes())
    assert (kept.target, kept.date) == ("pebble acp", "2026-11-16 to 2026-11-18")
    assert {row.id: row.outcome for row in kept.results} == {"cancel": Outcome.FAILED, "new": Outcome.FAILED}
    [new] = [row for row in kept.results if row.id == "new"]
    assert (new.seen, new.frames, new.stderr) == ("no file … at … all", (), "")
    assert len(file.read_text().splitlines()) == 4  # a result a line
    whole = report("2026-11-19", *(Result(id_, 1, Outcome.PASSED) for id_ in ("cancel", "new")))
    assert from_json(kept_verdicts.keep("pebble", "pebble acp", whole).read_bytes()).date == "2026-11-19"
