"""What is tried with every agent: scenes that build on each other, each with what it showed.

A scene raises where the agent, or the pair of it and the proxy, does not do what the scene is about. What it returns is
a note for the table, empty where there is nothing to add.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING, NamedTuple

from app.tests.field.acpx import Acpx
from app.tests.field.agents import declared
from app.tests.field.client import Gone, Refused
from app.tests.field.talk import Talk, delete, listed, said

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from app.tests.field.client import Client
    from app.tests.field.stage import Stage
    from app.tests.field.talk import Entry

WORD = "plum"
OTHER_WORD = "quince"
COUNT = "model:count 2000 40"


class Failed(Exception):
    """A scene did not go as it should; the text says what was seen instead."""


def expect(condition: object, seen: object) -> None:
    """Raise `Failed` with what was seen, unless a condition holds."""
    if not condition:
        raise Failed(str(seen)[:400])


class Scene(NamedTuple):
    """A scene by name, and what it is about, as a heading of the table."""

    name: str
    play: Callable[[Play], Awaitable[str]]
    about: str


class Play:
    """The state that goes from scene to scene."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.session = ""
        self.live: list[Entry] = []
        """The history as the client that was there holds it."""
        self.mode = ("", "")
        """The option that was set, and its value."""

    async def recall(self, talk: Talk) -> None:
        """Expect the model to know the word of the first scene."""
        answer = await talk.prompt("model:recall")
        expect(WORD in answer, f"the model was not sent the past: {answer!r}")


async def first_meeting(play: Play) -> str:
    """Talk, use a tool, be refused one, read a file, be cancelled, set an option: in one process."""
    async with play.stage.client() as client:
        talk = await Talk.new(client)
        play.session = talk.session
        expect("remember" in await talk.prompt(f"model:remember {WORD}"), said(client.of(talk.session)))
        await play.recall(talk)
        play.live = talk.history()
    return ""


async def tool_call(play: Play) -> str:
    """A tool call, allowed once: it runs, and is completed in what the client was told."""
    made = play.stage.cwd / "made"
    async with play.stage.client() as client:
        talk = await _asking(play, client)
        await talk.prompt("model:run touch made; echo hello")
        calls = [entry for entry in talk.history() if entry.kind == "tool"]
        expect(made.exists(), f"it did not run; {calls}")
        expect([call.status for call in calls] == ["completed"], calls)
    return "" if client.asked else "without asking"


async def refused_tool_call(play: Play) -> str:
    """A tool call that the user refuses does not run."""
    async with play.stage.client() as client:
        talk = await _asking(play, client)
        client.allow("reject_once")
        await talk.prompt("model:run touch forbidden; echo hello")
        if not client.asked:
            return "does not ask"
        expect(not (play.stage.cwd / "forbidden").exists(), "it ran all the same")
    return ""


async def client_file(play: Play) -> str:
    """A file is read; through the client where the agent uses it."""
    async with play.stage.client() as client:
        talk = await Talk.new(client)
        answer = await talk.prompt(f"model:read {play.stage.notes}")
        if "no tool" in answer:
            return "no such tool"
        expect("These are notes" in answer, answer)
        return "through the client" if {"read": str(play.stage.notes)} in client.files else "by itself"


async def cancel(play: Play) -> str:
    """A turn is cancelled in mid-answer, and says so; the session goes on."""
    async with play.stage.client() as client:
        talk = await Talk.new(client)
        since = len(client.updates)
        turn = talk.begin(COUNT)
        await talk.until_said("5 ", since)
        talk.cancel()
        stop = await talk.end_of(turn, since)
        expect("fine" in await talk.prompt("model:say fine"), "it does not go on")
        expect(stop == "cancelled", f"it says {stop}")
    return ""


