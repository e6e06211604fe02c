"""`holdfast sessions fork`, `rename`, `archive` and `delete`."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from holdfast_app.cli import output
from holdfast_app.cli.completion import complete_sessions
from holdfast_app.cli.store_arguments import (
    agent_called,
    find_session,
    find_sessions,
    on_store,
    scope_of,
    session_argument,
    sessions_argument,
    short_id,
)

if TYPE_CHECKING:
    from holdfast.model import SessionInfo
    from holdfast.store import Forked, SessionStore, Snapshot


@click.command("fork")
@session_argument
@click.option("--at", metavar="ENTRY", help="The entry to end with: its number as `show` tells it, or its id.")
@click.option("--title", help="A title for the new session (default: that of the other).")
@click.option("--agent", metavar="NAME", help="The agent that goes on with it (default: that of the other).")
@on_store()
async def fork(
    store: SessionStore, *, session: str, at: str | None, title: str | None, agent: str | None, as_json: bool
) -> None:
    """Begin a new session with the history of another: all of it, or up to and with an entry.

    The other session is not touched, and may be in use. What its running turn has said is not part of the fork. With
    --json: {"session": the new one, "forkedFrom": the id of the other}.
    """
    from holdfast.document.session_document import session_summary  # noqa: PLC0415
    from holdfast.engine import claim_session  # noqa: PLC0415
    from holdfast.model.sessions import FILES_ARE_NEW  # noqa: PLC0415

    agent = None if agent is None else await agent_called(store, agent)
    seen = await store.snapshot((await find_session(store, session)).id)
    if seen.unsealed is not None and seen.unsealed.running_in is None:
        # Its turn broke: it is ended first, as anybody would who opens the session.
        claim, *_ = await claim_session(store, seen.record.info.id, begins_entries=False)
        await store.release(claim)
        seen = await store.snapshot(seen.record.info.id)
    up_to = await _key(store, seen, at) if at is not None else None
    made = await _forked(store, seen, up_to, title, agent)
    info = (await store.get(made.claim.session)).info
    if as_json:
        output.say(output.json_text({"session": session_summary(info), "forkedFrom": seen.record.info.id}))
        return
    output.say(f"{info.id} ({output.plural(info.messages, 'message')})")
    if made.is_earlier:
        output.tell(f"It goes on from an earlier point. {FILES_ARE_NEW}")
    if seen.unsealed is not None:
        output.tell("A turn of the other session is running; what it says is not part of the fork.")


async def _forked(
    store: SessionStore, seen: Snapshot, up_to: str | None, title: str | None, agent: str | None
) -> Forked:
    import msgspec  # noqa: PLC0415

    from holdfast.format import fork_note  # noqa: PLC0415
    from holdfast.model import forked, new_session_id  # noqa: PLC0415
    from holdfast.store import Claim  # noqa: PLC0415

    record, now = seen.record, time.time_ns() // 1_000
    source = msgspec.structs.replace(record.info, additional=())
    info, state = forked(source, record.state, fork_id=new_session_id(), now=now, agent=agent)
    if up_to is not None:
        state.background = ()  # nobody knows whether the fork has any of it
    if title is not None:
        info = msgspec.structs.replace(info, title=title)
        state.title_by = "user"
    # Of the source nothing is written, so that the claim of whoever holds it now is as good as one of our own.
    made = await store.fork(
        Claim(record.info.id, record.epoch), info, state, up_to=up_to, lines=[], earlier=fork_note()
    )
    await store.release(made.claim)
    return made


async def _key(store: SessionStore, seen: Snapshot, at: str) -> str:
    """Return the id of the entry that `at` means: its number, or its id."""
    from holdfast.errors import UsageError  # noqa: PLC0415
    from holdfast.store import Snapshot  # noqa: PLC0415
    from holdfast.store.entries import read_entries  # noqa: PLC0415
    from holdfast.view.entries import view_entry  # noqa: PLC0415

    sealed = Snapshot(seen.record, None)
    before = None
    async for number, entry in read_entries(store, sealed):
        view = view_entry(entry)
        if view.key and (view.key == at or str(number) == at):
            return view.key
        if str(number) == at:
            nearest = f"; the last before it is {before}" if before else ""
            raise UsageError(f"entry {at} is neither a message nor a tool call, so nothing can end with it{nearest}")
        before = number if view.key else before
    shown = f"holdfast sessions show {short_id(seen.record.info.id)}"
    raise UsageError(f"the session has no message or tool call {at[:80]!r}; `{shown}` numbers them")


@click.command("hand-over")
@click.argument("sessions", nargs=-1, shell_complete=complete_sessions)
@click.option("--to", "agent", metavar="AGENT", required=True, help="The agent that goes on, as lists name it.")
@click.option("--all", "everything", is_flag=True, help="All sessions of the agent that --from names.")
@click.option("--from", "old", metavar="AGENT", help="With --all: the agent that has them now.")
@on_store()
async def hand_over(
    store: SessionStore, *, sessions: tuple[str, ...], agent: str, everything: bool, old: str | None, as_json: bool
) -> int:
    """Let another agent go on with SESSIONS; with --all --from OLD, with all that OLD has (after a rename, say).

    The agent gets the conversation, and the history shows where it was handed over. What you had allowed "always", what
    the other agent remembered and what was set for it stays behind. With --json: {"sessions": […], "refused":
    [{"sessionId", "reason"}, …]}.
    """
    from holdfast.document.session_document import session_summary  # noqa: PLC0415
    from holdfast.errors import HoldfastError, UsageError  # noqa: PLC0415

    if everything != (old is not None) or everything == bool(sessions):
        raise UsageError("name SESSIONS, or --all with --from AGENT")
    agent = await agent_called(store, agent)
    found = await _all_of(store, old) if old is not None else await find_sessions(store, sessions)
    refused: dict[str, str] = {}
    with output.working("Handing over", len(found)) as advance:
        for info in found:
            try:
                await store.hand_over(info.id, agent)
            except HoldfastError as e:
                refused[info.id] = str(e)
                output.tell(f"holdfast: {short_id(info.id)} was not handed over. {e}")
            advance(1)
    done = [info for info in found if info.id not in refused]
    if as_json:
        handed = [session_summary((await store.get(info.id)).info) for info in done]
        output.say(output.json_text({"sessions": handed, "refused": _refusals(refused)}))
    else:
        output.say(f"Handed {output.plural(len(done), 'session')} to {agent}.")
    return 1 if refused else 0


async def _all_of(store: SessionStore, agent: str) -> list[SessionInfo]:
    scope = await scope_of(store, agent)
    found: list[SessionInfo] = []
    cursor = None
    while True:
        page = await store.list(scope, cwd=None, archived="include", cursor=cursor, limit=200)
        found += (info for info in page.sessions if info.agent == scope.agent)
        if (cursor := page.cursor) is None:
            return found


@click.command("rename")
@session_argument
@click.argument("title")
@on_store()
async def rename(store: SessionStore, *, session: str, title: str, as_json: bool) -> None:
    """Give a SESSION another TITLE; an empty one takes it away.

    Nothing replaces a title that you gave by one made of a prompt. An editor that has the session open shows it when it
    lists or opens the session again. With --json: {"session": …}.
    """
    from holdfast.document.session_document import session_summary  # noqa: PLC0415

    info = await find_session(store, session)
    await store.edit(info.id, title=title.strip() or None)
    changed = (await store.get(info.id)).info
    if as_json:
        output.say(output.json_text({"session": session_summary(changed)}))
    elif changed.title is None:
        output.say(f"{short_id(info.id)} has no title now.")
    else:
        output.say(f"Renamed {_named(changed)}.")


@click.command("archive")
@sessions_argument
@click.option("--undo", is_flag=True, help="Take them out again.")
@on_store()
async def archive(store: SessionStore, *, sessions: tuple[str, ...], undo: bool, as_json: bool) -> None:
    """Put SESSIONS away: they stay, and lists do not show them. `list --archived` does.

    With --undo `last` is the newest of those that were put away. With --json: {"sessions": […]}.
    """
    from holdfast.document.session_document import session_summary  # noqa: PLC0415

    found = await find_sessions(store, sessions, archived=undo)
    for info in found:
        if info.archived is undo:
            await store.edit(info.id, archived=not undo)
        if not as_json:
            output.say(_put_away(info, undo=undo))
    if as_json:
        changed = [session_summary((await store.get(info.id)).info) for info in found]
        output.say(output.json_text({"sessions": changed}))


def _put_away(before: SessionInfo, *, undo: bool) -> str:
    if before.archived is not undo:
        return f"{_named(before)} was {'not archived' if undo else 'archived already'}."
    return f"Took {_named(before)} out of the archive." if undo else f"Archived {_named(before)}."


def _named(info: SessionInfo) -> str:
    """Return how a line names a session."""
    from holdfast.view.safe_text import safe_line  # noqa: PLC0415

    title = safe_line(info.title or "")
    return f"{short_id(info.id)} “{title[:80]}{'…' if len(title) > 80 else ''}”" if title else short_id(info.id)


@click.command("delete")
@sessions_argument
@click.option("--yes", is_flag=True, help="Do not ask.")
@on_store()
async def delete(store: SessionStore, *, sessions: tuple[str, ...], yes: bool, as_json: bool) -> int:
    """Delete SESSIONS for good; their forks stay whole. Asks before it does, unless --yes.

    A session whose turn is running is not deleted. With --json: {"sessions": those that were deleted, "refused":
    [{"sessionId", "reason"}, …]}.
    """
    from holdfast.errors import HoldfastError, UsageError  # noqa: PLC0415
    from holdfast.view.safe_text import safe_line  # noqa: PLC0415

    found = await find_sessions(store, sessions)
    if not yes:
        if as_json or not sys.stdin.isatty():
            raise UsageError("nobody can be asked whether to delete; add --yes if it is meant")
        for info in found:
            title = safe_line(info.title or "(no title)")
            output.tell(f"  {short_id(info.id)}  {output.plural(info.messages, 'message')}  {title}")
        if not click.confirm(f"Delete {output.plural(len(found), 'session')} for good?", err=True):
            output.tell("Nothing was deleted.")
            return 1
    deleted: list[SessionInfo] = []
    refused: dict[str, str] = {}
    for info in found:
        try:
            await store.delete(info.id)
            deleted.append(info)
        except HoldfastError as e:
            refused[info.id] = str(e)
            output.tell(f"holdfast: {short_id(info.id)} was not deleted. {safe_line(str(e))}; stop it, then try again")
    if as_json:
        from holdfast.document.session_document import session_summary  # noqa: PLC0415

        gone = [session_summary(info) for info in deleted]
        output.say(output.json_text({"sessions": gone, "refused": _refusals(refused)}))
    elif deleted:
        output.say(f"Deleted {output.plural(len(deleted), 'session')}.")
    return 1 if refused else 0


def _refusals(refused: dict[str, str]) -> list[dict[str, str]]:
    return [{"sessionId": session, "reason": reason} for session, reason in refused.items()]
