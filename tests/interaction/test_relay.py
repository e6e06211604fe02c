"""One session, many clients, in whatever process they are: what each of them sees (F4).

Every host here has a store, an engine and a socket of its own, as a process has. `tests/faults/test_relay_kills.py` has
real processes, and kills them.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.support.acp import Refused, cut_links, patiently, serving
from tests.support.links import PATIENCE
from tests.support.searches import HeldSearches
from tests.support.sessions import eventually

from holdfast import Agent
from holdfast.engine.relay import finding
from holdfast.engine.relay.follower import FollowedSession, _FollowerLink  # pyright: ignore[reportPrivateUsage]
from holdfast.engine.relay.owner import OwnerLink, RelayService
from holdfast.errors import PositionLost

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from tests.support.acp import Client, Serving

    from holdfast import Turn

MIXED = pytest.mark.parametrize(("ours", "theirs"), [(1, 2), (2, 1), (1, 1), (2, 2)])


class Shared:
    """An agent that does what prompts say, in every host alike; `gates` are what a ``wait`` waits for."""

    def __init__(self) -> None:
        self.gates: dict[str, asyncio.Event] = {}
        self.performed: list[str] = []

    def gate(self, name: str) -> asyncio.Event:
        return self.gates.setdefault(name, asyncio.Event())

    def agent(self) -> Agent:
        agent = Agent("shared")
        agent.option("units", name="Units", values={"c": "Celsius", "f": "Fahrenheit"}, default="c")

        @agent.prompt
        async def answer(turn: Turn) -> None:
            self.performed.append(turn.text)
            verb, _, rest = turn.text.partition(" ")
            if verb == "wait":
                async with turn.tool("Wait"):
                    await turn.say("waiting ")
                    await self.gate(rest).wait()
                await turn.say("done")
            elif verb == "ask":
                async with turn.tool("Dig", kind="execute") as call:
                    await turn.say("yes" if await turn.allow(f"May I {rest}?", call) else "no")
            elif verb == "read":
                assert turn.client is not None
                await turn.say(await turn.client.read_text(rest))
            elif verb == "roots":
                await turn.say(",".join(turn.session.roots))
            else:
                for word in turn.text.split():
                    await turn.say(f"{word} ")

        return agent


@asynccontextmanager
async def hosts(place: Path, count: int = 2) -> AsyncGenerator[tuple[Shared, list[Serving]]]:
    """Serve the same agent on one store by several hosts, each of which stands for a process."""
    shared = Shared()
    async with AsyncExitStack() as stack:
        yield shared, [await stack.enter_async_context(serving(shared.agent(), place)) for _ in range(count)]


async def named(host: Serving, name: str, version: int, **capabilities: object) -> Client:
    client = host.connect(version)
    about: dict[str, Any] = {"clientInfo" if version == 1 else "info": {"name": name, "version": "0"}}
    about["clientCapabilities" if version == 1 else "capabilities"] = capabilities
    await client.ask("initialize", {"protocolVersion": version, **about})
    return client


async def join(client: Client, session: str) -> None:
    if client.version == 1:
        await client.load(session)
    else:
        await client.resume(session, replayFrom={"type": "start"})


def spoken(client: Client) -> list[tuple[str, str]]:
    """What it heard of the conversation, in order: who said what. Its own prompts are not repeated to it."""
    found = [(it["sessionUpdate"].removesuffix("_chunk"), it) for it in client.updates()]
    texts: list[tuple[str, str]] = []
    for kind, it in found:
        if kind in ("user_message", "agent_message"):
            content: Any = it["content"]
            blocks = cast("list[Any]", content if isinstance(content, list) else [content])
            text = "".join(block["text"] for block in blocks)
            if texts and texts[-1][0] == kind:
                texts[-1] = kind, texts[-1][1] + text
            else:
                texts.append((kind, text))
    return texts


@pytest.mark.requirement("F4", "B12", "B19")
@MIXED
async def test_a_session_of_another_process_is_joined_and_both_prompt_and_see_one_order(
    ours: int, theirs: int, tmp_path: Path
) -> None:
    async with hosts(tmp_path / "s.db") as (shared, (near, far)):
        owner, follower = await named(near, "Zed", ours), await named(far, "Neovim", theirs)
        session = await owner.new()
        await owner.prompt(session, "one two")
        await join(follower, session)
        assert spoken(follower) == [("user_message", "one two"), ("agent_message", "one two ")]
        assert await follower.prompt(session, "three four") == "end_turn"
        await owner.until(lambda: "four" in owner.said())
        assert spoken(owner)[-2:] == [("user_message", "three four"), ("agent_message", "three four ")]
        assert await owner.prompt(session, "five") == "end_turn"
        await follower.until(lambda: "five" in follower.said())
        assert shared.performed == ["one two", "three four", "five"]
        assert near.host.opened is not None
        assert near.host.opened.get(session).id == session  # it has stayed where it was
        late = await named(far, "Emacs", 1)
        await late.load(session)
        assert late.said("user_message") == "one twothree fourfive"
        assert late.said() == "one two three four five "


@pytest.mark.requirement("B12", "P5")
@MIXED
async def test_a_turn_that_runs_in_another_process_is_joined_in_the_middle(
    ours: int, theirs: int, tmp_path: Path
) -> None:
    async with hosts(tmp_path / "s.db") as (shared, (near, far)):
        owner, follower = await named(near, "Zed", ours), await named(far, "Neovim", theirs)
        session = await owner.new()
        running = owner.begin_prompt(session, "wait gate")
        await owner.until(lambda: "waiting" in owner.said())
        await join(follower, session)
        assert follower.said() == "waiting "
        if theirs == 2:
            assert follower.states() == ["running"]
        shared.gate("gate").set()
        await patiently(running)
        await follower.until(lambda: follower.said() == "waiting done")
        if theirs == 2:
            await follower.until(lambda: follower.states()[-1] == "end_turn")


@pytest.mark.requirement("F5", "C8")
@MIXED
async def test_a_question_is_put_to_clients_of_all_processes_and_the_first_answer_closes_it(
    ours: int, theirs: int, tmp_path: Path
) -> None:
    async with hosts(tmp_path / "s.db", 3) as (_, (near, far, farther)):
        owner, follower = await named(near, "Zed", ours), await named(far, "Neovim", theirs)
        other = await named(farther, "Emacs", ours)
        session = await owner.new()
        await join(follower, session)
        await join(other, session)
        running = owner.begin_prompt(session, "ask dig")
        for client in (owner, follower, other):
            await client.question()
        (await follower.question()).select("allow_once")
        await patiently(running)
        await owner.until(lambda: owner.asked[0].withdrawn)
        await other.until(lambda: other.asked[0].withdrawn)
        assert not follower.asked[0].withdrawn
        for client in (owner, follower, other):
            await client.until(lambda client=client: client.said() == "yes")


@pytest.mark.requirement("F5")
async def test_a_client_that_joins_while_a_question_is_open_gets_it_and_may_answer(tmp_path: Path) -> None:
    async with hosts(tmp_path / "s.db") as (_, (near, far)):
        owner, follower = await named(near, "Zed", 1), await named(far, "Neovim", 2)
        session = await owner.new()
        running = owner.begin_prompt(session, "ask dig")
        await owner.question()
        await join(follower, session)
        assert follower.states() == ["requires_action"]
        (await follower.question()).select("reject_once")
        assert await patiently(running) == {"stopReason": "end_turn"}
        assert owner.said() == "no"


@pytest.mark.requirement("C5", "A9")
@pytest.mark.parametrize("how", ["session/cancel", "$/cancel_request"])
@MIXED
async def test_a_turn_is_cancelled_from_another_process(ours: int, theirs: int, how: str, tmp_path: Path) -> None:
    async with hosts(tmp_path / "s.db") as (_, (near, far)):
        owner, follower = await named(near, "Zed", ours), await named(far, "Neovim", theirs)
        session = await owner.new()
        await join(follower, session)
        answer = follower.begin_prompt(session, "wait for ever", "mine")
        await owner.until(lambda: "waiting" in owner.said())
        if how == "$/cancel_request" and theirs == 2:
            await patiently(answer)  # it is answered when it is accepted: then there is no request to cancel
            how = "session/cancel"
        follower.tell(how, {"sessionId": session, "requestId": "mine"})
        if theirs == 1:
            assert await patiently(answer) == {"stopReason": "cancelled"}
        else:
            await follower.until(lambda: follower.states()[-1] == "cancelled")
        assert await owner.prompt(session, "next") == "end_turn"


@pytest.mark.requirement("F3", "C11")
async def test_a_turn_works_with_roots_and_services_of_the_client_that_prompted_it(tmp_path: Path) -> None:
    async with hosts(tmp_path / "s.db") as (_, (near, far)):
        reads = {"fs": {"readTextFile": True, "writeTextFile": False}}
        owner, follower = await named(near, "Zed", 1), await named(far, "Neovim", 1, **reads)
        session = await owner.new(str(tmp_path))
        follower.answers["fs/read_text_file"] = lambda params: {"content": f"unsaved {params['path']}"}
        await follower.load(session, str(tmp_path), additionalDirectories=["/usr"])
        assert await follower.prompt(session, f"read {tmp_path}/x") == "end_turn"
        assert follower.said() == f"unsaved {tmp_path}/x"
        await follower.prompt(session, "roots")
        assert follower.said().endswith(f"{tmp_path},/usr")
        await owner.prompt(session, "roots")
        assert owner.said().endswith(f"{tmp_path},/usr{tmp_path}")
        with pytest.raises(Refused):
            await owner.prompt(session, f"read {tmp_path}/x")  # it offers no files


@pytest.mark.requirement("D2", "D6", "B17")
async def test_options_and_titles_are_set_from_another_process_and_seen_by_all(tmp_path: Path) -> None:
    async with hosts(tmp_path / "s.db") as (_, (near, far)):
        owner, follower = await named(near, "Zed", 2), await named(far, "Neovim", 2)
        session = await owner.new()
        await owner.prompt(session, "hello")
        await join(follower, session)
        setting = {"sessionId": session, "configId": "units", "type": "id", "value": "f"}
        answer = await follower.ask("session/set_config_option", setting)
        assert answer["configOptions"][0]["currentValue"] == "f"
        await owner.until(lambda: owner.updates("config_option_update"))
        assert owner.updates("config_option_update")[-1]["configOptions"][0]["currentValue"] == "f"
        wrong = await follower.refusal("session/set_config_option", {**setting, "value": "k"})
        assert wrong.code == -32602
        await follower.ask("session/set_title", {"sessionId": session, "title": "Ours"})
        await owner.until(lambda: {"sessionUpdate": "session_info_update", "title": "Ours"} in owner.updates())


@pytest.mark.requirement("B15")
async def test_a_session_is_forked_from_another_process(tmp_path: Path) -> None:
    async with hosts(tmp_path / "s.db") as (_, (near, far)):
        owner, follower = await named(near, "Zed", 1), await named(far, "Neovim", 1)
        session = await owner.new()
        await owner.prompt(session, "hello")
        await follower.load(session)
        fork = (await follower.ask("session/fork", {"sessionId": session, "cwd": "/project", "mcpServers": []}))[
            "sessionId"
        ]
        assert await follower.prompt(fork, "more") == "end_turn"
        await follower.replayed(fork)
        assert follower.said() == "hello more "
        assert "more" not in owner.said()


@pytest.mark.requirement("B13", "B14", "B16")
@pytest.mark.parametrize("method", ["session/delete", "session/archive"])
async def test_a_session_that_one_removes_is_gone_for_all(method: str, tmp_path: Path) -> None:
    async with hosts(tmp_path / "s.db") as (_, (near, far)):
        notices: dict[str, object] = {"session": {"notices": {}}}
        owner, follower = await named(near, "Zed", 1, **notices), await named(far, "Neovim", 1)
        session = await owner.new()
        await owner.prompt(session, "hello")
        await follower.load(session)
        await follower.ask(method, {"sessionId": session})
        await owner.until(lambda: owner.updates("notice"))
        listed = (await owner.ask("session/list", {}))["sessions"]
        assert listed == []


@pytest.mark.requirement("B13")
async def test_closing_cancels_ones_own_prompts_and_leaves_those_of_others(tmp_path: Path) -> None:
    async with hosts(tmp_path / "s.db") as (shared, (near, far)):
        owner, follower = await named(near, "Zed", 1), await named(far, "Neovim", 1)
        session = await owner.new()
        await follower.load(session)
        theirs = owner.begin_prompt(session, "wait gate")
        await owner.until(lambda: "waiting" in owner.said())
        mine = follower.begin_prompt(session, "never")
        await follower.settle()
        await follower.ask("session/close", {"sessionId": session})
        assert await patiently(mine) == {"stopReason": "cancelled"}
        shared.gate("gate").set()
        assert await patiently(theirs) == {"stopReason": "end_turn"}
        assert shared.performed == ["wait gate"]


@pytest.mark.requirement("F4", "B13")
async def test_the_last_one_to_leave_leaves_the_session_to_whoever_comes(tmp_path: Path) -> None:
    async with hosts(tmp_path / "s.db") as (_, (near, far)):
        owner, follower = await named(near, "Zed", 1), await named(far, "Neovim", 1)
        session = await owner.new()
        await owner.prompt(session, "hello")
        await near.disconnect(owner)
        engine = near.host.opened
        assert engine is not None
        engine.get(session).idle_since -= 60
        await follower.load(session)  # nobody watches it there
        with pytest.raises(Exception, match="no session"):
            engine.get(session)
        assert await follower.prompt(session, "mine now") == "end_turn"


@pytest.mark.requirement("A11", "F4", "P3")
@MIXED
async def test_when_the_owner_quits_its_turn_is_interrupted_and_another_goes_on(
    ours: int, theirs: int, tmp_path: Path
) -> None:
    async with hosts(tmp_path / "s.db", 3) as (shared, (near, far, farther)):
        notices: dict[str, object] = {"session": {"notices": {}}}
        owner = await named(near, "Zed", ours)
        follower, other = await named(far, "Neovim", theirs, **notices), await named(farther, "Emacs", ours, **notices)
        session = await owner.new()
        await owner.prompt(session, "before")
        await join(follower, session)
        await join(other, session)
        mine = follower.begin_prompt(session, "wait for ever")
        await other.until(lambda: "waiting" in other.said())
        waiting = other.begin_prompt(session, "never begun")
        await other.settle()
        await near.close()
        if theirs == 1:
            with pytest.raises(Refused, match="Zed has left"):
                await patiently(mine)
        else:
            await patiently(mine)
            await follower.until(lambda: follower.states()[-1] == "error")
        with pytest.raises(Refused, match="Zed has left"):
            await patiently(waiting)
        for client in (follower, other):
            await client.until(
                lambda client=client: any("Zed has left" in it["title"] for it in client.updates("notice"))
            )
        assert await follower.prompt(session, "on we go") == "end_turn"
        await other.until(lambda: "on we go" in other.said())
        assert await other.prompt(session, "me too") == "end_turn"
        assert shared.performed == ["before", "wait for ever", "on we go", "me too"]
        late = await named(farther, "Kate", 1)
        await late.load(session)
        assert late.said() == "before waiting on we go me too "
        for client in (follower, other):
            await client.until(lambda client=client: client.said() == late.said())


@pytest.mark.requirement("F4", "H4")
@MIXED
async def test_a_link_that_is_cut_is_opened_anew_and_nothing_is_missed(ours: int, theirs: int, tmp_path: Path) -> None:
    async with hosts(tmp_path / "s.db") as (shared, (near, far)):
        owner, follower = await named(near, "Zed", ours), await named(far, "Neovim", theirs)
        session = await owner.new()
        await join(follower, session)
        mine = follower.begin_prompt(session, "wait gate")
        await follower.until(lambda: "waiting" in follower.said())
        for _ in range(3):
            cut_links(near)
            await asyncio.sleep(0.05)
        shared.gate("gate").set()
        await patiently(mine)
        await follower.until(lambda: follower.said() == "waiting done")
        assert await owner.prompt(session, "one two") == "end_turn"
        cut_links(near)
        assert await owner.prompt(session, "three") == "end_turn"
        await follower.until(lambda: "three" in follower.said())
        assert follower.said() == "waiting doneone two three "
        assert shared.performed == ["wait gate", "one two", "three"]


@pytest.mark.requirement("F4", "P3")
@MIXED
async def test_an_owner_that_hangs_up_while_it_is_asked_for_a_turn_interrupts_nothing(
    ours: int, theirs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers what it cannot finish, and only then its end of the link is closed."""
    asked: list[str] = []
    requested = OwnerLink.requested

    async def note_and_answer(self: OwnerLink, method: str, params: Any) -> object:
        asked.append(method)
        return await requested(self, method, params)

    monkeypatch.setattr(OwnerLink, "requested", note_and_answer)
    async with hosts(tmp_path / "s.db") as (shared, (near, far)):
        owner, follower = await named(near, "Zed", ours), await named(far, "Neovim", theirs)
        session = await owner.new()
        await join(follower, session)
        mine = follower.begin_prompt(session, "wait gate")
        await follower.until(lambda: "waiting" in follower.said())
        for cuts in range(1, 4):
            cut_links(near)
            await eventually(lambda cuts=cuts: asked.count("end_of") >= cuts)
        shared.gate("gate").set()
        await patiently(mine)
        await follower.until(lambda: follower.said() == "waiting done")
        assert shared.performed == ["wait gate"]


