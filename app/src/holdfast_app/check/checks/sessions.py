"""Finding, changing, forking and ending sessions."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast_app.check.checks.open_turns import open_turn
from holdfast_app.check.checks.prompts import ALLOWING
from holdfast_app.check.checks.registry import check
from holdfast_app.check.checks.restoring import leave, left, loaded
from holdfast_app.check.outcomes import NotAdvertised, Refused
from holdfast_app.check.session import values_of
from holdfast_app.check.trial import fail
from holdfast_app.check.wire import members, objects

if TYPE_CHECKING:
    from holdfast_app.check.session import Session
    from holdfast_app.check.trial import Connected, Trial

BRING_BACK = ("load", "resume", "list")
"""An agent that can do none of these has no use for the id of another process's session."""


@check("new-ids")
async def new_ids(trial: Trial) -> None:
    """Create sessions in two processes."""
    ids: list[str] = []
    for _ in range(2):
        connected = await trial.connect()
        if not any(map(connected.can, BRING_BACK)):
            raise NotAdvertised("the agent brings no session back")
        ids += [(await connected.new()).id for _ in range(2)]
    if len(set(ids)) != len(ids):
        fail("four ids", ids)


# Listing

A_SECOND = 1.1
"""Some agents note in seconds when a session was used."""


@check("list")
async def list_(trial: Trial) -> None:
    """Look for a session in the list."""
    connected, session = await _talked(trial, "list")
    rows = [row for row in await connected.listed() if row.get("sessionId") == session.id]
    if not rows:
        fail(f"the session {session.id} in the list", "it is not there")
    if not _same_directory(rows[0].get("cwd"), trial.cwd):
        fail(f"its directory {trial.cwd}", rows[0].get("cwd"))


@check("list-cwd")
async def list_cwd(trial: Trial) -> None:
    """Ask for the sessions of a directory."""
    connected, session = await _talked(trial, "list")
    rows = await connected.listed(cwd=trial.cwd)
    elsewhere = [row.get("cwd") for row in rows if not _same_directory(row.get("cwd"), trial.cwd)]
    if elsewhere:
        fail(f"sessions of {trial.cwd} only", elsewhere[0])
    if not any(row.get("sessionId") == session.id for row in rows):
        fail(f"the session {session.id} in the list of its directory", "it is not there")
    others = await connected.listed(cwd=str(Path(trial.cwd) / "elsewhere"))
    if any(row.get("sessionId") == session.id for row in others):
        fail("no session of another directory", "it is listed there")


@check("list-newest-first")
async def list_newest_first(trial: Trial) -> None:
    """Use two sessions one after the other, then the first again."""
    connected, first = await _talked(trial, "list")
    second = await connected.new()
    for session in (second, first):
        await asyncio.sleep(A_SECOND)
        await session.prompt(trial.prompts.talk)
    ids = [row.get("sessionId") for row in await connected.listed() if row.get("sessionId") in (first.id, second.id)]
    if ids != [first.id, second.id]:
        fail("the session that was used last first", "the other one is before it")


@check("list-pages")
async def list_pages(trial: Trial) -> None:
    """Follow the cursors, with sessions enough for two small pages."""
    connected, session = await _talked(trial, "list")
    for _ in range(2):
        await (await connected.new()).prompt(trial.prompts.talk)
    ids = [str(row.get("sessionId")) for row in await connected.listed()]
    if len(set(ids)) != len(ids):
        fail("every session once", next(id_ for id_ in ids if ids.count(id_) > 1) + " twice")
    if session.id not in ids:
        fail(f"the session {session.id} on some page", "it is on none")


@check("list-bad-cursor")
async def list_bad_cursor(trial: Trial) -> None:
    """Use a cursor that nobody gave out."""
    connected, _ = await _talked(trial, "list")
    try:
        await connected.wire.request("session/list", {"cursor": "holdfast-check-no-such-cursor"})
    except Refused:
        return
    fail("an error", "a page")


@check("list-times")
async def list_times(trial: Trial) -> None:
    """Read the times."""
    connected, _ = await _talked(trial, "list")
    times = [row["updatedAt"] for row in await connected.listed() if row.get("updatedAt") is not None]
    if not times:
        raise NotAdvertised("the agent lists no times")
    for time in times:
        if not _is_time(time):
            fail("a time as 2026-11-19T08:15:00Z", time)


def _is_time(value: object) -> bool:
    try:
        return isinstance(value, str) and value[10:11] == "T" and bool(datetime.fromisoformat(value))
    except ValueError:
        return False


@check("list-title")
async def list_title(trial: Trial) -> None:
    """Look for a title."""
    connected, session = await _talked(trial, "list")
    rows = [row for row in await connected.listed() if row.get("sessionId") == session.id]
    if not rows or not rows[0].get("title"):
        fail("a title", "none")


def _same_directory(one: object, other: str) -> bool:
    return isinstance(one, str) and Path(one).resolve() == Path(other)


