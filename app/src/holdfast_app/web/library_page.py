"""The library: a list of sessions, and what a search finds in them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from holdfast.model import Scope
from holdfast.view.found import MOST_COUNTED, next_limit, places_found, who_said
from holdfast.view.safe_text import safe_line
from holdfast.view.usage import usage_parts
from holdfast_app.web.elements import Markup, element, join
from holdfast_app.web.layout import button, icon, nothing_here, page, plural, time_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from holdfast.model import ArchiveFilter, SessionInfo
    from holdfast.store import Hit, Library
    from holdfast_app.web.activity import Doing
    from holdfast_app.web.requests import PageRequest

ROWS = 50
"""So many sessions are a page of the list."""

HITS = 40
MOST_HITS = 2_000
"""So many places are found at first, and so many at most."""

EXCERPT = 160
"""So many characters around the first hit are shown."""

UNTITLED = "Session without a title"

_STATES = {"running": "running", "requires_action": "waits for you"}


class Filters(NamedTuple):
    """Which sessions are listed."""

    agent: str | None = None
    cwd: str | None = None
    archived: ArchiveFilter = "exclude"

    @property
    def query(self) -> dict[str, str]:
        """What says the same in an address."""
        named = {"agent": self.agent, "cwd": self.cwd, "archived": None if self.archived == "exclude" else "only"}
        return {name: value for name, value in named.items() if value}


class Listed(NamedTuple):
    """A session in the list, with what is not in the store's list."""

    info: SessionInfo
    usage: object
    doing: Doing | None
    is_unread: bool


def filters_of(request: PageRequest) -> Filters:
    """Return the filters that a request names."""
    archived: ArchiveFilter = "only" if request.query.get("archived") == "only" else "exclude"
    return Filters(request.query.get("agent") or None, request.query.get("cwd") or None, archived)


def scope_of(request: PageRequest, filters: Filters) -> Scope:
    """Return whose sessions a request is about: never anybody else's (P12)."""
    return Scope(request.principal, filters.agent)


def library_page(
    rows: Markup, filters: Filters, agents: Sequence[str], directories: Collection[str], *, can_start: Sequence[str]
) -> Markup:
    """Return the page with the first rows of the list."""
    main = element(
        "main",
        element("h1", "Sessions", class_="visually-hidden"),
        _filters(filters, agents, directories),
        element("p", id="found", class_="about", role="status"),
        element("ol", rows, id="rows", class_="rows", aria_label="Sessions"),
        id="main",
    )
    return page(
        "Sessions", main, _new_session(can_start, directories), script="library.js", kind="library", bar=_bar(can_start)
    )


def _bar(can_start: Sequence[str]) -> Markup:
    brand = element(
        "a", element("span", class_="mark", aria_hidden="true"), element("span", "Holdfast"), class_="brand", href="/"
    )
    search = element(
        "form",
        icon("search"),
        element(
            "input",
            type="search",
            name="q",
            id="search",
            placeholder="Search all sessions",
            autocomplete="off",
            aria_label="Search all sessions",
            aria_keyshortcuts="/",
        ),
        element("kbd", "/", aria_hidden="true"),
        role="search",
        class_="search",
        action="/",
        method="get",
    )
    new = None
    if can_start:
        new = element("button", icon("plus"), element("span", "New session"), type="button", id="new", class_="primary")
    tell = button("Tell me when a session waits for me", "bell", id="notify", hidden=True)
    return element("header", brand, search, tell, new, class_="bar")


def _filters(filters: Filters, agents: Sequence[str], directories: Collection[str]) -> Markup:
    options = [element("option", "All agents", value="")]
    options += [element("option", name or "no agent", value=name, selected=name == filters.agent) for name in agents]
    known = [element("option", value=cwd) for cwd in directories]
    states = [
        element(
            "a",
            label,
            href=_address(filters._replace(archived=which)),
            aria_current="true" if filters.archived == which else None,
        )
        for which, label in (("exclude", "Active"), ("only", "Archived"))
    ]
    return element(
        "form",
        element("nav", *states, class_="tabs", aria_label="Which sessions"),
        # (Without "off" a browser that goes back would show what was chosen last, and not what is listed.)
        element("select", *options, name="agent", aria_label="Agent", autocomplete="off"),
        element(
            "input",
            type="search",
            name="cwd",
            value=filters.cwd or "",
            placeholder="Any directory",
            list="directories",
            aria_label="Directory",
            autocomplete="off",
            spellcheck="false",
        ),
        element("datalist", *known, id="directories"),
        element("input", type="hidden", name="archived", value="only") if filters.archived == "only" else None,
        id="filters",
        class_="filters",
        action="/",
        method="get",
    )


def _address(filters: Filters) -> str:
    return f"/?{urlencode(filters.query)}" if filters.query else "/"


def _new_session(can_start: Sequence[str], directories: Collection[str]) -> Markup | None:
    if not can_start:
        return None
    agents = [element("option", name, value=name) for name in can_start]
    known = [element("option", value=cwd) for cwd in directories]
    first = next(iter(directories), str(Path.home()))
    return element(
        "dialog",
        element(
            "form",
            element("h2", "New session", id="new-heading"),
            element("label", element("span", "Agent"), element("select", *agents, name="agent", required=True)),
            element(
                "label",
                element("span", "Directory"),
                element(
                    "input",
                    name="cwd",
                    value=first,
                    list="new-directories",
                    required=True,
                    spellcheck="false",
                    autocomplete="off",
                ),
            ),
            element("datalist", *known, id="new-directories"),
            element("p", class_="error", role="alert"),
            element(
                "div",
                element("button", "Cancel", type="button", data_close=True),
                element("button", "Start", type="submit", class_="primary"),
                class_="actions",
            ),
            method="dialog",
        ),
        id="new-session",
        aria_labelledby="new-heading",
    )


