"""`holdfast sessions search`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.view.found import MOST_COUNTED, next_limit, places_found, who_said
from holdfast_app.cli import output
from holdfast_app.cli.sessions.area_options import area_options, with_home
from holdfast_app.cli.store_arguments import here, on_store, scope_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.store import Hit, SessionStore

AROUND = 60
"""So many characters are shown on each side of what was found."""


@click.command("search")
@click.argument("words", nargs=-1, required=True)
@area_options("Look through those that were put away, and no others.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=20, show_default=True, metavar="N", help="How many places at most."
)
@on_store()
async def search(
    store: SessionStore,
    *,
    words: tuple[str, ...],
    everywhere: bool,
    cwd: str | None,
    agent: str | None,
    since: int,
    archived: bool,
    limit: int,
    as_json: bool,
) -> None:
    """Find the places where all of the WORDS are, newest first: in messages, thoughts, tool calls and titles.

    Of tool calls both what they were asked and what they gave is looked through, of long output its two ends. Several
    words in quotes are a phrase, the beginning of a word is written with an asterisk. Accents and capitals do not
    matter. Sessions of this directory are looked through, unless --all or --cwd says otherwise.

    \b
      holdfast sessions search crash recovery       both words, anywhere in a message
      holdfast sessions search "crash recovery"     these words in a row
      holdfast sessions search 'recover*'           recover, recovery, recovering
      holdfast sessions search timeout --all --agent claude --since 2w

    With --json: {"hits": [{"session", "kind", "id", "text", "marks": [[start, end], …]}, …], "total": how many places
    there are, null if there are very many}.
    """  # noqa: D301  (where `\b` stands, click keeps the lines)
    place = None if everywhere else cwd or await here(store)
    scope = await scope_of(store, agent)
    text, state = asked(words), "only" if archived else "exclude"
    hits = await store.search(text, scope, cwd=place, limit=limit, archived=state, since=since)
    total = len(hits)
    if total == limit:
        most = max(limit, MOST_COUNTED) + 1
        total = await store.count_places(text, scope, cwd=place, most=most, archived=state, since=since)
    if as_json:
        _write_json(hits, total)
    elif hits:
        await _write_places(store, hits, everywhere=everywhere)
        if total > len(hits):
            more = next_limit(limit, total)
            which = "all" if more == total else "more"
            output.tell(f"{places_found(len(hits), total)} are shown; `--limit {more}` shows {which}.")
    else:
        _explain_none(place, archived=archived, since=since)


def asked(words: tuple[str, ...]) -> str:
    """Return what was asked for as `holdfast.store.words` wants it: an argument of several words is a phrase."""
    return " ".join(f'"{word}"' if " " in word.strip() and '"' not in word else word for word in words)


def _write_json(hits: list[Hit], total: int) -> None:
    from holdfast.document.session_document import session_summary  # noqa: PLC0415

    found = [
        {
            "session": session_summary(hit.session),
            "kind": hit.kind,
            "id": hit.key or None,
            "text": hit.text,
            "marks": hit.marks,
        }
        for hit in hits
    ]
    exact = None if total > max(len(hits), MOST_COUNTED) else total
    output.say(output.json_text({"hits": found, "total": exact}))


async def _write_places(store: SessionStore, hits: list[Hit], *, everywhere: bool) -> None:
    from holdfast_app.cli.sessions.listing import states_of  # noqa: PLC0415
    from holdfast_app.cli.sessions.session_table import ListedSession, SessionTable  # noqa: PLC0415

    sessions = list({hit.session.id: hit.session for hit in hits}.values())
    states = await states_of(store, sessions)
    listed = {info.id: ListedSession(info, state.model) for info, state in zip(sessions, states, strict=True)}
    table, paint = SessionTable(list(listed.values()), everywhere=everywhere), output.painter()
    output.say(table.heading())
    session = None
    for hit in hits:
        if hit.session.id != session:
            session = hit.session.id
            output.say(table.row(listed[session]))
        output.say(f"    {paint(who_said(hit.kind), dim=True)}: {snippet(hit, paint)}")


def _explain_none(cwd: str | None, *, archived: bool, since: int) -> None:
    where = "" if cwd is None else f" in sessions of {with_home(cwd)}; `--all` looks through those of all directories"
    limits = "" if not since else f"; only what has activity since {output.moment(since)} was looked through"
    away = "" if archived else "; `--archived` looks through those that were put away"
    output.tell(f"Nothing was found{where}{limits}{away}.")


def snippet(hit: Hit, paint: Callable[..., str]) -> str:
    """Return the text around the first hit, with all hits in it marked."""
    from holdfast.view.safe_text import safe_line  # noqa: PLC0415

    first = hit.marks[0] if hit.marks else (0, 0)
    start, end = max(0, first[0] - AROUND), min(len(hit.text), first[1] + AROUND)
    parts, at = ["…" if start else ""], start
    for begin, stop in hit.marks:
        if begin >= start and stop <= end:
            parts += (_spaced(hit.text[at:begin], safe_line), _marked(safe_line(hit.text[begin:stop]), paint))
            at = stop
    parts += (_spaced(hit.text[at:end], safe_line), "…" if end < len(hit.text) else "")
    return "".join(parts)


def _marked(text: str, paint: Callable[..., str]) -> str:
    return paint(text, bold=True, reverse=True) if output.is_coloured() else f"«{text}»"


def _spaced(text: str, safe_line: Callable[[str], str]) -> str:
    """Return a text on one line; a space at either end stays one."""
    if not text.strip():
        return " " if text else ""
    return f"{' ' if text[0].isspace() else ''}{safe_line(text)}{' ' if text[-1].isspace() else ''}"
