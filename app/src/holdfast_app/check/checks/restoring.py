"""Bringing sessions back: what a client that watched live and one that loads later should both have."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from holdfast_app.check.checks.open_turns import cancelled_turn, ways
from holdfast_app.check.checks.prompts import ALLOWING, NO_SESSION
from holdfast_app.check.checks.registry import check
from holdfast_app.check.outcomes import NotAdvertised, Refused
from holdfast_app.check.trial import fail, not_done

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast_app.check.session import Call, Session, Told
    from holdfast_app.check.trial import Connected, Trial


class Twice(NamedTuple):
    """One conversation, as it was heard live and as it was replayed to another process."""

    live: Told
    replayed: Told
    session: Session
    """The loaded one."""
    answered_at: int
    """The place of the answer to the load among the frames."""
    ids: set[str]
    """The ids that were heard live."""


async def left(trial: Trial, *prompts: str, needs: str | None = None) -> Session:
    """Talk in a new session, then end the agent's process in order; return the session.

    Raises `NotAdvertised` where the agent does not advertise what the caller `needs`.
    """
    connected = await trial.connect(ALLOWING)
    if needs is not None:
        connected.need(needs)
    session = await connected.new()
    for prompt in prompts:
        await session.prompt(prompt)
    await session.wire.quiet(trial.quiet)
    await leave(trial, session)
    return session


async def leave(trial: Trial, session: Session) -> None:
    """End the agent's process as editors do: end its input, and kill it if that does not help."""
    if await session.wire.link.close(trial.settings.exit_deadline) is None:
        await session.wire.link.kill()


async def loaded(trial: Trial, session_id: str) -> tuple[Session, int]:
    """Load a session in a fresh process; return it when the replay is quiet, and where the answer came."""
    connected = await trial.connect(ALLOWING)
    session = await connected.load(session_id)
    answered = session.wire.answered_at
    await session.wire.quiet(trial.quiet)
    return session, answered


async def twice(trial: Trial, *prompts: str) -> Twice:
    """Talk, end the process, load in another."""
    live = await left(trial, *prompts, needs="load")
    session, answered = await loaded(trial, live.id)
    return Twice(live.told(), session.told(), session, answered, _ids(live))


async def said_twice(trial: Trial, *prompts: str) -> Twice:
    """Return such a conversation, to be looked at only: scripts with the same prompts look at the same one."""
    return await trial.once(f"twice {prompts}", lambda: twice(trial, *prompts))


@check("load")
async def load(trial: Trial) -> None:
    """Load a session in another process."""
    both = await said_twice(trial, trial.prompts.talk)
    if not both.session.updates():
        fail("a replay", "no update at all")


@check("load-user-messages")
async def load_user_messages(trial: Trial) -> None:
    """Compare the user's messages: each prompt is there, in order; an agent may have added words of its own."""
    prompts = (trial.prompts.talk, trial.prompts.talk + " again")
    both = await said_twice(trial, *prompts)
    replayed = list(both.replayed.user)
    for prompt in prompts:
        at = next((i for i, text in enumerate(replayed) if prompt in text), None)
        if at is None:
            fail(f"the user message {prompt!r}", replayed)
        del replayed[: at + 1]


@check("load-agent-messages")
async def load_agent_messages(trial: Trial) -> None:
    """Compare what the agent said."""
    both = await said_twice(trial, trial.prompts.talk)
    if both.live.agent.strip() != both.replayed.agent.strip():
        fail(f"{both.live.agent!r}", repr(both.replayed.agent))


@check("load-order")
async def load_order(trial: Trial) -> None:
    """Compare what the agent said before the second prompt."""
    prompts = (trial.prompts.talk, trial.prompts.talk + " again")
    both = await said_twice(trial, *prompts)
    was, now = both.live.said_before(prompts[1]), both.replayed.said_before(prompts[1])
    if was != now:
        fail(f"{was!r} before the second prompt", repr(now))


@check("load-thoughts")
async def load_thoughts(trial: Trial) -> None:
    """Compare the thoughts."""
    both = await said_twice(trial, trial.prompts.think)
    if not both.live.thoughts.strip():
        raise NotAdvertised("the agent showed no thoughts (if it has any: --prompt-think)")
    if both.live.thoughts.strip() != both.replayed.thoughts.strip():
        fail(repr(both.live.thoughts), repr(both.replayed.thoughts))


@check("load-tool-calls")
async def load_tool_calls(trial: Trial) -> None:
    """Compare the tool calls: how many, and how they ended."""
    both = await said_twice(trial, trial.prompts.tool)
    if not both.live.calls:
        raise not_done("used no tool", "--prompt-tool", both.live.agent)
    was = Counter(call.status for call in both.live.calls)
    now = Counter(call.status for call in both.replayed.calls)
    if was != now:
        fail(_listed(both.live.calls), _listed(both.replayed.calls))


def _listed(calls: Sequence[Call]) -> str:
    return ", ".join(f"{call.title} ({call.status})" for call in calls) or "no tool call"


@check("load-ids")
async def load_ids(trial: Trial) -> None:
    """Compare ids. A message that had none live does not count."""
    both = await said_twice(trial, trial.prompts.tool)
    now = _ids(both.session)
    if both.ids - now:
        fail(f"the ids {sorted(both.ids)}", sorted(now))


