"""How the agent's session of one of ours is opened, and brought back when its process is gone (G4).

By the agent's resume; else by its load, whose replay is put aside and compared with what we have (`compare`); else by a
new session, which is told again what was said (`seeding`).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.errors import AgentRefused, AuthRequired, InvalidParams, RequestError, SessionNotFound
from holdfast.format import event_in
from holdfast.model import Fold, History, new_id
from holdfast_app.wrap.compare import Turn, compared, split_turns
from holdfast_app.wrap.process import as_object
from holdfast_app.wrap.record import AgentRecord

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Literal

    from holdfast.engine import LiveSession, SessionClient
    from holdfast.model import Event, OptionValue, Update
    from holdfast_app.wrap.process import AgentProcess
    from holdfast_app.wrap.remote import RemoteSession
    from holdfast_app.wrap.session import ProxySession

log: logging.Logger = logging.getLogger(__name__)

SURE_ID_LENGTH = 16
"""An id that is shorter may be a counter, and name another session by now: a resume of it proves nothing."""


TOLD_AGAIN = frozenset({"available_commands_update", "usage_update"})
"""What of a replay is news: what the agent can do now, and how full its context is."""


class Lost(NamedTuple):
    """What the agent's session does not know of our history, and why."""

    reason: Literal["lost", "torn", "fork", "handed over"]
    turns: Sequence[Turn]
    everything: bool
    """Whether it knows nothing at all of what was before."""
    in_the_past: bool = False
    """True if the conversation goes on from an earlier point than the files."""


class Restored(NamedTuple):
    """The agent's session, live again, and what it has to be told."""

    remote: RemoteSession
    lost: Lost | None = None


class Back(NamedTuple):
    """The agent's session, live again."""

    remote: RemoteSession
    answer: Update
    told: list[Event]
    """What the agent said of it meanwhile."""
    shows_past: bool
    """True if that shows the past of the session, False if it proves nothing of it."""

    @property
    def replayed(self) -> list[Event] | None:
        """What the agent showed of its past, None if it showed nothing."""
        return self.told if self.shows_past else None


async def bring_back(session: ProxySession, client: SessionClient | None) -> Restored:
    """Open the agent's session for one of ours, as it was before where the agent can do that.

    Raises `AgentRefused` where the agent cannot be started or refuses, `SessionNotFound` where it has forgotten the
    conversation and is not to be told again.
    """
    process = await session.port.process_for(session.live, client)
    if (live := _live_in(process, session)) is not None:
        if not session.options:
            await _take_over(session, live, live.answer, ())
        return Restored(live)
    turns = split_turns(await read_history(session.live))
    back = await _back_in_agent(session, process, client) or await _forked(session, process, client, turns)
    if back is not None:
        restored = await _check(session, back, turns)
        if restored is not None:
            return restored
    return await _begin_anew(session, process, client, turns)


async def read_history(live: LiveSession) -> History:
    """Read all of a session that is sealed, folded."""
    history = History()
    async for blocks in live.read():
        for block in blocks:
            for line in block.split(b"\n"):
                history.apply(event_in(line))
    return history


def _live_in(process: AgentProcess, session: ProxySession) -> RemoteSession | None:
    """Return the agent's session where it is live already: it is never loaded a second time."""
    remote = process.sessions.get(session.record.session or "")
    return remote if remote is not None and remote.owner in (None, session) else None


def roots_for(process: AgentProcess, client: SessionClient | None, cwd: str) -> Update:
    """Return what every request that opens a session says of it: those of the client, `cwd` where there is none."""
    cwd, *additional = (cwd,) if client is None else client.roots
    servers: list[Any] = [] if client is None else list(client.mcp_servers)
    roots: Update = {"cwd": cwd, "mcpServers": servers}
    if additional:
        if not process.can("additionalDirectories"):
            log.warning("The agent takes no additional directories; it works in %s alone", cwd)
        else:
            roots["additionalDirectories"] = additional
    meta = None if client is None else client.meta
    return roots if meta is None else {**roots, "_meta": meta}


