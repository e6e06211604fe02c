"""Finding sessions among a million, and words among a million messages, against the same among few."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from bench.crowds import build_messages, build_sessions
from bench.model import TIMES, Benchmark, Bound, Figure
from bench.places import built

if TYPE_CHECKING:
    from bench.model import Sample
    from bench.processes import Contender

FEW_SESSIONS, MANY_SESSIONS = 1_000, 1_000_000
FEW_MESSAGES, MANY_MESSAGES = 10_000, 1_000_000
WHERE = [f"{where} page{of}" for of in ("", " of one directory") for where in ("first", "middle", "last")]
SEARCHES = ["rare word", "common word"]


def pages(contender: Contender) -> Sample:
    """Ask for pages of 50 sessions."""
    few = built("sessions-few.db", partial(build_sessions, count=FEW_SESSIONS))
    many = built("sessions-many.db", partial(build_sessions, count=MANY_SESSIONS))
    with contender.start("finding", "pages", str(few), str(many)) as store:
        return store.finish().more


def search(contender: Contender) -> Sample:
    """Ask for the newest 20 messages with a word in them."""
    few = built("messages-few.db", partial(build_messages, count=FEW_MESSAGES))
    many = built("messages-many.db", partial(build_messages, count=MANY_MESSAGES))
    with contender.start("finding", "search", str(few), str(many)) as store:
        return store.finish().more


PAGES = Benchmark(
    name="list",
    title=f"a page among {MANY_SESSIONS:,} sessions, against {FEW_SESSIONS:,}",
    sample=pages,
    figures=tuple(Figure(it, f"{it}, share", TIMES, (Bound("at most", 1.2),)) for it in WHERE),
    who=("ours",),
)

SEARCH = Benchmark(
    name="search",
    title=f"20 hits among {MANY_MESSAGES:,} messages, against {FEW_MESSAGES:,}",
    sample=search,
    figures=tuple(Figure(it, f"{it}, share", TIMES, (Bound("at most", 3),)) for it in SEARCHES),
    who=("ours",),
)
