"""Entries of a conversation as articles, each with an anchor; what is long and rarely read is folded."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from holdfast.model import TOOL_KINDS, TOOL_STATUSES
from holdfast.view.transcript import HEADINGS
from holdfast_app.html.code import draw_code
from holdfast_app.html.diffs import draw_diff
from holdfast_app.html.escaping import Html, escaped, escaped_line, is_web_address, web_link
from holdfast_app.html.terminal import draw_terminal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.view.blocks import Call
    from holdfast.view.entries import EntryView, Part

MAX_OPEN = 8_000
"""A change of more characters is folded until the reader opens it."""

_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")
_TERMINAL = re.compile(r"Terminal ([\w.-]{1,100})")
_FOLDED = frozenset({"thought", "tool", "terminal", "other"})
"""Roles whose entries are folded until the reader opens them."""

_STEPS = {"completed": ("☑", "done"), "in_progress": ("▸", "at work"), "cancelled": ("☒", "cancelled")}


def draw_entry(view: EntryView, anchor: str) -> Html:
    """Return an entry as an article. `anchor` is its id, our own word and no stranger's."""
    changed = {part.label for part in view.parts if part.kind == "diff"}
    body = draw_parts(part for part in view.parts if part.kind != "remark" or part.text not in changed)
    if view.role in _FOLDED:
        inner = _folded(view, anchor, body)
    elif view.role == "note":
        inner = f"<p>{_title(view)}{draw_time(view.at, view.until)}{_link(anchor)}</p>\n{body}"
    else:
        inner = f'<h2 class="who">{_title(view)}{draw_time(view.at, view.until)}{_link(anchor)}</h2>\n{body}'
    return Html(f'<article class="entry {view.role}"{_facts(view)} id="{escaped(anchor)}">\n{inner}</article>\n')


def draw_call(call: Call) -> Html:
    """Return all that is known of a tool call, as for a question whether it is permitted (P13)."""
    kind = f'<span class="kind">{escaped_line(call.kind.replace("_", " "))}</span> ' if call.kind else ""
    places = "".join(f"<li><code>{escaped_line(place)}</code></li>" for place in call.locations)
    listed = f'<ul class="locations">{places}</ul>\n' if places else ""
    failed = f'<p class="about">{escaped_line(call.exit_status)}</p>\n' if call.exit_status else ""
    title = f'<p class="call">{kind}<strong>{escaped_line(call.title)}</strong></p>\n'
    return Html(f"{title}{listed}{draw_parts(call.parts)}{failed}")


def draw_parts(parts: Iterable[Part]) -> Html:
    """Return what an entry says, part by part; the steps of a plan are one list."""
    written: list[str] = []
    steps: list[str] = []
    for part in parts:
        if part.kind == "step":
            steps.append(_step(part))
            continue
        if steps:
            written.append(_list(steps))
            steps = []
        written.append(draw_part(part))
    if steps:
        written.append(_list(steps))
    return Html("".join(written))


def draw_part(part: Part) -> Html:
    """Return one part of what an entry says."""
    match part.kind:
        case "prose":
            from holdfast_app.html.markdown import draw_markdown  # noqa: PLC0415  (a page without messages needs none)

            return Html(f'<div class="prose">\n{draw_markdown(part.text)}</div>\n')
        case "code" if part.runs:
            return draw_terminal(part.runs)
        case "code":
            return draw_code(part.text, part.label)
        case "diff":
            return draw_diff(part.text, part.label)
        case "link":
            return _address(part)
        case "image" if part.text in _IMAGES and _BASE64.fullmatch(part.label):
            return Html(f'<p><img alt="Image" src="data:{part.text};base64,{part.label}"></p>\n')
        case "image":
            return Html(f'<p class="about">Image: {escaped_line(part.text)}</p>\n')
        case _:
            return _remark(part.text)


