"""`holdfast sessions list`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from holdfast_app.cli import output
from holdfast_app.cli.sessions.area_options import area_options, with_home
from holdfast_app.cli.store_arguments import here, on_store, scope_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from holdfast.model import ArchiveFilter, SessionInfo, SessionState
    from holdfast.store import SearchArea, SessionStore
    from holdfast_app.cli.sessions.open_sessions import OpenElsewhere

PAGE = 200


@click.command("list")
@area_options("Only those that were put away.")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=50,
    show_default=True,
    metavar="N",
    help="How many at most; 0 for all.",
)
@click.option("--no-headings", is_flag=True, help="Without the line above the sessions.")
@on_store()
async def list_(
    store: SessionStore,
    *,
    everywhere: bool,
    cwd: str | None,
    agent: str | None,
    since: int,
    archived: bool,
    limit: int,
    no_headings: bool,
    as_json: bool,
) -> None:
    """List sessions, newest first: those of this directory, unless --all or --cwd says otherwise.

    A session that is open says in which program, and whether a turn runs or waits for an answer. The model is that of
    its last turn, where its agent tells.

    \b
      holdfast sessions list --all --since 3d
      holdfast sessions list --agent claude --json

    With --json: {"sessions": […], "more": true where there are more than were asked for}; a session that is open has
    "open": {"in": "Zed", "state": "running", "clients": ["Zed"]}.
    """  # noqa: D301  (where `\b` stands, click keeps the lines)
    from holdfast.store import SearchArea  # noqa: PLC0415
    from holdfast_app.cli.sessions.open_sessions import find_open  # noqa: PLC0415

    opened = await find_open(store)
    place = None if everywhere else cwd or await here(store)
    area = SearchArea(await scope_of(store, agent), place, "only" if archived else "exclude", since)
    listed = _Listing(store, area, limit)
    if as_json:
        await _list_json(store, listed, opened)
    elif not await _list_table(store, listed, opened, everywhere=everywhere, headings=not no_headings):
        await _explain_none(store, area)
    if listed.more and not as_json:
        output.tell(f"There are more: `--limit {limit * 4}` shows more of them, `--limit 0` all.")


class _Listing:
    """Iterates over pages of stored sessions."""

    def __init__(self, store: SessionStore, area: SearchArea, limit: int) -> None:
        self._store = store
        self._area = area
        self._limit = limit
        self.more = False
        """Whether there are more than were asked for; known at the end."""

    async def __aiter__(self) -> AsyncIterator[Sequence[SessionInfo]]:
        left, cursor, area = self._limit or 1 << 62, None, self._area
        while left:
            page = await self._store.list(
                area.scope, cwd=area.cwd, archived=area.archived, cursor=cursor, limit=min(PAGE, left)
            )
            found = [info for info in page.sessions if info.updated_at >= area.since]
            yield found
            left -= len(found)
            cursor = page.cursor
            if cursor is None or len(found) < len(page.sessions):
                return
        self.more = True


async def states_of(store: SessionStore, sessions: Sequence[SessionInfo]) -> list[SessionState]:
    """Look up what is known of sessions besides what a list has; of one that was deleted or is damaged, nothing."""
    from holdfast.errors import SessionNotFound, StoreDamaged  # noqa: PLC0415
    from holdfast.model import SessionState  # noqa: PLC0415

    async def state(info: SessionInfo) -> SessionState:
        try:
            return (await store.get(info.id)).state
        except (SessionNotFound, StoreDamaged):
            return SessionState()

    return list(await asyncio.gather(*map(state, sessions)))


async def _list_table(
    store: SessionStore, listed: _Listing, opened: dict[str, OpenElsewhere], *, everywhere: bool, headings: bool
) -> bool:
    """Print a table; return whether there was anything to print."""
    from holdfast_app.cli.sessions.session_table import ListedSession, SessionTable  # noqa: PLC0415

    table: SessionTable | None = None
    async for page in listed:
        states = await states_of(store, page)
        rows = [ListedSession(info, state.model, opened.get(info.id)) for info, state in zip(page, states, strict=True)]
        if table is None and rows:
            table = SessionTable(rows, everywhere=everywhere)
            if headings:
                output.say(table.heading())
        for row in rows if table is not None else ():
            output.say(table.row(row) if table is not None else "")
    return table is not None


async def _list_json(store: SessionStore, listed: _Listing, opened: dict[str, OpenElsewhere]) -> None:
    import msgspec  # noqa: PLC0415

    from holdfast.document.session_document import session_summary  # noqa: PLC0415

    output.write('{"sessions": [')
    between = "\n"
    async for page in listed:
        for info, state in zip(page, await states_of(store, page), strict=True):
            summary: dict[str, object] = msgspec.to_builtins(session_summary(info, state))
            if (found := opened.get(info.id)) is not None:
                summary["open"] = {"in": found.name, "state": found.activity, "clients": list(found.clients)}
            output.write(between + output.json_text(summary))
            between = ",\n"
    output.say(f'\n], "more": {"true" if listed.more else "false"}}}')


async def _explain_none(store: SessionStore, area: SearchArea) -> None:
    kind = "archived sessions" if area.archived == "only" else "sessions"
    if area.since:
        output.tell(f"There are no {kind} with activity since {output.moment(area.since)}.")
    elif area.cwd is None:
        output.tell(f"There are no {kind}.")
    else:
        others = " `--all` shows those of other directories." if await _are_any(store, area.archived) else ""
        output.tell(f"There are no {kind} of {with_home(area.cwd)}.{others}")


async def _are_any(store: SessionStore, archived: ArchiveFilter) -> bool:
    from holdfast.model import Scope  # noqa: PLC0415

    return bool((await store.list(Scope(), cwd=None, archived=archived, cursor=None, limit=1)).sessions)
