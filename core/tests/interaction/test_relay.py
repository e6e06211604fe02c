"""One session, many clients, in whatever process they are: what each of them sees (F4).

`test_relay_lost_links.py` cuts the links; `core/tests/faults/test_relay_kills.py` has real processes, and kills them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from core.tests.support.acp import Refused, patiently
from core.tests.support.relay_hosts import MIXED, hosts, join, named

if TYPE_CHECKING:
    from pathlib import Path

    from core.tests.support.acp import Client


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


@pytest.mark.requirement("B16", "F4")
async def test_the_status_of_a_session_of_another_process_can_be_asked_again_and_again(tmp_path: Path) -> None:
    async with hosts(tmp_path / "s.db") as (shared, (near, far)):
        owner, follower = await named(near, "Zed", 2), await named(far, "Neovim", 2)
        session = await owner.new()
        await join(follower, session)

        async def statuses() -> list[Any]:
            return [
                await client.ask("session/status", {"sessionId": session})
                for client in (owner, follower, follower, owner)
            ]

        assert await statuses() == [{"status": "open", "state": {"state": "idle"}}] * 4
        running = owner.begin_prompt(session, "wait gate")
        await follower.until(lambda: "waiting" in follower.said())
        assert await statuses() == [{"status": "open", "state": {"state": "running"}}] * 4
        await join(follower, session)
        assert follower.states()[-1] == "running"  # it has its state from the owner, whole
        shared.gate("gate").set()
        await patiently(running)


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


@pytest.mark.requirement("B16", "F4")
@MIXED
async def test_a_session_that_one_archives_and_unarchives_goes_on_for_all(
    ours: int, theirs: int, tmp_path: Path
) -> None:
    async with hosts(tmp_path / "s.db") as (_, (near, far)):
        owner, follower = await named(near, "Zed", ours), await named(far, "Neovim", theirs)
        session = await owner.new()
        await owner.prompt(session, "hello")
        await join(follower, session)
        for archives in (follower, owner):
            for method in ("session/archive", "session/unarchive"):
                await archives.ask(method, {"sessionId": session})
            for client in (follower, owner):
                client.forget()
                assert await client.prompt(session, "once more") == "end_turn"
                await client.until(lambda client=client: client.said() == "once more ")


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
        why = (
            "Zed has left; the turn was interrupted because its agent ran there. What was said is stored: send a prompt"
        )
        if theirs == 1:
            with pytest.raises(Refused, match=why):
                await patiently(mine)
        else:
            await patiently(mine)
            await follower.until(lambda: follower.states()[-1] == "error")
            assert follower.updates("state_update")[-1]["error"]["message"].startswith(why)
        with pytest.raises(Refused, match="Zed has left, before the prompt's turn came; send it again"):
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
