"""Entries as the page has them: drawn by `holdfast.html`, each in a frame that says where it belongs."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from holdfast.html import draw_entry
from holdfast.view.entries import view_entry
from holdfast.web.elements import Markup, element, join
from holdfast.web.layout import button

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.web.history_pages import HistoryPage, PlacedEntry


def frame(placed: PlacedEntry) -> Markup:
    """Return an entry in its frame."""
    view = view_entry(placed.entry)
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
        data_source=placed.entry.text() if view.role == "user" else None,  # to be changed, as it was written
    )


def _anchor(placed: PlacedEntry) -> str:
    """Return the id of an article: by its line, or, as long as it has none, by its key."""
    if placed.line is not None:
        return f"l{placed.line}"
    return f"now-{blake2b(placed.key.encode(errors='replace'), digest_size=8).hexdigest()}"


def frames(placed: Iterable[PlacedEntry]) -> Markup:
    """Return entries, one behind the other."""
    return join(*map(frame, placed))


def page_of_entries(page: HistoryPage) -> Markup:
    """Return a page of entries, which says where it begins and ends."""
    return element("div", frames(page.entries), class_="entries-page", data_first=page.first, data_end=page.end)