@pytest.mark.requirement("F4", "H4")
@MIXED
async def test_what_comes_late_on_a_link_that_was_hung_up_is_not_shown_twice(
    ours: int, theirs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    came: list[tuple[_FollowerLink, str, Any]] = []
    notified = _FollowerLink.notified

    async def note_and_take(self: _FollowerLink, method: str, params: Any) -> None:
        came.append((self, method, params))
        await notified(self, method, params)

    monkeypatch.setattr(_FollowerLink, "notified", note_and_take)
    async with hosts(tmp_path / "s.db") as (shared, (near, far)):
        owner, follower = await named(near, "Zed", ours), await named(far, "Neovim", theirs)
        session = await owner.new()
        await join(follower, session)
        mine = follower.begin_prompt(session, "wait gate")
        await follower.until(lambda: "waiting" in follower.said())
        on_the_first = list(came)
        cut_links(near)
        first = on_the_first[0][0]
        shared.gate("gate").set()
        await patiently(mine)
        while came[-1][0] is first:
            assert await owner.prompt(session, "on") == "end_turn"
            await asyncio.sleep(0.05)
        said = follower.said()
        for link, method, params in on_the_first:
            await notified(link, method, params)
        assert await owner.prompt(session, "three") == "end_turn"
        await follower.until(lambda: "three" in follower.said())
        assert follower.said() == f"{said}three "


@pytest.mark.requirement("F4", "P3")
@MIXED
@pytest.mark.parametrize("moment", ["before it is watched", "while it is watched", "before its turns are asked for"])
async def test_a_link_that_is_cut_again_while_it_is_opened_anew_interrupts_nothing(
    ours: int, theirs: int, moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cuts, is_left_alone = 3, asyncio.Event()
    attach, ask_for_turns = FollowedSession.attach, FollowedSession.ask_for_turns

    def is_cut(now: str) -> bool:
        nonlocal cuts
        cuts -= now == moment and cuts > 0
        if cuts == 0:
            is_left_alone.set()
        return now == moment and cuts > 0

    async def attach_and_cut(self: FollowedSession, client: Any, since: Any = None) -> Any:
        if since is not None and is_cut("before it is watched"):
            self.lost("somebody")
        attachment = await attach(self, client, since)
        if since is not None and is_cut("while it is watched"):
            self.lost("somebody")
        return attachment

    def ask_and_cut(self: FollowedSession, reason: str) -> None:
        if is_cut("before its turns are asked for"):
            asyncio.get_running_loop().call_soon(self.lost, "somebody")
        ask_for_turns(self, reason)

    monkeypatch.setattr(FollowedSession, "attach", attach_and_cut)
    monkeypatch.setattr(FollowedSession, "ask_for_turns", ask_and_cut)
    async with hosts(tmp_path / "s.db") as (shared, (near, far)):
        owner, follower = await named(near, "Zed", ours), await named(far, "Neovim", theirs)
        session = await owner.new()
        await join(follower, session)
        mine = follower.begin_prompt(session, "wait gate")
        await follower.until(lambda: "waiting" in follower.said())
        cut_links(near)
        await asyncio.wait_for(is_left_alone.wait(), 40)
        shared.gate("gate").set()
        await patiently(mine)
        await follower.until(lambda: follower.said() == "waiting done")
        assert await owner.prompt(session, "three") == "end_turn"
        await follower.until(lambda: "three" in follower.said())
        assert shared.performed == ["wait gate", "three"]


@pytest.mark.requirement("A11", "F4")
@pytest.mark.parametrize("version", [1, 2])
async def test_who_left_is_told_also_where_the_link_to_the_next_owner_is_cut_as_it_is_opened(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cuts, attach = 2, FollowedSession.attach

    async def attach_and_cut(self: FollowedSession, client: Any, since: Any = None) -> Any:
        nonlocal cuts
        if since is not None and cuts > 0:
            cuts -= 1
            self.lost("somebody")
        return await attach(self, client, since)

    monkeypatch.setattr(FollowedSession, "attach", attach_and_cut)
    async with hosts(tmp_path / "s.db", 3) as (_, (near, far, farther)):
        notices: dict[str, object] = {"session": {"notices": {}}}
        owner = await named(near, "Zed", version)
        others = [await named(far, "Neovim", version, **notices), await named(farther, "Emacs", version, **notices)]
        session = await owner.new()
        for other in others:
            await join(other, session)
        owner.begin_prompt(session, "wait for ever")
        for other in others:
            await other.until(lambda other=other: "waiting" in other.said())
        await near.close()
        for other in others:
            await other.until(
                lambda other=other: any("Zed has left; the" in it["title"] for it in other.updates("notice"))
            )
        assert cuts == 0


@pytest.mark.requirement("F4")
@pytest.mark.parametrize("owner_quits", [False, True])
async def test_a_client_that_leaves_while_its_session_is_found_again_is_not_taken_for_one_that_watches(
    owner_quits: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searches = HeldSearches(monkeypatch)
    async with hosts(tmp_path / "s.db") as (_, (near, far)):
        owner, follower = await named(near, "Zed", 1), await named(far, "Neovim", 2)
        session = await owner.new()
        await owner.prompt(session, "hello")
        await join(follower, session)
        if owner_quits:
            await near.close()
        else:
            cut_links(near)
        await asyncio.wait_for(searches.begun.wait(), PATIENCE)
        await far.disconnect(follower)
        searches.may_go_on.set()
        await asyncio.wait_for(searches.is_over.wait(), PATIENCE)
        has_it = (far if owner_quits else near).host.opened
        assert has_it is not None
        async with asyncio.timeout(PATIENCE):
            while len(has_it.get(session).attachments) != (0 if owner_quits else 1):  # noqa: ASYNC110
                await asyncio.sleep(0.02)


@pytest.mark.requirement("F4", "B18")
async def test_nothing_is_kept_of_a_client_that_left_without_closing_the_session_it_followed(tmp_path: Path) -> None:
    async with hosts(tmp_path / "s.db") as (_, (near, far)):
        owner = await named(near, "Zed", 1)
        session = await owner.new()
        await owner.prompt(session, "hello")
        for number in range(3):
            follower = await named(far, f"Neovim {number}", 2)
            await join(follower, session)
            await far.disconnect(follower)
        engine = far.host.opened
        assert engine is not None
        finder = engine._registry.finder  # pyright: ignore[reportPrivateUsage]
        async with asyncio.timeout(PATIENCE):
            while finder._followed:  # noqa: ASYNC110  # pyright: ignore[reportPrivateUsage]
                await asyncio.sleep(0.02)
        again = await named(far, "Neovim", 1)
        await join(again, session)
        await again.prompt(session, "hello")


@pytest.mark.requirement("F4", "P6")
@pytest.mark.parametrize("version", [1, 2])
async def test_who_follows_a_running_turn_that_cannot_be_found_again_is_told_that_it_is_over(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hosts(tmp_path / "s.db") as (shared, (near, far)):
        owner, follower = await named(near, "Zed", 2), await named(far, "Neovim", version, session={"notices": {}})
        session = await owner.new()
        await join(follower, session)
        mine = follower.begin_prompt(session, "wait gate")
        await follower.until(lambda: "waiting" in follower.said())
        monkeypatch.setattr(finding, "PATIENCE", 0.1)
        stop_listening(near)  # it is there, its turn runs, and nobody reaches it
        cut_links(near)
        await follower.until(lambda: any("running in Zed" in it["title"] for it in follower.updates("notice")))
        if version == 1:
            with pytest.raises(Refused, match="Zed has left"):
                await patiently(mine)
        else:
            await follower.until(lambda: follower.states()[-1] == "error")
        shared.gate("gate").set()


@pytest.mark.requirement("F4", "H4")
@pytest.mark.parametrize("version", [1, 2])
async def test_who_comes_back_from_a_position_that_is_not_kept_is_told_to_load_again(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hosts(tmp_path / "s.db") as (_, (near, far)):
        owner, follower = await named(near, "Zed", 2), await named(far, "Neovim", version, session={"notices": {}})
        session = await owner.new()
        await join(follower, session)
        assert near.host.opened is not None
        live = near.host.opened.get(session)

        async def forgotten(*_: object) -> Any:
            raise PositionLost("1.2.3")

        monkeypatch.setattr(type(live), "attach", forgotten)
        cut_links(near)
        await follower.until(lambda: follower.updates("notice"))
        assert follower.updates("notice")[-1]["title"] == "Zed has left; load the session again to go on watching"


@pytest.mark.requirement("F4", "P6")
@pytest.mark.parametrize("version", [1, 2])
async def test_who_follows_a_turn_whose_owner_quits_is_told_its_end_also_where_the_agent_fails_to_open_the_session(
    version: int, tmp_path: Path
) -> None:
    shared = Shared()
    broken = shared.agent()

    @broken.on_open
    async def fail(_: object) -> None:
        raise RuntimeError("hunter2")

    async with serving(shared.agent(), tmp_path / "s.db") as near, serving(broken, tmp_path / "s.db") as far:
        owner, follower = await named(near, "Zed", 2), await named(far, "Neovim", version, session={"notices": {}})
        session = await owner.new()
        await join(follower, session)
        mine = follower.begin_prompt(session, "wait for ever")
        await follower.until(lambda: "waiting" in follower.said())
        cut_links(near)
        await near.close()
        with suppress(Refused):  # the owner may still have told that it was cancelled
            await patiently(mine)
        if version == 2:
            await follower.until(lambda: follower.states()[-1] in ("error", "cancelled"))
        await follower.until(lambda: any("the agent failed" in it["title"] for it in follower.updates("notice")))
        assert not any("hunter2" in it["title"] for it in follower.updates("notice"))


@pytest.mark.requirement("F4", "P6")
async def test_a_turn_that_ends_while_its_link_is_cut_has_its_own_end_however_soon_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the end of a turn and the moment when it is noted, the turn was unknown, and taken for interrupted."""
    noting: list[Any] = []
    note_end: Any = RelayService.note_end

    def note_later(*noted: Any) -> None:
        noting.append(noted)

    async with hosts(tmp_path / "s.db") as (shared, (near, far)):
        owner, follower = await named(near, "Zed", 2), await named(far, "Neovim", 1)
        session = await owner.new()
        await join(follower, session)
        mine = follower.begin_prompt(session, "wait gate")
        await follower.until(lambda: "waiting" in follower.said())
        monkeypatch.setattr(RelayService, "note_end", note_later)
        async with vars(far.host.opened)["_registry"].lock(session):  # nobody finds it again meanwhile
            cut_links(near)
            async with asyncio.timeout(PATIENCE):
                # What was asked over them is given up by then.
                while vars(near.host.neighbours)["_accepted"]:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            shared.gate("gate").set()
            await owner.until(lambda: owner.states()[-1] == "end_turn")
        assert (await patiently(mine))["stopReason"] == "end_turn"
        for noted in noting:
            note_end(*noted)


def stop_listening(host: Serving) -> None:
    """Let a host be reached by no other process any more."""
    assert host.host.opened is not None
    neighbours: Any = host.host.opened._registry.neighbours  # pyright: ignore[reportPrivateUsage]
    asyncio.get_running_loop().remove_reader(neighbours._listening.fileno())
    neighbours._listening.close()
    neighbours._listening = None