async def option(play: Play) -> str:
    """An option keeps its value in a new process; wrapped, what the agent says of setting it again is not stored."""
    async with play.stage.client() as client:
        talk = await Talk.new(client)
        await talk.prompt("model:say hello")
        found = [it for it in talk.options.values() if it.get("category") == "mode" or it.get("id") == "mode"]
        if not found:
            return "no modes"
        name = found[0].get("id") or found[0]["configId"]
        others = [it["value"] for it in found[0]["options"] if it["value"] != found[0]["currentValue"]]
        await talk.set_option(name, others[0])
    async with play.stage.client() as client:
        loaded = await Talk.load(client, talk.session)
        expect(loaded.value(name) == others[0], f"{loaded.value(name)} instead of {others[0]}")
        seen = _of_agent(loaded.history())
        await loaded.prompt("model:say more")
    if play.stage.wrapped:
        async with play.stage.client() as client:
            history = _of_agent((await Talk.load(client, talk.session)).history())
            repeated = {entry.text for entry in history[len(seen) :]} & {entry.text for entry in seen}
            expect(not repeated, repeated)
    return ""


async def load(play: Play) -> str:
    """A new process has the same history, with the same ids, and the model knows it."""
    async with play.stage.client() as client:
        talk = await Talk.load(client, play.session)
        _expect_same(play, talk)
        await play.recall(talk)
        play.live = talk.history()
    return ""


async def whole_replay(play: Play) -> str:
    """A history with a tool call is loaded as it was seen: the same entries, ids and statuses."""
    async with play.stage.client() as client:
        talk = await _asking(play, client)
        await talk.prompt("model:run touch again; echo hello")
        seen = talk.history()
    async with play.stage.client() as client:
        _expect_as_seen(play, seen, (await Talk.load(client, talk.session)).history())
    return ""


async def _killed(play: Play, kill: Callable[[Client], None]) -> tuple[str, str]:
    """Kill in mid-answer; return the session and what the client had seen."""
    async with play.stage.client() as client:
        talk = await Talk.new(client)
        await talk.prompt(f"model:remember {WORD}")
        since = len(client.updates)
        turn = talk.begin(COUNT)
        await talk.until_said("12 ", since)
        kill(client)
        with contextlib.suppress(Refused, Gone):
            await talk.end_of(turn, since)
        seen = said(client.of(talk.session, since))
        expect("1000 " not in seen, "nobody was killed")
        return talk.session, seen


async def _restored(play: Play, session: str, seen: str) -> None:
    async with play.stage.client() as client:
        talk = await Talk.load(client, session)
        history = said(client.of(session))
        expect(seen in history, f"seen {seen!r}, loaded {history!r}")
        open_calls = [entry for entry in talk.history() if entry.status in ("pending", "in_progress")]
        expect(not open_calls, open_calls)
        await play.recall(talk)


async def kill_agent(play: Play) -> str:
    """The agent is killed in mid-answer: nothing seen is lost, and the model knows the past."""
    session, seen = await _killed(play, play.stage.kill_agent)
    await _restored(play, session, seen)
    return ""


async def kill_proxy(play: Play) -> str:
    """The proxy is killed in mid-answer."""
    session, seen = await _killed(play, play.stage.kill_proxy)
    await _restored(play, session, seen)
    return ""


async def kill_both(play: Play) -> str:
    """Proxy and agent are killed in mid-answer."""
    session, seen = await _killed(play, play.stage.kill_both)
    await _restored(play, session, seen)
    return ""


async def goes_on_after_agent_died(play: Play) -> str:
    """The client whose agent was killed goes on in the same connection."""
    async with play.stage.client() as client:
        talk = await Talk.new(client)
        await talk.prompt(f"model:remember {WORD}")
        since = len(client.updates)
        turn = talk.begin(COUNT)
        await talk.until_said("5 ", since)
        play.stage.kill_agent(client)
        with contextlib.suppress(Refused):
            await talk.end_of(turn, since)
        await play.recall(talk)
    return ""


async def fork(play: Play) -> str:
    """A fork knows the past, and what is said in it stays in it."""
    async with play.stage.client() as client:
        talk = await Talk.load(client, play.session)
        before = talk.history()
        forked = await talk.fork()
        expect(forked.session != talk.session, "it has the id of its parent")
        await play.recall(forked)
        expect(len(talk.history()) == len(before), "the fork speaks in its parent")
    return ""


async def list_and_delete(play: Play) -> str:
    """A session is listed; once deleted it is not, and cannot be loaded."""
    async with play.stage.client() as client:
        talk = await Talk.new(client)
        await talk.prompt("model:say hello")
    async with play.stage.client() as client:
        expect(talk.session in await listed(client), "it is not listed")
        await delete(client, talk.session)
        expect(talk.session not in await listed(client), "it stays listed")
    async with play.stage.client() as client:
        expect(talk.session not in await listed(client), "it comes back")
        try:
            await Talk.load(client, talk.session)
        except Refused:
            return ""
    raise Failed("it can be loaded although it was deleted")


