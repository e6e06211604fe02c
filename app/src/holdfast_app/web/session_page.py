"""One session: its conversation, and what lies around it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, cast

from holdfast.model import is_object
from holdfast.view.safe_text import safe_line
from holdfast.view.usage import usage_parts
from holdfast_app.web.articles import page_of_entries
from holdfast_app.web.elements import Markup, element, join
from holdfast_app.web.layout import button, icon, page, time_of
from holdfast_app.web.library_page import UNTITLED, short_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.model import SessionInfo, SessionState, Update
    from holdfast_app.web.elements import Child
    from holdfast_app.web.history_pages import HistoryPage


def session_page(
    info: SessionInfo,
    shown: HistoryPage,
    lines: int,
    *,
    state: SessionState,
    can_talk: bool,
    others: Sequence[str],
    trouble: str = "",
    how_to_add: str | None = None,
    at: int | None = None,
) -> Markup:
    """Return the page of a session with a page of its entries; `lines` is how long its history is.

    `others` are the agents that it could be handed to; `trouble` is why its agent cannot be started, though it may be;
    `how_to_add` is the command that lets the page start it, empty if that is not known, None if none does; `at` is the
    line that is looked for.
    """
    title = safe_line(info.title or "") or (UNTITLED if lines else "New session")
    conversation = element(
        "div",
        _more("older", wanted=shown.first > 0),
        page_of_entries(shown),
        _more("newer", wanted=shown.end < lines),
        id="entries",
        class_="entries",
        role="log",
        aria_label="Conversation",
        aria_live="off",
        tabindex=-1,
    )
    main = element(
        "main",
        element(
            "div",
            _about(info, state),
            conversation,
            _first_words(info) if can_talk else None,
            element("div", id="questions", aria_live="assertive"),
            class_="column",
        ),
        id="main",
    )
    body = element(
        "hf-session",
        main,
        _index(),
        element(
            "footer", _jump(), _composer(info) if can_talk else _read_only(info, trouble, how_to_add), class_="talk"
        ),
        data_id=info.id,
        data_lines=lines,
        data_first=shown.first,
        data_end=shown.end,
        data_title=title,
        data_cwd=info.cwd,
        data_agent=info.agent,
        data_archived=info.archived,
        data_talk=can_talk,
        data_others="\n".join(others),
        data_at=at,
    )
    return page(title, body, script="session.js", kind="session", bar=_bar(title))


def _bar(title: str) -> Markup:
    back = element(
        "a",
        icon("back"),
        element("span", "All sessions", class_="visually-hidden"),
        href="/",
        class_="icon-button",
        title="All sessions",
    )
    find = element(
        "form",
        icon("search"),
        element(
            "input",
            type="search",
            id="find",
            placeholder="Find in session",
            aria_label="Find in session",
            autocomplete="off",
        ),
        role="search",
        class_="search find",
    )
    return element(
        "header",
        back,
        element(
            "div",
            element("h1", title, id="title"),
            element("span", id="state", class_="state", role="status"),
            class_="heading",
        ),
        find,
        button("Find in session", "search", id="open-find", class_="narrow", aria_keyshortcuts="/"),
        button("Previous prompt", "up", id="previous-prompt", aria_keyshortcuts="k"),
        button("Next prompt", "next", id="next-prompt", aria_keyshortcuts="j"),
        button("Index of prompts", "list", id="open-index", aria_expanded="false", aria_controls="index"),
        button("Reading mode: hide tools and thoughts", "book", id="reading", aria_pressed="false"),
        button("Actions for this session", "menu", id="session-menu", aria_haspopup="menu"),
        class_="bar",
    )


def _about(info: SessionInfo, state: SessionState) -> Markup:
    """Return what is known of a session, as the exported file says it too."""
    model = state.options.get("model")
    return element(
        "p",
        element("span", info.agent or "no agent", class_="agent"),
        element("span", model, class_="model", title="Model") if isinstance(model, str) else None,
        element("span", short_path(info.cwd), class_="cwd", title=info.cwd),
        element("span", "began ", time_of(info.created_at)),
        element("span", "last active ", time_of(info.updated_at)),
        element("span", usage_line(state.latest.get("usage_update")), id="usage"),
        class_="facts about",
    )


def usage_line(usage: object) -> Markup:
    """Return what a session has used."""
    return join(" · ".join(usage_parts(usage)))


def _more(which: str, *, wanted: bool) -> Markup:
    words = {"older": "Earlier entries", "newer": "Later entries"}[which]
    return element("button", words, type="button", class_="more", data_more=which, hidden=not wanted)


def _index() -> Markup:
    close = button("Close", class_="quiet", data_close=True)
    heading = element("div", element("h2", "Index", id="index-heading"), close, class_="panel-heading")
    return element(
        "aside", heading, element("ol", id="index-list"), id="index", hidden=True, aria_labelledby="index-heading"
    )


def _first_words(info: SessionInfo) -> Markup:
    """Return what stands in a session in which nothing was said yet."""
    return element(
        "div",
        element("p", element("strong", f"What should {info.agent or 'the agent'} do?")),
        element("p", "It works in ", element("code", short_path(info.cwd)), "."),
        element(
            "p",
            *(element("span", element("kbd", key), f" {what}") for key, what in _HOW_TO_WRITE),
            class_="facts",
        ),
        class_="empty",
    )


_HOW_TO_WRITE = (
    ("Enter", "sends"),
    ("Shift Enter", "begins a new line"),
    ("/", "lists commands"),
    ("@", "names files"),
)


def _jump() -> Markup:
    return element(
        "button", icon("down"), element("span", "Latest"), type="button", id="latest", class_="latest", hidden=True
    )


def _read_only(info: SessionInfo, trouble: str, how_to_add: str | None) -> Markup:
    """Return why nobody can write here, and what to do about it."""
    said = element("strong", "You can only read this session.")
    if trouble:
        return _banner(said, f" {info.agent or 'Its agent'} cannot be started. {trouble}")
    if how_to_add is None:
        return _banner(said, " This server has another agent.")
    if how_to_add:
        copy = button("Copy", data_copy=how_to_add, aria_label="Copy the command")
        line = element("div", element("code", how_to_add), copy, class_="command")
        return _banner(said, " The page may not start its agent. To let it, run this, and load the page again:", line)
    is_name = info.agent.isprintable() and not info.agent.startswith("-")
    name = f"{shlex.join(('--name', info.agent))} " if info.agent and is_name else ""
    command, file = f"holdfast web add {name}-- COMMAND", "holdfast web add FILE"
    why = join(" The page may not start its agent. To let it, run ", element("code", command),
               " with the command that starts the agent, or ", element("code", file),
               " with its Python file, and load the page again.")  # fmt: skip
    return _banner(said, why)


def _banner(*inner: Child) -> Markup:
    return element("div", *inner, class_="read-only about")


def _composer(info: SessionInfo) -> Markup:
    agent = info.agent or "the agent"
    return element(
        "form",
        element("div", id="waiting", class_="waiting", aria_live="polite"),
        element("div", id="attached", class_="attached"),
        element(
            "textarea",
            id="prompt",
            name="prompt",
            rows=1,
            placeholder=f"Message {agent}",
            aria_label=f"Message {agent}",
            autocomplete="off",
            aria_autocomplete="list",
            aria_controls="suggestions",
        ),
        element("ul", id="suggestions", class_="suggestions", role="listbox", aria_label="Suggestions", hidden=True),
        element(
            "div",
            element(
                "label",
                icon("attach"),
                element("span", "Attach pictures", class_="visually-hidden"),
                element(
                    "input",
                    type="file",
                    id="pictures",
                    accept="image/png,image/jpeg,image/gif,image/webp",
                    multiple=True,
                ),
                class_="icon-button",
                title="Attach pictures",
            ),
            element("div", id="options", class_="options"),
            button("Stop", "stop", id="stop", class_="danger", hidden=True),
            element(
                "button",
                icon("send"),
                element("span", "Send", class_="visually-hidden"),
                type="submit",
                class_="icon-button primary",
                title="Send",
                id="send",
            ),
            class_="composer-bar",
        ),
        element("p", class_="error", role="alert"),
        id="composer",
        class_="composer",
    )


# What can be set


def draw_options(options: Sequence[Update]) -> Markup:
    """Return the options of a session as controls: modes and models first."""
    order = {"mode": 0, "model": 1, "thought_level": 2}
    known = [option for option in options if is_object(option) and isinstance(option.get("configId"), str)]
    known.sort(key=lambda option: order.get(str(option.get("category")), 3))
    return join(*map(_option, known))


def _option(option: Update) -> Markup:
    name = str(option.get("name") or option["configId"])
    current = option.get("currentValue")
    if isinstance(current, bool):
        box = element("input", type="checkbox", checked=current, data_option=option["configId"])
        return element("label", box, element("span", name), class_="switch", title=option.get("description"))
    inner = [_choice(choice, current) for choice in _items(option.get("options"))]
    return element(
        "label",
        element("span", name, class_="visually-hidden"),
        element("select", *inner, data_option=option["configId"], title=name),
    )


def _choice(choice: Any, current: object) -> Markup | None:
    match choice:
        case {"options": inner}:
            label = str(choice.get("name") or choice.get("groupId") or "")
            return element("optgroup", *(_choice(one, current) for one in _items(inner)), label=label)
        case {"value": str(value)}:
            return element("option", str(choice.get("name") or value), value=value, selected=value == current)
        case _:
            return None


def _items(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