def _ids(session: Session) -> set[str]:
    """Return the ids that the agent gave to what it said and did."""
    said = [update.body for update in session.updates()]
    kinds = ("agent_message", "agent_thought", "tool_call")
    spoken = [body for body in said if str(body.get("sessionUpdate")).startswith(kinds)]
    return {str(body[name]) for body in spoken for name in ("messageId", "toolCallId") if name in body}


@check("load-before-answer")
async def load_before_answer(trial: Trial) -> None:
    """Look for what is replayed after the answer."""
    both = await said_twice(trial, trial.prompts.talk)
    late = [update.body.get("sessionUpdate") for update in both.session.updates(both.answered_at)]
    spoken = [kind for kind in late if str(kind).startswith(("agent_", "user_", "tool_call"))]
    if spoken:
        fail("the whole replay before the answer", f"{len(spoken)} updates after it, as {spoken[0]}")


@check("load-once")
async def load_once(trial: Trial) -> None:
    """Look for what is replayed twice."""
    both = await said_twice(trial, trial.prompts.talk)
    users = [text for text in both.replayed.user if trial.prompts.talk in text]
    if len(users) > 1:
        fail("the prompt once", f"{len(users)} times")
    said = both.live.agent.strip()
    if said and both.replayed.agent.count(said) > 1:
        fail("the answer once", repr(both.replayed.agent))


async def _cancelled(trial: Trial) -> Twice:
    """Talk, cancel a turn, end the process, load in another."""
    connected = await trial.connect(ALLOWING)
    connected.need("load")
    live = await connected.new()
    await live.prompt(trial.prompts.talk)
    await cancelled_turn(trial, live)
    await live.wire.quiet(trial.quiet)
    await leave(trial, live)
    session, answered = await loaded(trial, live.id)
    return Twice(live.told(), session.told(), session, answered, _ids(live))


@check("load-own-words")
async def load_own_words(trial: Trial) -> None:
    """Look for words of others in the user's messages, after a turn that ended well and one that was cancelled."""
    both = await trial.once("cancelled", lambda: _cancelled(trial))
    said = {"".join(text.split()) for text in (trial.prompts.talk, *ways(trial))}
    foreign = [text for text in both.replayed.user if "".join(text.split()) not in said]
    if foreign:
        fail("the two prompts, and nothing else, as user messages", foreign[0])


@check("load-cancelled")
async def load_cancelled(trial: Trial) -> None:
    """Look for what was said before the cancel."""
    both = await trial.once("cancelled", lambda: _cancelled(trial))
    live, replayed = both.live.agent.strip(), both.replayed.agent.strip()
    if live not in replayed:
        fail(f"{live[-300:]!r}", repr(replayed[-300:]))


@check("load-unknown")
async def load_unknown(trial: Trial) -> None:
    """Load a session that does not exist."""
    connected = await trial.connect()
    try:
        await connected.load(NO_SESSION)
    except Refused:
        return
    fail("an error", "success")


@check("load-goes-on")
async def load_goes_on(trial: Trial) -> None:
    """Go on in a loaded session, and load that."""
    both = await twice(trial, trial.prompts.talk)
    more = trial.prompts.talk + " once more"
    turn = await both.session.prompt(more)
    if turn.stop_reason != "end_turn":
        fail("a turn that ends with end_turn", turn.stop_reason)
    await leave(trial, both.session)
    again, _ = await loaded(trial, both.session.id)
    users = again.told().user
    if not any(more in text for text in users) or not any(trial.prompts.talk in text for text in users):
        fail("both prompts", users)


@check("load-blank")
async def load_blank(trial: Trial) -> None:
    """Load a session that never got a prompt, in another process."""
    session = await left(trial, needs="load")
    await loaded(trial, session.id)


# Resuming


async def resumed(trial: Trial) -> tuple[Connected, Session, Session]:
    """Talk, end the process, resume in another; return that, the live session and the resumed one."""
    live = await left(trial, trial.prompts.talk, needs="resume")
    connected = await trial.connect(ALLOWING)
    return connected, live, await connected.resume(live.id)


@check("resume")
async def resume(trial: Trial) -> None:
    """Resume in another process."""
    await resumed(trial)


@check("resume-silent")
async def resume_silent(trial: Trial) -> None:
    """Look for a replay."""
    _, _, session = await resumed(trial)
    await session.wire.quiet(trial.quiet)
    told = session.told()
    if told.user or told.agent or told.calls:
        fail("no replay", f"{len(told.user)} user messages and {len(told.agent)} characters")


@check("resume-unknown")
async def resume_unknown(trial: Trial) -> None:
    """Resume a session that does not exist."""
    connected = await trial.connect()
    try:
        await connected.resume(NO_SESSION)
    except Refused:
        return
    fail("an error", "success")


@check("resume-goes-on")
async def resume_goes_on(trial: Trial) -> None:
    """Go on in a resumed session."""
    _, _, session = await resumed(trial)
    turn = await session.prompt(trial.prompts.talk)
    if turn.stop_reason != "end_turn":
        fail("a turn that ends with end_turn", turn.stop_reason)
