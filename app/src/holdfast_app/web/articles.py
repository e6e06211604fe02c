"""Entries as the page has them: drawn by `holdfast_app.html`, each in a frame that says where it belongs."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from holdfast.view.commands import claimed_terminals, terminals_of
from holdfast.view.entries import view_entry
from holdfast.view.times import with_times
from holdfast_app.html import MAX_MARKDOWN, draw_entry
from holdfast_app.web.elements import Markup, element, join
from holdfast_app.web.layout import button

if TYPE_CHECKING:
    from holdfast.model import Entry, History
    from holdfast.view.entries import EntryView
    from holdfast_app.web.history_pages import HistoryPage, PlacedEntry


def frame(placed: PlacedEntry, view: EntryView) -> Markup:
    """Return an entry in its frame."""
    line = placed.line
    drawn = Markup(draw_entry(view, _anchor(placed)))
    menu = button("Actions for this entry", "menu", class_="entry-menu", data_entry_menu=True) if view.key else None
    return element(
        "section",
        drawn,
        menu,
        class_="placed",
        data_role=view.role,
        data_key=placed.key if placed.entry.entity or line is None else f"/l{line}",
        data_line=line,
        data_provisional=placed.is_provisional,
        data_fork=view.key or None,
        data_source=_source(placed) if view.role == "user" else None,
    )


def _source(placed: PlacedEntry) -> str | None:
    """Return a message as it was written, to be changed; None for a very long one, which is shown just so."""
    text = placed.entry.text()
    return text if len(text) <= MAX_MARKDOWN else None


def _anchor(placed: PlacedEntry) -> str:
    """Return the id of an article: by its line, or, as long as it has none, by its key."""
    if placed.line is not None:
        return f"l{placed.line}"
    return f"now-{blake2b(placed.key.encode(errors='replace'), digest_size=8).hexdigest()}"


def frames(page: HistoryPage, elsewhere: frozenset[str] = frozenset()) -> Markup:
    """Return entries, one behind the other; a terminal stands in the call that shows it, which may be `elsewhere`."""
    claimed = elsewhere | claimed_terminals(page.history)
    listed = [it for it in page.entries if it.entry.entity != "terminal_update" or it.entry.key not in claimed]
    return join(*map(frame, listed, with_times(view_in(each.entry, page.history) for each in listed)))


def view_in(entry: Entry, history: History) -> EntryView:
    """Return what there is to show of an entry, of a call with the terminals that the history has."""
    return view_entry(entry, terminals_of(entry, lambda key: history.get("terminal_update", key)))


def page_of_entries(page: HistoryPage) -> Markup:
    """Return a page of entries, which says where it begins and ends."""
    return element("div", frames(page), class_="entries-page", data_first=page.first, data_end=page.end)