async def _talked(trial: Trial, ability: str) -> tuple[Connected, Session]:
    connected = await trial.connect(ALLOWING)
    connected.need(ability)
    session = await connected.new()
    await session.prompt(trial.prompts.talk)
    return connected, session


# Options

NO_VALUE = "holdfast-check-no-such-value"


class _Choice:
    """An option of a session, or its mode where there are no options, and a value that it does not have.

    The mode comes first: other options may need what is not there, as a key for another model.
    """

    def __init__(self, session: Session) -> None:
        self.is_mode = False
        for option in sorted(session.options(), key=lambda option: option.get("category") != "mode"):
            others = [value for value in values_of(option) if value != option.get("currentValue")]
            if others:
                self.id, self.value = str(option.get("id") or option.get("configId")), others[0]
                return
        modes = members(session.answer.get("modes"))
        others = [str(mode.get("id")) for mode in objects(modes.get("availableModes"))]
        others = [mode for mode in others if mode != modes.get("currentModeId")]
        if not others:
            raise NotAdvertised("the agent has no option with two values")
        self.is_mode, self.id, self.value = True, "mode", others[0]

    async def set(self, session: Session) -> object:
        """Set it; return the value it has in the answer. The answer to session/set_mode has none: it says yes or no."""
        answer = await session.set_option(self.id, self.value)
        return self.value if self.is_mode else _value_of(members(answer).get("configOptions"), self.id)

    def value_in(self, session: Session) -> object:
        """Return the value it has in a session that was opened."""
        if self.is_mode:
            return members(session.answer.get("modes")).get("currentModeId")
        return _value_of(session.options(), self.id)


def _value_of(options: object, option_id: str) -> object:
    named = (row for row in objects(options) if option_id in (row.get("id"), row.get("configId")))
    return next((row.get("currentValue") for row in named), None)


@check("options")
async def options(trial: Trial) -> None:
    """Set an option."""
    session = await (await trial.connect(ALLOWING)).new()
    choice = _Choice(session)
    value = await choice.set(session)
    if value != choice.value:
        fail(f"{choice.id} to be {choice.value} in the answer", value)


@check("options-complete")
async def options_complete(trial: Trial) -> None:
    """Set an option to the value that it has: then no other one has a reason to be missing."""
    session = await (await trial.connect(ALLOWING)).new()
    now = {str(row.get("id") or row.get("configId")): row.get("currentValue") for row in session.options()}
    same = next(((id_, value) for id_, value in now.items() if isinstance(value, str)), None)
    if same is None or len(now) < 2:
        raise NotAdvertised("the agent has no two options")
    answer = members(await session.set_option(*same))
    had = {str(row.get("id") or row.get("configId")) for row in objects(answer.get("configOptions"))}
    if now.keys() - had:
        fail(f"all options in the answer: {', '.join(now)}", ", ".join(sorted(had)) or "none")


@check("options-unknown")
async def options_unknown(trial: Trial) -> None:
    """Set what is not offered."""
    session = await (await trial.connect(ALLOWING)).new()
    choice = _Choice(session)
    wrong = [(choice.id, NO_VALUE)] + [("holdfast-check-no-such-option", "x")] * (not choice.is_mode)
    for option_id, value in wrong:
        try:
            await session.set_option(option_id, value)
        except Refused:
            continue
        fail("an error", f"success for {option_id} = {value}")


@check("options-restored")
async def options_restored(trial: Trial) -> None:
    """Set an option, end the process, load in another."""
    connected = await trial.connect(ALLOWING)
    connected.need("load")
    session = await connected.new()
    choice = _Choice(session)
    await session.prompt(trial.prompts.talk)
    await choice.set(session)
    await leave(trial, session)
    again, _ = await loaded(trial, session.id)
    value = choice.value_in(again)
    if value != choice.value:
        fail(f"{choice.id} to be {choice.value} after the load", value)


# Modes


async def _with_modes(trial: Trial) -> tuple[Session, list[str], str]:
    """Return a session, the modes that it offers, and the one it is in."""
    session = await (await trial.connect(ALLOWING)).new()
    modes = members(session.answer.get("modes"))
    offered = [str(mode.get("id")) for mode in objects(modes.get("availableModes"))]
    if not offered:
        raise NotAdvertised("the agent has no modes")
    return session, offered, str(modes.get("currentModeId"))


@check("mode-offered")
async def mode_offered(trial: Trial) -> None:
    """Look for the current mode among those that are offered."""
    _, offered, current = await _with_modes(trial)
    if current not in offered:
        fail(f"one of {', '.join(offered)} as currentModeId", current)


@check("set-mode")
async def set_mode(trial: Trial) -> None:
    """Set another mode; what is then told of the mode says the same."""
    session, offered, current = await _with_modes(trial)
    mode = next((mode for mode in offered if mode != current), current)
    await session.wire.request("session/set_mode", {"sessionId": session.id, "modeId": mode})
    await session.wire.quiet(trial.quiet)
    told = [update.body for update in session.updates() if update.body.get("sessionUpdate") == "current_mode_update"]
    if told and told[-1].get("currentModeId") != mode:
        fail(f"{mode} as the current mode", told[-1].get("currentModeId"))