async def _back_in_agent(session: ProxySession, process: AgentProcess, client: SessionClient | None) -> Back | None:
    """Ask the agent for the session it had; None where it has none, or not any more."""
    agent_id = session.record.session
    if agent_id is None or agent_id in process.sessions:  # …or has given the id to another
        return None
    agent, roots = process.dialect.agent, roots_for(process, client, session.live.cwd)
    try:
        if await _resumes(session, process, agent_id):
            return await _resume(process, agent_id, *agent.resume(agent_id, roots))
        if process.can("load"):
            return await load(process, agent_id, roots)
    except AgentRefused as e:
        if e.code == AuthRequired.code or not process.alive:
            raise
        log.info("The agent does not have session %s any more: %s", agent_id[:100], e)
    return None


async def _resumes(session: ProxySession, process: AgentProcess, agent_id: str) -> bool:
    """Return whether a resume is to be trusted: agents exist that resume what they do not have (P11)."""
    if not process.can("resume"):
        return False
    if len(agent_id) < SURE_ID_LENGTH and process.can("load"):
        return False
    if process.resume_is_sure is None:
        process.resume_is_sure = await _refuses_unknown(session, process)
    return process.resume_is_sure


async def _refuses_unknown(session: ProxySession, process: AgentProcess) -> bool:
    """Try to resume a session that does not exist: an agent that says it did proves nothing by a resume."""
    unknown = new_id("unknown")
    remote = process.register(unknown)
    roots: Update = {"cwd": session.live.cwd, "mcpServers": []}
    try:
        await process.request(*process.dialect.agent.resume(unknown, roots))
    except AgentRefused:
        return process.alive
    finally:
        process.forget(remote)
    log.info("The agent resumes sessions that it does not have; it is not trusted to")
    return False


async def _resume(process: AgentProcess, agent_id: str, method: str, params: Update) -> Back:
    remote = process.register(agent_id)  # agents exist that replay on a resume
    try:
        answer = as_object(await process.request(method, params))
        await remote.quiet_if_replaying()
    except BaseException:
        process.forget(remote)
        raise
    told = remote.end_replay()
    return Back(remote, answer, told, shows_past=_has_user_messages(told))


def _has_user_messages(told: Sequence[Event]) -> bool:
    """Return whether a replay that was not asked for is one: a warning of the agent alone is none (Codex, G4)."""
    return any(event.kind.startswith("user_message") for event in told)


async def load(process: AgentProcess, agent_id: str, roots: Update) -> Back:
    """Load a session of the agent, with all that it replays, also what comes after the answer."""
    remote = process.register(agent_id)
    try:
        answer = as_object(await process.request(*process.dialect.agent.load(agent_id, roots)))
        if process.dialect.agent.version == 1:
            await remote.quiet()
    except BaseException:
        process.forget(remote)
        raise
    return Back(remote, answer, remote.end_replay(), shows_past=True)


async def _forked(
    session: ProxySession, process: AgentProcess, client: SessionClient | None, turns: Sequence[Turn]
) -> Back | None:
    """Let the agent fork its session where ours is a fork of all that was said in it (G9); None where that is not so.

    Agents exist that replay the fork before they answer, or under the id of the other session: both are put aside.
    """
    record, parent_id = session.record, session.record.forked_from
    parent = process.sessions.get(parent_id or "")
    is_at_end = bool(turns) and record.knows == turns[-1].id and not turns[-1].is_forked_earlier
    if parent_id is None or not is_at_end or not process.can("fork") or (parent is not None and parent.busy):
        return None
    if parent is not None:
        parent.begin_replay()
    roots = roots_for(process, client, session.live.cwd)
    try:
        remote, answer = await process.open_new(*process.dialect.agent.fork(parent_id, roots), replays=True)
        if process.dialect.agent.version == 1:
            await remote.quiet()
    except AgentRefused as e:
        log.info("The agent does not fork its session: %s", e)
        return None
    finally:
        if parent is not None:
            parent.take_besides(compared(turns, record, parent.end_replay()).surplus)
    told = remote.end_replay()
    record.session = remote.id
    if not any(event.key for event in told):
        process.expect_as_parent(remote, parent_id)
    return Back(remote, answer, told, shows_past=_has_user_messages(told))


