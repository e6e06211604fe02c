"""`holdfast sessions show`: a transcript, printed entry by entry as it is read from the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli import output
from holdfast.cli.store_arguments import find_session, on_store, session_argument

if TYPE_CHECKING:
    from holdfast.store import SessionStore, Snapshot


@click.command("show")
@session_argument
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the last N entries.")
@click.option("--full", is_flag=True, help="All of what tools gave, not only the first lines.")
@click.option("--raw", is_flag=True, help="The stored updates, one JSON object a line.")
@on_store()
async def show(store: SessionStore, *, session: str, limit: int | None, full: bool, raw: bool, as_json: bool) -> None:
    """Show a SESSION as a readable transcript. The numbers are those that `fork --at` takes.

    What a running turn has said so far is shown too, wherever it runs. With --json: {"session", "entries": [{"number",
    "role", "id", "title", "status", "updates"}, …], "turn": null, or where it runs}.
    """
    info = await find_session(store, session)
    seen = await store.snapshot(info.id)
    if raw:
        await _raw(store, seen, limit)
    elif as_json:
        await _json(store, seen, limit)
    else:
        await _readable(store, seen, limit, full=full)


async def _readable(store: SessionStore, seen: Snapshot, limit: int | None, *, full: bool) -> None:
    from holdfast.cli.transcript_renderer import TranscriptRenderer  # noqa: PLC0415
    from holdfast.store.entries import read_entries  # noqa: PLC0415
    from holdfast.view.entries import view_entry  # noqa: PLC0415
    from holdfast.view.safe_text import safe_line  # noqa: PLC0415

    info, paint = seen.record.info, output.painter()
    rendering = TranscriptRenderer(paint, output.width(), full=full)
    output.say(paint(safe_line(info.title or "(no title)"), bold=True))
    marks = " · archived" if info.archived else ""
    messages = output.plural(info.messages, "message")
    output.say(paint(f"{safe_line(info.cwd)} · {output.moment(info.updated_at)} · {messages}{marks}", dim=True))
    output.say(paint(info.id, dim=True))
    if seen.record.state.forked_from:
        output.say(paint(f"forked from {safe_line(seen.record.state.forked_from)}", dim=True))
    async for number, entry in read_entries(store, seen, last=limit):
        for line in rendering.lines(number, view_entry(entry)):
            output.say(line)
    if seen.unsealed is not None:
        output.say()
        where = seen.unsealed.running_in
        output.say(
            paint(f"A turn is running in {safe_line(where)}; this is what it has said so far.", fg="yellow")
            if where
            else paint(
                "The process of this turn died. The turn is closed when the session is opened next.", fg="yellow"
            )
        )


async def _raw(store: SessionStore, seen: Snapshot, limit: int | None) -> None:
    from holdfast.store.entries import read_entries  # noqa: PLC0415

    async for _, entry in read_entries(store, seen, last=limit):
        for update in entry.updates():
            output.say(output.json_text(update))


async def _json(store: SessionStore, seen: Snapshot, limit: int | None) -> None:
    from holdfast.export.document import session_summary  # noqa: PLC0415
    from holdfast.store.entries import read_entries  # noqa: PLC0415
    from holdfast.view.entries import view_entry  # noqa: PLC0415

    output.write(f'{{"session": {output.json_text(session_summary(seen.record.info))}, "entries": [')
    between = "\n"
    async for number, entry in read_entries(store, seen, last=limit):
        view = view_entry(entry)
        written = {
            "number": number,
            "role": view.role,
            "id": view.key or None,
            "title": view.title or None,
            "status": view.status or None,
            "updates": list(entry.updates()),
        }
        output.write(between + output.json_text(written))
        between = ",\n"
    turn = None
    if seen.unsealed is not None:
        turn = {"state": "running" if seen.unsealed.running_in else "broken", "where": seen.unsealed.running_in}
    output.say(f'\n], "turn": {output.json_text(turn)}}}')