async def acpx(play: Play) -> str:
    """acpx, for which every command is a process, leaves and comes back; the model knows the past."""
    answer = await asyncio.to_thread(_acpx, play.stage)
    expect(WORD in answer, f"the model was not sent the past: {answer!r}")
    return ""


def _acpx(stage: Stage) -> str:
    """Let acpx speak in two processes; return the second answer."""
    client = Acpx(stage)
    try:
        client.run("sessions", "new")
        client.prompt(f"model:remember {WORD}")
        client.end()
        return client.prompt("model:recall")
    finally:
        client.end()


async def hand_over(play: Play) -> str:
    """A session begun in this agent goes on in another by one command: one history, a visible boundary, no rights.

    What was allowed always in the first is asked again in the second (F2, G6).
    """
    agents = declared()
    other = play.stage.other(agents["goose" if play.stage.agent.name != "goose" else "codex"])
    async with play.stage.client() as client:
        talk = await _asking(play, client)
        client.allow("allow_always")
        await talk.prompt("model:run touch handed; echo hello")
        await talk.prompt(f"model:remember {WORD}")
        seen = _of_agent(talk.history())
    play.stage.run_holdfast("sessions", "hand-over", talk.session, "--to", other.agent.name)
    async with other.client() as client:
        loaded = await Talk.load(client, talk.session)
        expect(_of_agent(loaded.history())[: len(seen)] == seen, loaded.history())
        await play.recall(loaded)
        if other.agent.asking_mode:
            await loaded.set_option("mode", other.agent.asking_mode)
        await loaded.prompt("model:run touch handed; echo hello")
        expect(client.asked, "the second agent did not ask: a right has crossed")
    shown = play.stage.run_holdfast("sessions", "show", talk.session)
    expect(other.agent.name in shown, f"the boundary is not shown: {shown}")
    async with play.stage.client() as client:
        expect(talk.session not in await listed(client), "the first agent still has it")
    return f"to {other.agent.title}"


async def imported(play: Play) -> str:
    """What the agent kept itself before it was wrapped is imported, once, and goes on."""
    if play.stage.agent.importer is None:
        return "no reader"
    alone = play.stage.alone()
    async with alone.client() as client:
        talk = await Talk.new(client)
        await talk.prompt(f"model:remember {WORD}")
        await talk.prompt("model:say The garden is green.")
    command = ("sessions", "import", "--from", play.stage.agent.importer, "--agent", play.stage.agent.name, "--json")
    found = json.loads(play.stage.run_holdfast(*command))
    ours = {it["agentSessionId"]: it["sessionId"] for it in found["sessions"]}
    expect(talk.session in ours, f"{talk.session} is not among {found}")
    expect(not json.loads(play.stage.run_holdfast(*command))["sessions"], "it was imported twice")
    async with play.stage.client() as client:
        loaded = await Talk.load(client, ours[talk.session])
        expect("The garden is green." in said(client.of(loaded.session)), loaded.history())
        await play.recall(loaded)
    return ""


async def model_switched(play: Play) -> str:
    """The user configures another model between two starts: nothing is told again, and no warning is in the history."""
    agent = play.stage.agent
    if not agent.other_model:
        return "no second model"
    stage = play.stage.apart("model")
    async with stage.client() as client:
        talk = await Talk.new(client)
        await talk.prompt(f"model:remember {WORD}")
        seen = talk.history()
    agent.switch_model(stage.home)
    async with stage.client() as client:
        loaded = await Talk.load(client, talk.session)
        await play.recall(loaded)
    async with stage.client() as client:
        history = (await Talk.load(client, talk.session)).history()
        more = [entry.text for entry in _of_agent(history)[len(_of_agent(seen)) :] if entry.kind == "agent"]
        expect(len(more) == 1, more)
    return ""