@check("set-mode-unknown")
async def set_mode_unknown(trial: Trial) -> None:
    """Set a mode that there is not."""
    session, _, _ = await _with_modes(trial)
    try:
        await session.wire.request("session/set_mode", {"sessionId": session.id, "modeId": NO_VALUE})
    except Refused:
        return
    fail("an error", "success")


# Forking


@check("fork")
async def fork(trial: Trial) -> None:
    """Fork a session."""
    connected, session = await _talked(trial, "fork")
    forked = await connected.fork(session.id)
    if forked.id == session.id:
        fail("a new id", "the same")


async def _forked(trial: Trial) -> tuple[Session, Session]:
    connected, session = await _talked(trial, "fork")
    connected.need("load")
    forked = await connected.fork(session.id)
    return session, forked


@check("fork-history")
async def fork_history(trial: Trial) -> None:
    """Look whether a fork begins with the past."""
    session, forked = await _forked(trial)
    await forked.prompt(trial.prompts.talk + " in the fork")
    await leave(trial, session)
    again, _ = await loaded(trial, forked.id)
    users = again.told().user
    if not users or trial.prompts.talk not in users[0] or "in the fork" in users[0]:
        fail(f"{trial.prompts.talk!r} as the first user message of the fork", users)


@check("fork-isolated")
async def fork_isolated(trial: Trial) -> None:
    """Talk in the fork, and look into the other."""
    session, forked = await _forked(trial)
    await forked.prompt(trial.prompts.talk + " in the fork")
    await leave(trial, session)
    again, _ = await loaded(trial, session.id)
    if any("in the fork" in text for text in again.told().user):
        fail("nothing of the fork in the session it was made of", again.told().user)


@check("fork-own-id")
async def fork_own_id(trial: Trial) -> None:
    """Talk in the fork, and look under which id the answer comes."""
    connected, session = await _talked(trial, "fork")
    forked = await connected.fork(session.id)
    await forked.wire.quiet(trial.quiet)
    before = len(forked.wire.frames)
    await forked.prompt(trial.prompts.talk)
    await forked.wire.quiet(trial.quiet)
    kinds = [update.body.get("sessionUpdate") for update in session.updates(before)]
    if any(str(kind).startswith("agent_") for kind in kinds):
        fail("the answer under the fork's id", "it came under the parent's")


# Ending


@check("close")
async def close(trial: Trial) -> None:
    """Close a session, and load it again."""
    connected, session = await _talked(trial, "close")
    connected.need("load")
    await connected.wire.request("session/close", {"sessionId": session.id})
    again = await connected.load(session.id)
    await again.wire.quiet(trial.quiet)


@check("close-quiet")
async def close_quiet(trial: Trial) -> None:
    """Close a session in the middle of a turn."""
    connected = await trial.connect(ALLOWING)
    connected.need("close")
    session = await connected.new()
    turn = await open_turn(trial, session)
    closing = connected.wire.begin("session/close", {"sessionId": session.id})
    turn.answer_as_cancelled()
    await connected.wire.result(closing, "session/close")
    closed = session.wire.answered_at
    await session.wire.quiet(trial.quiet)
    late = session.pieces(closed)
    if late:
        fail("nothing more after the answer to session/close", f"{late} pieces of the answer")
    if not turn.is_answered:
        fail("an answer to the prompt that was closed", "none")


@check("delete")
async def delete(trial: Trial) -> None:
    """Delete a session, and look for it, in a fresh process too."""
    connected, session = await _talked(trial, "delete")
    await connected.wire.request("session/delete", {"sessionId": session.id})
    await _expect_gone(connected, session)
    await leave(trial, session)
    await _expect_gone(await trial.connect(), session)


async def _expect_gone(connected: Connected, session: Session) -> None:
    if connected.can("list") and any(row.get("sessionId") == session.id for row in await connected.listed()):
        fail("a list without the deleted session", "it is there")
    if connected.can("load"):
        try:
            await connected.load(session.id)
        except Refused:
            return
        fail("an error from session/load", "success")


@check("delete-twice")
async def delete_twice(trial: Trial) -> None:
    """Delete a session twice."""
    connected, session = await _talked(trial, "delete")
    for _ in range(2):
        await connected.wire.request("session/delete", {"sessionId": session.id})


@check("id-not-reused")
async def id_not_reused(trial: Trial) -> None:
    """Delete a session, and create more."""
    connected, session = await _talked(trial, "delete")
    await connected.wire.request("session/delete", {"sessionId": session.id})
    ids = [(await connected.new()).id for _ in range(3)]
    await leave(trial, session)
    ids.append((await left(trial)).id)
    if session.id in ids:
        fail("new ids", f"{session.id} again")
