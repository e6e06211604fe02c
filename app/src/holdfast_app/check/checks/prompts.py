"""Creating a session, prompting in it, and cancelling."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from holdfast_app.check.checks.open_turns import PERMISSION, cancelled_turn, is_over
from holdfast_app.check.checks.registry import check
from holdfast_app.check.outcomes import NotAdvertised, NotTested, Refused
from holdfast_app.check.session import STOP_REASONS
from holdfast_app.check.trial import fail, not_done
from holdfast_app.check.wire import members, objects

if TYPE_CHECKING:
    from holdfast_app.check.session import Session
    from holdfast_app.check.trial import Connected, Trial
    from holdfast_app.check.wire import Json

NO_SESSION = "holdfast-check-no-such-session"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGNgYGAAAAAEAAH2FzhVAAAAAElFTkSuQmCC"


def allows(params: dict[str, Json]) -> Json:
    """Allow what a permission request asks for."""
    return chosen(params, "allow")


def rejects(params: dict[str, Json]) -> Json:
    """Reject what a permission request asks for."""
    return chosen(params, "reject")


def chosen(params: dict[str, Json], wanted: str) -> Json:
    """Answer a permission request by an option of a kind; cancel where there is none.

    One that holds for this time only is chosen if it is offered: an agent keeps the others for later sessions.
    """
    fitting = [row for row in objects(params.get("options")) if str(row.get("kind", "")).startswith(wanted)]
    if not fitting:
        return {"outcome": {"outcome": "cancelled"}}
    option = next((row for row in fitting if row.get("kind") == f"{wanted}_once"), fitting[0])
    return {"outcome": {"outcome": "selected", "optionId": option.get("optionId")}}


ALLOWING = {PERMISSION: allows}
REJECTING = {PERMISSION: rejects}


@check("new")
async def new(trial: Trial) -> None:
    """Create two sessions."""
    connected = await trial.connect()
    ids = [(await connected.new()).id for _ in range(2)]
    if len(set(ids)) != len(ids):
        fail("two ids", ids)


@check("new-relative-cwd")
async def new_relative_cwd(trial: Trial) -> None:
    """Name a directory that depends on where one stands."""
    await _refused(trial, {"cwd": "some/where", "mcpServers": []}, None)


@check("new-without-cwd")
async def new_without_cwd(trial: Trial) -> None:
    """Name no directory."""
    await _refused(trial, {"mcpServers": []}, -32602)


@check("new-relative-roots")
async def new_relative_roots(trial: Trial) -> None:
    """Name a further directory that depends on where one stands."""
    params: dict[str, Json] = {"cwd": trial.cwd, "mcpServers": [], "additionalDirectories": ["some/where"]}
    await _refused(trial, params, None, "additionalDirectories")


async def _refused(trial: Trial, params: dict[str, Json], code: int | None, ability: str = "") -> None:
    connected = await trial.connect()
    if ability:
        connected.need(ability)
    try:
        answer = await connected.wire.request("session/new", params)
    except Refused as e:
        if code is not None and e.code != code:
            fail(str(code), e)
        return
    fail("an error", f"success: {answer}")


@check("prompt-ends")
async def prompt_ends(trial: Trial) -> None:
    """Say something."""
    turn = await (await (await trial.connect(ALLOWING)).new()).prompt(trial.prompts.talk)
    if turn.stop_reason not in STOP_REASONS:
        fail(f"one of {', '.join(sorted(STOP_REASONS))}", turn.stop_reason)


@check("prompt-answers")
async def prompt_answers(trial: Trial) -> None:
    """Look for what the agent says."""
    session = await (await trial.connect(ALLOWING)).new()
    await session.prompt(trial.prompts.talk)
    if not session.told().agent.strip():
        fail("an answer as agent_message updates", f"{len(session.updates())} updates without one")


@check("prompt-acknowledged")
async def prompt_acknowledged(trial: Trial) -> None:
    """Look for the message that the answer names."""
    session = await (await trial.connect(ALLOWING)).new()
    turn = await session.prompt(trial.prompts.talk)
    if turn.message_id is None:
        fail("a messageId in the answer to session/prompt", "none")
    await session.wire.quiet(trial.quiet)
    kinds = ("user_message", "user_message_chunk")
    shown = [update.body.get("messageId") for update in session.updates() if update.body.get("sessionUpdate") in kinds]
    if turn.message_id not in shown:
        fail(f"a user_message with the id {turn.message_id}", shown)


@check("prompt-states")
async def prompt_states(trial: Trial) -> None:
    """Look at the states of a turn."""
    session = await (await trial.connect(ALLOWING)).new()
    before = len(session.wire.frames)
    await session.prompt(trial.prompts.talk)
    states = [update.body.get("state") for update in session.updates(before) if "state" in update.body]
    if "running" not in states or states[-1] != "idle":
        fail("running, and idle at the end", states)


@check("nothing-after-end")
async def nothing_after_end(trial: Trial) -> None:
    """Wait a while after the end."""
    session = await (await trial.connect(ALLOWING)).new()
    turn = await session.prompt(trial.prompts.talk)
    await session.wire.quiet(trial.quiet)
    late = [update.body.get("sessionUpdate") for update in session.updates(turn.ended_at)]
    spoken = [kind for kind in late if str(kind).startswith(("agent_", "tool_call", "plan"))]
    if spoken:
        fail("no more of the turn after its end", spoken)


@check("own-updates")
async def own_updates(trial: Trial) -> None:
    """Talk in a session while another one is at work."""
    connected = await trial.connect(ALLOWING)
    one, other = await connected.new(), await connected.new()
    wire, start = one.wire, len(one.wire.frames)
    prompt = one.begin(trial.prompts.long)

    def seen() -> bool:
        return bool(one.pieces(start) or other.pieces(start)) or is_over(one, prompt, start) or wire.ended

    await wire.until(seen, wire.deadline)
    if other.pieces(start):
        fail("nothing in a session that was not asked", "what the other session's agent said")
    try:
        turn = await other.prompt(trial.prompts.talk)
    except Refused as e:
        raise NotTested(f"the agent works in one session at a time: {e}") from None
    await wire.until(lambda: is_over(one, prompt, start) or bool(other.pieces(turn.ended_at)), trial.quiet)
    if other.pieces(turn.ended_at):
        fail("nothing more in a session whose turn has ended", "what the other session's agent said")
    if not other.told(start).agent.strip():
        fail("the answer in the session that was asked", "none")
    one.cancel()
    await one.end_of(prompt, start)


@check("prompt-unknown-session")
async def prompt_unknown_session(trial: Trial) -> None:
    """Say something in a session that does not exist."""
    connected = await trial.connect()
    await connected.new()
    prompt = [{"type": "text", "text": trial.prompts.talk}]
    try:
        answer = await connected.wire.request("session/prompt", {"sessionId": NO_SESSION, "prompt": prompt})
    except Refused:
        return
    fail("an error", f"success: {answer}")


@check("prompt-not-advertised")
async def prompt_not_advertised(trial: Trial) -> None:
    """Send an image to an agent that takes none."""
    connected = await trial.connect(ALLOWING)
    if connected.can("image"):
        raise NotAdvertised("the agent takes images, so there is nothing to refuse")
    session = await connected.new()
    try:
        await session.prompt(trial.prompts.talk, {"type": "image", "mimeType": "image/png", "data": PIXEL})
    except Refused:
        return
    fail("an error", "success")


@check("message-ids")
async def message_ids(trial: Trial) -> None:
    """Look whether pieces say to which message they belong."""
    session = await (await trial.connect(ALLOWING)).new()
    turn = await session.prompt(trial.prompts.talk)
    nameless = [
        update for update in turn.updates
        if update.get("sessionUpdate") == "agent_message_chunk" and not isinstance(update.get("messageId"), str)
    ]  # fmt: skip
    if nameless:
        fail("a messageId in every agent_message_chunk", f"{len(nameless)} without one")


@check("two-prompts")
async def two_prompts(trial: Trial) -> None:
    """Send two prompts at once."""
    session = await (await trial.connect(ALLOWING)).new()
    wire = session.wire
    first, second = session.begin(trial.prompts.talk), session.begin(trial.prompts.talk)
    for prompt in (first, second):
        await wire.result(prompt, "session/prompt")
    if trial.version == 2:
        await _idles(trial, session, 2)


async def _idles(trial: Trial, session: Session, count: int) -> None:
    def idles() -> int:
        return sum(update.body.get("state") == "idle" and "stopReason" in update.body for update in session.updates())

    if not await session.wire.until(lambda: idles() >= count, trial.settings.deadline):
        fail(f"{count} turns that end", idles())


# Cancelling


@check("cancel")
async def cancel(trial: Trial) -> None:
    """Cancel a turn."""
    session = await (await trial.connect(ALLOWING)).new()
    turn = await cancelled_turn(trial, session)
    if turn.stop_reason != "cancelled":
        fail("the stop reason cancelled", turn.stop_reason)


@check("cancel-idle")
async def cancel_idle(trial: Trial) -> None:
    """Cancel nothing, then say something."""
    session = await (await trial.connect(ALLOWING)).new()
    session.cancel()
    turn = await session.prompt(trial.prompts.talk)
    if turn.stop_reason == "cancelled":
        fail("a turn that is not cancelled", "one that is")


@check("usable-after-cancel")
async def usable_after_cancel(trial: Trial) -> None:
    """Go on after a cancelled turn."""
    session = await (await trial.connect(ALLOWING)).new()
    await cancelled_turn(trial, session)
    turn = await session.prompt(trial.prompts.talk)
    if turn.stop_reason == "cancelled":
        fail("a turn that is not cancelled", "one that is")


# Tools and permissions


async def turn_with_tool(trial: Trial, connected: Connected) -> Session:
    """Let the agent use a tool; return the session."""
    session = await connected.new()
    await session.prompt(trial.prompts.tool)
    told = session.told()
    if not told.calls:
        raise not_done("used no tool", "--prompt-tool", told.agent)
    return session


@check("tool-call-announced")
async def tool_call_announced(trial: Trial) -> None:
    """Look at how tool calls begin."""
    session = await turn_with_tool(trial, await trial.connect(ALLOWING))
    seen: set[Any] = set()
    for update in session.updates():
        if update.body.get("sessionUpdate") not in ("tool_call", "tool_call_update"):
            continue
        id_ = update.body.get("toolCallId")
        if id_ not in seen and not isinstance(update.body.get("title"), str):
            fail("a title where a tool call begins", update.body)
        seen.add(id_)


@check("tool-call-closed")
async def tool_call_closed(trial: Trial) -> None:
    """Look for tool calls that were left open."""
    session = await turn_with_tool(trial, await trial.connect(ALLOWING))
    left = [call for call in session.told().calls if not call.is_closed]
    if left:
        fail("every tool call completed or failed", f"{left[0].title} is {left[0].status}")


async def _asked(trial: Trial, answerers: dict[str, Any]) -> tuple[Session, dict[str, Json]]:
    """Let the agent ask for permission; return the session and the question."""
    session = await (await trial.connect(answerers)).new()
    await session.prompt(trial.prompts.ask)
    asked = _questions(session)
    if not asked:
        raise not_done("asked for no permission", "--prompt-ask", session.told().agent)
    return session, asked[0]


def _questions(session: Session) -> list[dict[str, Json]]:
    """Return the permission requests of the agent."""
    return [params for method, params in session.wire.asked if method == PERMISSION]


def _place_of(session: Session, asked: dict[str, Json]) -> int:
    """Return the place of a question among all frames."""
    return next(at for at, frame in enumerate(session.wire.frames, 1) if members(frame.value).get("params") is asked)


def _call(asked: dict[str, Json]) -> dict[str, Json]:
    """Return the tool call that a question is about: version 2 puts it into a subject."""
    return members(asked.get("toolCall") or members(asked.get("subject")).get("toolCall"))


@check("permission-options")
async def permission_options(trial: Trial) -> None:
    """Look at what the user is offered."""
    _, asked = await _asked(trial, REJECTING)
    kinds = [option.get("kind") for option in objects(asked.get("options"))]
    if not any(str(kind).startswith("reject") for kind in kinds):
        fail("an option that rejects", kinds)


@check("permission-call")
async def permission_call(trial: Trial) -> None:
    """Look at what the user is told: a client guesses where the kind is missing.

    In version 2 a question may be about a command, or about nothing but what its title says: there is no call then.
    """
    _, asked = await _asked(trial, REJECTING)
    call, subject = _call(asked), members(asked.get("subject"))
    if trial.version == 2 and subject.get("type") != "tool_call":
        told = subject.get("command") if subject.get("type") == "command" else asked.get("title")
        if not isinstance(told, str) or not told.strip():
            fail("the command or the title of the question", told)
        return
    missing = [name for name in ("kind", "title") if not isinstance(call.get(name), str)]
    if missing:
        fail("the kind and the title of the tool call", f"no {' and no '.join(missing)}")


@check("permission-rejected")
async def permission_rejected(trial: Trial) -> None:
    """Reject, and look whether it was done all the same: the call failed, and no file came to be."""
    session, asked = await _asked(trial, REJECTING)
    asked_for, at = _call(asked).get("toolCallId"), _place_of(session, asked)
    over = {call.id for call in session.told(until=at).calls if call.is_closed}  # the question is about what comes next
    calls = [call for call in session.told().calls if call.id == asked_for and call.id not in over]
    done = [call for call in calls if call.status == "completed"]
    if done:
        fail("a tool call that failed", f"{done[0].title} was completed")
    if "pebble.txt" in trial.files():
        fail("nothing done", "pebble.txt was made")


@check("permission-cancelled")
async def permission_cancelled(trial: Trial) -> None:
    """Cancel the turn while the question is open, as an editor does."""
    answered = asyncio.Event()

    async def wait(_params: dict[str, Json]) -> Json:
        await answered.wait()
        return {"outcome": {"outcome": "cancelled"}}

    session = await (await trial.connect({PERMISSION: wait})).new()
    wire, start = session.wire, len(session.wire.frames)
    prompt = session.begin(trial.prompts.ask)

    await wire.until(lambda: bool(_questions(session)) or is_over(session, prompt, start), trial.settings.deadline)
    if not _questions(session):
        raise not_done("asked for no permission", "--prompt-ask", session.told().agent)
    session.cancel()
    answered.set()
    turn = await session.end_of(prompt, start)
    if turn.stop_reason != "cancelled":
        fail("the stop reason cancelled", turn.stop_reason)