def draw_time(at: int | None, until: int | None = None) -> Html:
    """Return when an entry began, to the minute, after a space; nothing where that is not known.

    With `until` it began between the two.
    """
    if at is None:
        return Html("")
    latest = "" if until is None else f'<span class="at">to</span> {draw_time(until).lstrip()}'
    exact = datetime.fromtimestamp(at // 1_000_000, UTC).isoformat().replace("+00:00", "Z")
    return Html(f' <time class="at" datetime="{exact}">{exact[:10]} {exact[11:16]} UTC</time>{latest}')


def _facts(view: EntryView) -> str:
    """Return attributes by which a style sheet tells tool calls apart: words of the protocol, and no others."""
    kind = f' data-kind="{view.tool_kind}"' if view.tool_kind in TOOL_KINDS else ""
    status = f' data-status="{view.tool_status}"' if view.tool_status in TOOL_STATUSES else ""
    return kind + status


def _folded(view: EntryView, anchor: str, body: str) -> str:
    changes = [part for part in view.parts if part.kind == "diff"]
    shown = " open" if changes and sum(len(part.text) for part in changes) <= MAX_OPEN else ""
    name = f' id="terminal-{view.terminal}"' if _TERMINAL.fullmatch(f"Terminal {view.terminal}") else ""
    heading, link = (
        f"<h3>{_title(view)}</h3>{draw_time(view.at, view.until)}",
        _link(anchor),
    )  # beside it: nothing that can be opened holds a link
    if not body:
        return f'<div class="summary"{name}>{heading}</div>{link}\n'
    return f"<details{name}{shown}>\n<summary>{heading}</summary>\n{body}</details>{link}\n"


def _title(view: EntryView) -> str:
    who = f'<span class="role">{escaped(HEADINGS[view.role])}</span>'
    if view.role == "note":
        who = f'<span class="title">{escaped_line(view.title)}</span>'
    elif view.title:
        who += f'<span class="colon">: </span><span class="title">{escaped_line(view.title)}</span>'
    return f"{who} {_status(view)}" if view.status else who


def _status(view: EntryView) -> str:
    """Return the status in words, each by itself: a style sheet that says it otherwise can leave them out."""
    kinds = 1 if view.tool_kind not in ("", "other") else 0  # what is done stands before how far it is
    names = ["what"] * kinds + ["word"] * 2
    words = zip(names, view.status.split(", ", kinds), strict=False)
    said = '<span class="bracket">, </span>'.join(
        f'<span class="{name}">{escaped_line(word)}</span>' for name, word in words
    )
    return f'<span class="status"><span class="bracket">(</span>{said}<span class="bracket">)</span></span>'


def _link(anchor: str) -> str:
    return f' <a class="anchor" href="#{escaped(anchor)}" aria-label="Link to this entry">#</a>'


def _step(part: Part) -> str:
    box, said = _STEPS.get(part.label, ("☐", part.label.replace("_", " ")))
    state = f' <span class="status">({escaped_line(said)})</span>' if said not in ("", "done", "pending") else ""
    known = f' class="{part.label}"' if part.label in _STEPS else ""
    return f'<li{known}><span aria-hidden="true">{box}</span> {escaped_line(part.text)}{state}</li>\n'


def _list(steps: list[str]) -> str:
    return f'<ul class="steps">\n{"".join(steps)}</ul>\n'


def _address(part: Part) -> Html:
    if is_web_address(part.label):
        return Html(f"<p>{web_link(part.label, escaped_line(part.text))}</p>\n")
    same = part.text == part.label
    address = "" if same else f" <code>{escaped_line(part.label)}</code>"
    return Html(f'<p class="file">{escaped_line(part.text)}{address}</p>\n')


def _remark(text: str) -> Html:
    terminal = _TERMINAL.fullmatch(text)
    if terminal is not None:
        return Html(f'<p class="about"><a href="#terminal-{escaped(terminal[1])}">What its terminal shows</a></p>\n')
    return Html(f'<p class="about">{escaped_line(text)}</p>\n')