# Rows


def session_rows(listed: Sequence[Listed], filters: Filters, cursor: str | None) -> Markup:
    """Return rows of the list; the last says where the next ones are."""
    rows = [session_row(one) for one in listed]
    if cursor is not None:
        query = urlencode({**filters.query, "cursor": cursor})
        link = element(
            "a", "More sessions", href=f"/?{query}"
        )  # a page of its own, until the script adds the rows here
        rows.append(element("li", link, class_="more", data_more=f"/rows?{query}"))
    return join(*rows)


def session_row(listed: Listed) -> Markup:
    """Return one session of the list."""
    info = listed.info
    activity = "idle" if listed.doing is None else listed.doing.activity
    title = safe_line(info.title or "") or UNTITLED
    facts = [
        element("span", info.agent or "no agent", class_="agent"),
        element("span", short_path(info.cwd), class_="cwd", title=info.cwd),
        element("span", plural(info.messages, "message"), class_="count") if info.messages else None,
        *(element("span", said, class_="usage") for said in usage_parts(listed.usage)[-1:]),
    ]
    return element(
        "li",
        element(
            "a",
            element("span", title, class_="title"),
            element("span", state_label(activity), class_="state"),
            time_of(info.updated_at),
            element("span", *facts, class_="facts"),
            href=f"/sessions/{info.id}",
            class_="row",
        ),
        button(f"Actions for {title}", "menu", class_="row-menu", aria_haspopup="menu", data_menu=info.id),
        id=f"row-{info.id}",
        data_id=info.id,
        data_title=title,
        data_cwd=info.cwd,
        data_agent=info.agent,
        data_state=activity,
        data_archived=info.archived,
        data_unread=listed.is_unread,
    )


def state_label(activity: str) -> str:
    """Return what a session does, in words; nothing where it does nothing."""
    return _STATES.get(activity, "")


def short_path(path: str) -> str:
    """Return a directory as people write it: with ~ for their own."""
    home = str(Path.home())
    return f"~{path[len(home) :]}" if path == home or path.startswith(f"{home}/") else path


# Search


async def search_rows(library: Library, scope: Scope, filters: Filters, words: str, limit: int) -> Markup:
    """Return what a search finds, the words marked; the last row says where more can be seen."""
    limit = min(max(limit, HITS), MOST_HITS)
    hits = await library.search(words, scope, cwd=filters.cwd, limit=limit)
    total = len(hits)
    if total == limit:
        most = max(limit, MOST_COUNTED) + 1
        total = await library.count_places(words, scope, cwd=filters.cwd, most=most)
    found = places_found(len(hits), total)
    if not hits:
        return element("li", nothing_here(f"Nothing has “{words[:80]}” in it."), data_found=found)
    before = [None, *(hit.session.id for hit in hits)]
    rows = [_hit(hit, words, again=hit.session.id == last) for hit, last in zip(hits, before, strict=False)]
    if total > limit:
        more = min(next_limit(limit, total), MOST_HITS)
        query = urlencode({**filters.query, "q": words, "places": more})
        link = element("a", f"Show {more:,} places", href=f"/?{query}") if more > limit else None
        rows.append(element("li", link or f"No more than {limit:,} places are shown.", class_="more"))
    return join(element("li", data_found=found, hidden=True), *rows)


def _hit(hit: Hit, words: str, *, again: bool) -> Markup:
    """Return a place that was found; where it is in the same session `again`, a style sheet need not say which."""
    info = hit.session
    where = who_said(hit.kind).capitalize()
    query = f"?{urlencode({'key': f'{hit.kind}/{hit.key}', 'words': words})}" if hit.key else ""
    return element(
        "li",
        element(
            "a",
            element("span", safe_line(info.title or "") or UNTITLED, class_="title"),
            time_of(info.updated_at),
            element("span", element("span", where, class_="who"), " ", marked(hit.text, hit.marks), class_="excerpt"),
            element(
                "span",
                element("span", info.agent, class_="agent"),
                element("span", short_path(info.cwd), class_="cwd"),
                class_="facts",
            ),
            href=f"/sessions/{info.id}{query}",
            class_="row hit",
        ),
        data_id=info.id,
        class_="again" if again else None,
    )


def marked(text: str, marks: Sequence[tuple[int, int]]) -> Markup:
    """Return the part of a text around its first mark, with all marks in it."""
    begin = max(0, (marks[0][0] if marks else 0) - EXCERPT // 3)
    end = begin + EXCERPT
    pieces: list[Markup | str] = ["…" if begin else ""]
    at = begin
    for first, last in marks:
        if first < at or last > end:
            continue
        pieces += [text[at:first], element("mark", text[first:last])]
        at = last
    return join(*pieces, text[at:end], "…" if len(text) > end else "")


def activity_of(doing: Mapping[str, Doing], session: str) -> Doing | None:
    """Return what a session does, if a program has it open."""
    return doing.get(session)
