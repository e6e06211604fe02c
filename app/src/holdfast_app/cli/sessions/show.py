"""`holdfast sessions show`: a transcript, printed entry by entry as it is read from the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast_app.cli import output
from holdfast_app.cli.store_arguments import find_session, on_store, session_argument

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holdfast.model import SessionState
    from holdfast.store import SessionStore, Snapshot
    from holdfast.view.commands import Shown
    from holdfast_app.cli.transcript_renderer import TranscriptRenderer


@click.command("show")
@session_argument
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the last N entries.")
@click.option("--full", is_flag=True, help="All of what tools gave, not only the first lines.")
@click.option("--raw", is_flag=True, help="The stored updates, one JSON object a line.")
@click.option("--no-pager", is_flag=True, help="Do not use a pager ($HOLDFAST_PAGER, $PAGER, or less).")
@on_store()
async def show(
    store: SessionStore, *, session: str, limit: int | None, full: bool, raw: bool, no_pager: bool, as_json: bool
) -> None:
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
        from holdfast_app.cli.pager import paged  # noqa: PLC0415
        from holdfast_app.cli.transcript_renderer import TranscriptRenderer  # noqa: PLC0415

        paint, width = output.painter(), output.width()  # as the terminal wants it: a pager is none
        with paged(wanted=not no_pager):
            await _readable(store, seen, limit, TranscriptRenderer(paint, width, full=full), paint)


async def _readable(
    store: SessionStore, seen: Snapshot, limit: int | None, rendering: TranscriptRenderer, paint: Callable[..., str]
) -> None:
    from holdfast.store.entries import read_entries  # noqa: PLC0415
    from holdfast.view.commands import Commands  # noqa: PLC0415
    from holdfast.view.entries import view_entry  # noqa: PLC0415
    from holdfast.view.safe_text import safe_line  # noqa: PLC0415

    info, state = seen.record.info, seen.record.state
    output.say(paint(safe_line(info.title or "(no title)"), bold=True))
    marks = " · archived" if info.archived else ""
    messages = output.plural(info.messages, "message")
    output.say(paint(f"{safe_line(info.cwd)} · {output.moment(info.updated_at)} · {messages}{marks}", dim=True))
    about = (info.id, info.agent, state.model, *usage_words(state))
    output.say(paint(" · ".join(safe_line(word) for word in about if word), dim=True))
    if state.forked_from:
        output.say(paint(f"forked from {safe_line(state.forked_from)}", dim=True))
    commands = Commands()

    def say(shown: list[Shown]) -> None:
        for number, entry, terminals in shown:
            for line in rendering.lines(number, view_entry(entry, terminals)):
                output.say(line)

    async for number, entry in read_entries(store, seen, last=limit):
        say(commands.take(number, entry))
    say(commands.rest())
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


def usage_words(state: SessionState) -> Iterator[str]:
    """Yield what a session has taken, as far as its agent told: tokens, cost."""
    if state.tokens and (total := state.tokens.get("totalTokens")):
        yield output.plural(total, "token")
    match state.latest.get("usage_update"):
        case {"cost": {"amount": int() | float() as amount, "currency": str(currency)}}:
            yield output.money(amount, currency)
        case _:
            pass


async def _raw(store: SessionStore, seen: Snapshot, limit: int | None) -> None:
    from holdfast.store.entries import read_entries  # noqa: PLC0415

    async for _, entry in read_entries(store, seen, last=limit):
        for update in entry.updates():
            output.say(output.json_text(update))


async def _json(store: SessionStore, seen: Snapshot, limit: int | None) -> None:
    from holdfast.document.session_document import session_summary  # noqa: PLC0415
    from holdfast.store.entries import read_entries  # noqa: PLC0415
    from holdfast.view.entries import view_entry  # noqa: PLC0415

    output.write(f'{{"session": {output.json_text(session_summary(seen.record.info, seen.record.state))}, "entries": [')
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
