"""`holdfast sessions copy`: all sessions of one store into another."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

from holdfast_app.cli import output
from holdfast_app.cli.store_arguments import is_there, json_option, opened, run_async, short_id

if TYPE_CHECKING:
    from holdfast.store import SessionStore
    from holdfast.store.copying import CopiedSession, Outcome

WHY: dict[Outcome, str] = {
    "busy": "a turn of it runs, or broke: wait, or open it once, then copy again",
    "differs": "another state of it is there; delete it there to copy it anew",
    "damaged": "a part of it cannot be read; `holdfast sessions export` gives the rest",
}


@click.command("copy")
@click.option("--from", "source", metavar="ADDRESS", required=True, help="The store to read: a file, or postgresql://…")
@click.option("--to", "target", metavar="ADDRESS", required=True, help="The store to add to; made where there is none.")
@json_option
def copy(*, source: str, target: str, as_json: bool) -> int:
    """Copy all sessions of a store into another, of whatever kind.

    \b
      holdfast sessions copy --from ~/.local/share/holdfast/sessions.db --to postgresql://db.example/holdfast
      holdfast sessions copy --from postgresql://db.example/holdfast --to backup.db

    Everything goes along: titles, state, what was allowed, private entries, forks. The source stays as it is. Stop it
    whenever you like and run it again: what is there already is not copied twice. The status is 1 where a session could
    not be copied. With --json: {"copied": n, "present": n, "refused": [{"sessionId", "reason"}, …]}.
    """  # noqa: D301  (where `\b` stands, click keeps the lines)
    return run_async(_copy(source, target, as_json=as_json))


async def _copy(source: str, target: str, *, as_json: bool) -> int:
    from holdfast.errors import UsageError  # noqa: PLC0415

    if source == target:
        raise UsageError("a store cannot be copied into itself")
    is_there(source)
    async with opened(source) as old, opened(target, makes=True) as new:
        done = await _copy_all(old, new)
    return _report(done, as_json=as_json)


async def _copy_all(old: SessionStore, new: SessionStore) -> list[CopiedSession]:
    from holdfast.store.copying import copy_aliases, copy_sessions, list_all  # noqa: PLC0415

    with output.working("Looking"):
        sessions = await list_all(old)
    done: list[CopiedSession] = []
    with output.working("Copying", len(sessions)) as advance:
        async for copied in copy_sessions(old, new, sessions):
            done.append(copied)
            advance(1)
    await copy_aliases(old, new)
    return done


def _report(done: list[CopiedSession], *, as_json: bool) -> int:
    counts = Counter(copied.outcome for copied in done)
    left = [copied for copied in done if copied.outcome in WHY]
    if as_json:
        named = [{"sessionId": copied.session, "reason": WHY[copied.outcome]} for copied in left]
        output.say(output.json_text({"copied": counts["copied"], "present": counts["there"], "refused": named}))
        return 1 if left else 0
    there = f", {counts['there']:,} were there already" if counts["there"] else ""
    output.say(f"{output.plural(counts['copied'], 'session')} copied{there}.")
    for copied in left:
        output.say(f"Not copied: {short_id(copied.session)} ({WHY[copied.outcome]})")
    return 1 if left else 0
