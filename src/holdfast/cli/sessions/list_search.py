"""`holdfast sessions list` and `search`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from holdfast.cli import output
from holdfast.cli.store_arguments import LOCAL, SHORT, absolute, here, on_store, scope_of, short_id

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from holdfast.cli.sessions.open_sessions import OpenElsewhere
    from holdfast.model import ArchiveFilter, Scope, SessionInfo
    from holdfast.store import Hit, SessionStore

PAGE = 200
AROUND = 60
"""So many characters are shown on each side of what was found."""

_all = click.option("--all", "everywhere", is_flag=True, help="Sessions of every directory.")
_cwd = click.option(
    "--cwd",
    metavar="DIR",
    type=click.Path(file_okay=False),
    callback=absolute,
    help="Sessions of that directory instead of this one.",
)

_agent = click.option("--agent", metavar="NAME", help="Only sessions of that agent.")
AGENT_WIDTH = 14


@click.command("list")
@_all
@_cwd
@_agent
@click.option("--archived", is_flag=True, help="Only those that were put away.")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=50,
    show_default=True,
    metavar="N",
    help="How many at most; 0 for all.",
)
@on_store()
async def list_(
    store: SessionStore,
    *,
    everywhere: bool,
    cwd: str | None,
    agent: str | None,
    archived: bool,
    limit: int,
    as_json: bool,
) -> None:
    """List sessions, newest first: those of this directory, unless --all or --cwd says otherwise.

    Where there are sessions of several agents, the list names each session's agent. A session that is open says in
    which program, and whether a turn runs or waits for an answer.

    With --json: {"sessions": […], "more": true where there are more than were asked for}; a session that is open has
    "open": {"in": "Zed", "state": "running", "clients": ["Zed"]}.
    """
    from holdfast.cli.sessions.open_sessions import find_open  # noqa: PLC0415

    opened = await find_open(store)
    place = None if everywhere else cwd or await here(store)
    listed = _Listing(store, await scope_of(store, agent), place, "only" if archived else "exclude", limit)
    if as_json:
        await _list_json(listed, opened)
        return
    paint, room = output.painter(), output.width()
    several = agent is None and len(await store.agents(LOCAL)) > 1
    count = 0
    async for info in listed:
        output.say(_row(info, paint, room, opened.get(info.id), everywhere=everywhere, agents=several))
        count += 1
    if listed.more:
        output.tell(f"There are more: `--limit {limit * 4}` shows more of them, `--limit 0` all.")
    if not count:
        await _explain_none(store, place, archived=archived)


class _Listing:
    """Iterates over stored sessions, page by page."""

    def __init__(self, store: SessionStore, scope: Scope, cwd: str | None, archived: ArchiveFilter, limit: int) -> None:
        self._store = store
        self._scope = scope
        self._cwd = cwd
        self._archived: ArchiveFilter = archived
        self._limit = limit
        self.more = False
        """Whether there are more than were asked for; known at the end."""

    async def __aiter__(self) -> AsyncIterator[SessionInfo]:
        left, cursor = self._limit or 1 << 62, None
        while left:
            page = await self._store.list(
                self._scope, cwd=self._cwd, archived=self._archived, cursor=cursor, limit=min(PAGE, left)
            )
            for info in page.sessions:
                yield info
            left -= len(page.sessions)
            cursor = page.cursor
            if cursor is None:
                return
        self.more = True


async def _list_json(listed: _Listing, opened: dict[str, OpenElsewhere]) -> None:
    import msgspec  # noqa: PLC0415

    from holdfast.export.document import session_summary  # noqa: PLC0415

    output.write('{"sessions": [')
    between = "\n"
    async for info in listed:
        summary: dict[str, object] = msgspec.to_builtins(session_summary(info))
        if (found := opened.get(info.id)) is not None:
            summary["open"] = {"in": found.name, "state": found.activity, "clients": list(found.clients)}
        output.write(between + output.json_text(summary))
        between = ",\n"
    output.say(f'\n], "more": {"true" if listed.more else "false"}}}')


def _row(
    info: SessionInfo,
    paint: Callable[..., str],
    room: int | None,
    opened: OpenElsewhere | None = None,
    *,
    everywhere: bool,
    agents: bool,
) -> str:
    from holdfast.view.safe_text import safe_line  # noqa: PLC0415

    when, said = output.padded(output.ago(info.updated_at), 11), output.padded(str(info.messages), 5, right=True)
    parts = [paint(output.padded(short_id(info.id), SHORT), fg="yellow"), paint(when, dim=True), said]
    used = SHORT + 11 + 5 + 3 * 2
    if everywhere:
        wide = min(30, room // 4) if room else 30
        parts.append(
            paint(output.padded(output.cut(_home(safe_line(info.cwd)), wide if room else None), wide), fg="cyan")
        )
        used += wide + 2
    if agents:
        name = output.cut(safe_line(info.agent), AGENT_WIDTH if room else None)
        parts.append(paint(output.padded(name, AGENT_WIDTH), fg="green"))
        used += AGENT_WIDTH + 2
    if opened is not None:
        says = output.cut(safe_line(opened.describe()), room // 2 if room else None)
        parts.append(paint(says, fg="yellow" if opened.activity == "requires_action" else "green"))
        used += len(says) + 2
    title = output.cut(safe_line(info.title or ""), max(room - used, 10) if room else None)
    return "  ".join([*parts, title or paint("(no title)", dim=True)])


def _home(path: str) -> str:
    home = os.path.expanduser("~")  # noqa: PTH111  (a text, not a path: it is only shown)
    return f"~{path[len(home) :]}" if path == home or path.startswith(home + os.sep) else path


async def _explain_none(store: SessionStore, cwd: str | None, *, archived: bool) -> None:
    from holdfast.model import Scope  # noqa: PLC0415

    kind = "archived sessions" if archived else "sessions"
    if cwd is None:
        output.tell(f"There are no {kind}.")
        return
    kept = "only" if archived else "exclude"
    there_are = (await store.list(Scope(), cwd=None, archived=kept, cursor=None, limit=1)).sessions
    others = " `--all` shows those of other directories." if there_are else ""
    output.tell(f"There are no {kind} of {_home(cwd)}.{others}")


@click.command("search")
@click.argument("words", nargs=-1, required=True)
@_all
@_cwd
@_agent
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
    limit: int,
    as_json: bool,
) -> None:
    """Find the places where all of the WORDS were said: in titles, messages and titles of tool calls, newest first.

    Sessions of this directory are looked through, unless --all or --cwd says otherwise. Accents and capitals do not
    matter. With --json: {"hits": [{"session", "kind", "id", "text", "marks": [[start, end], …]}, …]}.
    """
    place = None if everywhere else cwd or await here(store)
    hits = await store.search(" ".join(words), await scope_of(store, agent), cwd=place, limit=limit)
    if as_json:
        from holdfast.export.document import session_summary  # noqa: PLC0415

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
        output.say(output.json_text({"hits": found}))
        return
    paint, room = output.painter(), output.width()
    several = agent is None and len(await store.agents(LOCAL)) > 1
    session = None
    for hit in hits:
        if hit.session.id != session:
            session = hit.session.id
            output.say(_row(hit.session, paint, room, everywhere=everywhere, agents=several))
        output.say(f"    {paint(_WHO.get(hit.kind, hit.kind), dim=True)}: {snippet(hit, paint)}")
    if not hits:
        others = (
            "" if place is None else f" in sessions of {_home(place)}; `--all` looks through those of all directories"
        )
        output.tell(f"Nothing was found{others}.")


_WHO = {
    "title": "title",
    "user_message": "you",
    "agent_message": "agent",
    "session_message": "session",
    "tool_call_update": "tool",
}


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