async def _check(session: ProxySession, back: Back, turns: Sequence[Turn]) -> Restored | None:
    """Find out what the agent knows (G5); None where that is nothing of what it was told."""
    record = session.record
    found = compared(turns, record, back.replayed)
    if found.knows_nothing:
        log.info("The agent has session %s no more, or another one of that name", back.remote.id[:100])
        back.remote.process.forget(back.remote)
        return None
    record.without_users = found.without_users
    reason = "torn" if record.forked_from is None else "fork"
    lost = Lost(reason, found.missing, everything=False) if found.missing else None
    if session.port.launch.lost_context == "refuse" and not all(turn.was_cancelled for turn in found.missing):
        back.remote.process.forget(back.remote)
        raise SessionNotFound(session.live.id)
    back.remote.answer = back.answer
    await _take_over(session, back.remote, back.answer, back.told)
    for event in found.surplus:
        session.take(event)
    if found.surplus_turn is not None:
        record.knows = found.surplus_turn
    if record.forked_from is not None:
        record.forked_from = None
        await _keep(session)
    session.keep_record()
    return Restored(back.remote, lost)


async def _keep(session: ProxySession) -> None:
    """Make durable which session of the agent it is, and let it be found by that id too."""
    assert session.record.session is not None
    session.keep_record()
    await session.live.save()
    await session.live.add_alias(session.record.session)


async def _begin_anew(
    session: ProxySession, process: AgentProcess, client: SessionClient | None, turns: Sequence[Turn]
) -> Restored:
    record = session.record
    reason = "fork" if record.forked_from is not None else "lost" if record.session is not None else "handed over"
    if turns and reason == "lost" and session.port.launch.lost_context == "refuse":
        raise SessionNotFound(session.live.id)
    new = process.dialect.agent.new(roots_for(process, client, session.live.cwd))
    remote, answer = await process.open_new(*new, replays=bool(turns))
    session.record = AgentRecord(session=remote.id, options=record.options)
    remote.answer = answer
    if turns:
        remote.take_besides(_about_now(remote.end_replay()))
    await _take_over(session, remote, answer, ())
    await _keep(session)
    if not turns:
        return Restored(remote)
    return Restored(remote, Lost(reason, turns, everything=True, in_the_past=turns[-1].is_forked_earlier))


async def _take_over(session: ProxySession, remote: RemoteSession, answer: Update, told: Sequence[Event]) -> None:
    """Take the agent's options, and set again what our record has of them (G4)."""
    wanted = dict(session.live.state.options)
    updates = [event.update() for event in told if event.kind == "config_option_update"]
    try:
        updates += [event.update() for event in remote.lifting.lift_configuration(answer)]
    except InvalidParams as e:
        log.warning("The agent's options cannot be used: %s", e)
    for update in updates:
        if update["sessionUpdate"] == "config_option_update":
            session.options_told(update, by_default=True)
        else:
            session.live.emit_update(update)
    for event in told:
        if event.kind in TOLD_AGAIN:
            session.take(event)
    differing: dict[str, OptionValue] = {}
    for option in session.options:
        value = wanted.get(option.id)
        if value is not None and value != session.values.get(option.id) and option.accepts(value):
            differing[option.id] = value
    if differing:
        await _set_again(session, remote, differing)


async def _set_again(session: ProxySession, remote: RemoteSession, values: Mapping[str, OptionValue]) -> None:
    """Set options as our record has them. What the agent says of that is no part of the conversation (G4)."""
    if remote.busy:
        await _set_options(session, remote, values)
        return
    remote.begin_replay()
    try:
        await _set_options(session, remote, values)
        before_answers = [event for event in remote.end_replay() if event.kind != "config_option_update"]
        remote.begin_replay()
        await remote.quiet_if_replaying()
    finally:
        behind = remote.end_replay()
    remote.take_besides(_about_now([*before_answers, *behind]))


async def _set_options(session: ProxySession, remote: RemoteSession, values: Mapping[str, OptionValue]) -> None:
    for option, value in values.items():
        try:
            await session.set_in_agent(remote, option, value)
        except RequestError as e:
            log.warning("The agent does not take %s as %s again: %s", value, option, e)
            session.live.state.options[option] = session.values[option]


def _about_now(told: Sequence[Event]) -> list[Event]:
    """Return what is about the state of a session, and no part of its conversation."""
    return [event for event in told if event.rule.fold is Fold.STATE]