async def bare_between(play: Play) -> str:
    """Wrapped, then alone, then wrapped: the session still opens everywhere, and what was said alone is in it."""
    async with play.stage.client() as client:
        talk = await Talk.new(client)
        await talk.prompt(f"model:remember {WORD}")
    own = await play.stage.own_id(talk.session)
    async with play.stage.alone().client() as client:
        try:
            bare = await Talk.load(client, own)
        except Refused as e:
            return f"cannot load alone ({e.code})"
        await play.recall(bare)
        await bare.prompt(f"model:remember {OTHER_WORD}")
    async with play.stage.client() as client:
        again = await Talk.load(client, talk.session)
        answer = await again.prompt("model:recall")
        expect(WORD in answer or OTHER_WORD in answer, f"the model was not sent the past: {answer!r}")
        history = again.history()
        expect(any(WORD in entry.text for entry in history if entry.kind == "user"), history)
        if OTHER_WORD not in answer:
            return "opens, without what was said alone"
        shown = any(OTHER_WORD in entry.text for entry in history if entry.kind == "user")
        return "" if shown else "the model knows what was said alone, it is not shown"


async def own_id(play: Play) -> str:
    """The agent's own id of a session is accepted too (G9)."""
    own = await play.stage.own_id(play.session)
    async with play.stage.client() as client:
        loaded = await Talk.load(client, own)
        expect("I will remember it" in said(client.of(own)), loaded.history())
    return ""


async def _asking(play: Play, client: Client) -> Talk:
    """Create a session, in the mode in which the agent asks first."""
    talk = await Talk.new(client)
    if play.stage.agent.asking_mode:
        await talk.set_option("mode", play.stage.agent.asking_mode)
    return talk


def _expect_same(play: Play, talk: Talk) -> None:
    """Expect a loaded history to be the one that was seen live, with the user's messages."""
    loaded = talk.history()
    _expect_as_seen(play, play.live, loaded)
    asked = "".join(entry.text for entry in loaded if entry.kind == "user")
    expect(asked == f"model:remember {WORD}model:recall", f"the user's messages are {asked}")


def _expect_as_seen(play: Play, seen: list[Entry], loaded: list[Entry]) -> None:
    """Expect what the agent said and did to be as it was seen.

    Wrapped, every entry has its id and is the same. Alone, many agents have no ids: words are compared, and calls.
    """
    ours, theirs = [_of_agent(entries) for entries in (seen, loaded)]
    if play.stage.wrapped:
        expect(theirs == ours and all(entry.id for entry in theirs), f"seen {ours}, loaded {theirs}")
        return
    for kind in ("agent", "agent_thought"):
        texts = ("".join(entry.text for entry in entries if entry.kind == kind) for entries in (ours, theirs))
        words = ["".join(text.split()) for text in texts]
        expect(words[0] == words[1], f"seen {words[0]!r}, loaded {words[1]!r}")
    calls = [[(entry.id, entry.status) for entry in entries if entry.kind == "tool"] for entries in (ours, theirs)]
    expect(calls[0] == calls[1], f"seen {calls[0]}, loaded {calls[1]}")


def _of_agent(entries: list[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.kind != "user"]


SCENES = (
    Scene("talk", first_meeting, "talks"),
    Scene("tool", tool_call, "tool call"),
    Scene("refuse", refused_tool_call, "refused call"),
    Scene("file", client_file, "reads files"),
    Scene("cancel", cancel, "cancel"),
    Scene("load", load, "load, go on"),
    Scene("replay", whole_replay, "whole replay"),
    Scene("option", option, "mode kept"),
    Scene("fork", fork, "fork"),
    Scene("delete", list_and_delete, "list, delete"),
    Scene("kill-agent", kill_agent, "agent killed"),
    Scene("goes-on", goes_on_after_agent_died, "goes on"),
    Scene("kill-proxy", kill_proxy, "proxy killed"),
    Scene("kill-both", kill_both, "both killed"),
    Scene("acpx", acpx, "acpx"),
    Scene("own-id", own_id, "own ids"),
    Scene("model", model_switched, "model switched"),
    Scene("bare", bare_between, "alone in between"),
    Scene("import", imported, "import"),
    Scene("hand-over", hand_over, "hand-over"),
)
ONLY_WRAPPED = ("acpx", "goes-on", "kill-proxy", "kill-both", "own-id", "model", "bare", "import", "hand-over")
"""Scenes that need a proxy."""
