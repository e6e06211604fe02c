"""Killing an agent in the middle of a turn, and looking for what the user had read."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from holdfast.testing.process_tree import alive
from holdfast_app.check.checks.open_turns import TOO_QUICK, OpenTurn, open_turn, ways
from holdfast_app.check.checks.prompts import ALLOWING
from holdfast_app.check.checks.registry import check
from holdfast_app.check.checks.restoring import loaded
from holdfast_app.check.outcomes import NotTested
from holdfast_app.check.trial import fail

if TYPE_CHECKING:
    from holdfast_app.check.session import Session, Told
    from holdfast_app.check.trial import Trial

PIECES = 3


class Killed(NamedTuple):
    """A conversation whose agent was killed, as it was heard and as it was replayed."""

    prompts: tuple[str, ...]
    """What the user had said; the last one is that of the turn that was killed."""
    earlier: str
    """What the agent had said in the turns before."""
    answer: str
    """What it had said in the turn that was killed."""
    replayed: Told
    session: Session
    """The loaded one."""


async def killed(trial: Trial, *before: str) -> Killed:
    """Talk, kill the agent in the middle of a turn, load the session in a fresh process.

    Raises `NotTested` where every turn is over before the kill.
    """
    for text in ways(trial):
        connected = await trial.connect(ALLOWING)
        connected.need("load")
        _need_process(trial)
        session = await connected.new()
        for earlier in before:
            await session.prompt(earlier)
        start = len(session.wire.frames)
        turn = OpenTurn(session, text)
        runs = await turn.runs(PIECES, 0)
        await session.wire.link.kill()
        await session.wire.until(lambda wire=session.wire: wire.ended, trial.settings.deadline)
        if runs and not turn.is_over:
            earlier, answer = session.told(until=start).agent, session.told(start).agent
            again, _ = await loaded(trial, session.id)
            return Killed((*before, text), earlier, answer, again.told(), again)
    raise NotTested(TOO_QUICK)


def _need_process(trial: Trial) -> None:
    if not trial.wires[-1].link.is_process:
        raise NotTested("the agent is no process of this machine")


async def _seen_killed(trial: Trial) -> Killed:
    """Return a conversation of two turns, killed in the second, to be looked at only."""
    return await trial.once("killed", lambda: killed(trial, trial.prompts.talk))


@check("kill-prompt")
async def kill_prompt(trial: Trial) -> None:
    """Look for the prompt."""
    both = await _seen_killed(trial)
    prompt = both.prompts[-1]  # the turn before may have had the same
    if sum(prompt in text for text in both.replayed.user) < sum(prompt in text for text in both.prompts):
        fail(f"the user message {prompt!r}", both.replayed.user)


@check("kill-answer")
async def kill_answer(trial: Trial) -> None:
    """Look for what had been read."""
    both = await _seen_killed(trial)
    answer = both.answer.strip()
    if not answer:
        raise NotTested("the agent had said nothing when it was killed; see --prompt-long")
    if both.replayed.agent.count(answer) < (both.earlier + both.answer).count(answer):
        kept = len(_common(both.answer, both.replayed.agent.strip().removeprefix(both.earlier.strip())))
        fail(f"the {len(both.answer)} characters that were read", f"{kept} of them")


@check("kill-earlier")
async def kill_earlier(trial: Trial) -> None:
    """Look for the turn before."""
    both = await _seen_killed(trial)
    if not any(trial.prompts.talk in text for text in both.replayed.user):
        fail(f"the user message {trial.prompts.talk!r}", both.replayed.user)


@check("kill-goes-on")
async def kill_goes_on(trial: Trial) -> None:
    """Go on after the kill."""
    both = await killed(trial)
    turn = await both.session.prompt(trial.prompts.talk)
    if turn.stop_reason != "end_turn":
        fail("a turn that ends with end_turn", turn.stop_reason)


@check("kill-calls-closed")
async def kill_calls_closed(trial: Trial) -> None:
    """Look for tool calls that seem to run."""
    both = await killed(trial, trial.prompts.tool)
    left = [call for call in both.replayed.calls if not call.is_closed]
    if left:
        fail("every tool call completed or failed", f"{left[0].title} is {left[0].status}")


@check("kill-no-orphans")
async def kill_no_orphans(trial: Trial) -> None:
    """Look for processes that outlive the agent."""
    connected = await trial.connect(ALLOWING)
    _need_process(trial)
    session = await connected.new()
    with suppress(NotTested):  # a quick agent may have left something behind too
        await open_turn(trial, session)
    children = session.wire.link.children
    await session.wire.link.kill(alone=True)
    loop = asyncio.get_running_loop()
    last = loop.time() + trial.settings.exit_deadline
    while (left := alive(children)) and loop.time() < last:  # noqa: ASYNC110  (nobody tells us)
        await asyncio.sleep(0.1)
    if left:
        seconds = trial.settings.exit_deadline
        fail("no process left", f"{len(left)} of {len(children)}, {seconds:g} s after the kill")


@check("exit")
async def exit_(trial: Trial) -> None:
    """End the input of an idle agent."""
    connected = await trial.connect()
    _need_process(trial)
    await connected.new()
    if await connected.wire.link.close(trial.settings.exit_deadline) is None:
        fail("an exit when its input ends", f"it ran on for {trial.settings.exit_deadline:g} s")


@check("exit-in-turn")
async def exit_in_turn(trial: Trial) -> None:
    """End the input of an agent that talks."""
    connected = await trial.connect(ALLOWING)
    _need_process(trial)
    session = await connected.new()
    await open_turn(trial, session)
    if await connected.wire.link.close(trial.settings.exit_deadline) is None:
        fail("an exit when its input ends", f"it ran on for {trial.settings.exit_deadline:g} s")


def _common(one: str, other: str) -> str:
    """Return how both begin, as far as they are the same."""
    at = next((at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), None)
    return one[:at] if at is not None else min(one, other, key=len)
