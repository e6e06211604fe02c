"""Links that are cut and owners that go: the session is found again, and nothing is shown twice (F4)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from app.tests.support.cancelling import end_of
from core.tests.support.acp import CWD, Refused, cut_links, patiently, serving
from core.tests.support.links import PATIENCE
from core.tests.support.relay_hosts import MIXED, Shared, followed_turn, hosts, join, named
from core.tests.support.searches import HeldSearches
from core.tests.support.sessions import eventually
from holdfast.engine.journal import Journal
from holdfast.engine.relay import finding
from holdfast.engine.relay.finding import SessionFinder
from holdfast.engine.relay.follower import FollowedSession, _FollowerLink  # pyright: ignore[reportPrivateUsage]
from holdfast.engine.relay.owner import OwnerLink, RelayService
from holdfast.engine.session import LiveSession
from holdfast.errors import PositionLost
from holdfast.server.attached_client import AttachedClient

if TYPE_CHECKING:
    from pathlib import Path

    from core.tests.support.acp import Serving


@pytest.mark.requirement("F4", "H4")
@MIXED
async def test_a_link_that_is_cut_is_opened_anew_and_nothing_is_missed(ours: int, theirs: int, tmp_path: Path) -> None:
    async with followed_turn(tmp_path / "s.db", ours, theirs) as (shared, near, _, owner, follower, session, mine):
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
    async with followed_turn(tmp_path / "s.db", ours, theirs) as (shared, near, _, _, follower, _, mine):
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
    async with followed_turn(tmp_path / "s.db", ours, theirs) as (shared, near, _, owner, follower, session, mine):
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
    async with followed_turn(tmp_path / "s.db", ours, theirs) as (shared, near, _, owner, follower, session, mine):
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


@pytest.mark.requirement("F4", "H4")
@MIXED
@pytest.mark.parametrize("how", ["prompts", "loads"])
async def test_a_client_that_comes_while_its_session_is_found_again_is_shown_nothing_twice(
    ours: int, theirs: int, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The link is lost just after it was looked at, so that the session is opened while it is searched for."""
    searches, search, looked = HeldSearches(monkeypatch), SessionFinder.search, asyncio.Event()

    def none_at_first(self: SessionFinder, *args: Any) -> asyncio.Task[None] | None:
        found = search(self, *args) if looked.is_set() else None
        looked.set()
        return found

    async with followed_turn(tmp_path / "s.db", ours, theirs) as (shared, near, _, _, follower, session, mine):
        cut_links(near)
        await asyncio.wait_for(searches.begun.wait(), PATIENCE)
        monkeypatch.setattr(SessionFinder, "search", none_at_first)
        follower.forget()
        if how == "prompts":
            came = follower.begin_prompt(session, "two")
        else:
            came = asyncio.ensure_future(join(follower, session))
        await asyncio.wait_for(looked.wait(), PATIENCE)
        await asyncio.sleep(0.1)
        searches.may_go_on.set()
        if how == "loads":
            await patiently(came)
        shared.gate("gate").set()
        await patiently(mine)
        await patiently(came)
        once = "waiting done" if how == "loads" else "donetwo "
        await follower.until(lambda: follower.said().endswith(once[-4:]))
        assert follower.said() == once


@pytest.mark.requirement("F4", "P4")
@MIXED
async def test_a_client_that_prompts_while_its_session_is_found_that_was_taken_over_is_shown_nothing_twice(
    ours: int, theirs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searches = HeldSearches(monkeypatch)
    async with hosts(tmp_path / "s.db") as (shared, (near, far)):
        first, other = await named(near, "Zed", ours), await named(far, "Neovim", theirs)
        session = await first.new()
        assert await first.prompt(session, "one") == "end_turn"
        engine = await far.host.engine()
        await engine.restore(session, CWD)
        await join(other, session)
        theirs_waits = other.begin_prompt(session, "wait gate")
        await other.until(lambda: "waiting" in other.said())
        with pytest.raises(Refused):
            await first.prompt(session, "two")
        await asyncio.wait_for(searches.begun.wait(), PATIENCE)
        mine = first.begin_prompt(session, "three")
        await asyncio.sleep(0.1)
        shared.gate("gate").set()
        await patiently(theirs_waits)
        searches.may_go_on.set()
        await patiently(mine)
        await first.until(lambda: "three" in first.said())
        assert first.said() == "one waiting donethree "


@pytest.mark.requirement("F4", "P4")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_client_that_loads_a_session_just_as_its_owner_quits_is_attached_once(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opening, may_open, open_ = asyncio.Event(), asyncio.Event(), FollowedSession.open

    async def open_later(self: FollowedSession, *args: Any) -> bool:
        if not opening.is_set():
            opening.set()
            await may_open.wait()
        return await open_(self, *args)

    async with hosts(tmp_path / "s.db") as (_, (near, far)):
        owner, follower = await named(near, "Zed", 2), await named(far, "Neovim", version)
        session = await owner.new()
        await owner.prompt(session, "one")
        await join(follower, session)
        monkeypatch.setattr(FollowedSession, "open", open_later)
        loading = asyncio.ensure_future(join(follower, session))
        await asyncio.wait_for(opening.wait(), PATIENCE)
        await near.close()
        may_open.set()
        await patiently(loading)
        engine = await far.host.engine()
        assert len(engine.get(session).attachments) == 1
        follower.forget()
        assert await follower.prompt(session, "hello") == "end_turn"
        await follower.settle()
        assert follower.said() == "hello "


@pytest.mark.requirement("F4", "H4")
async def test_a_client_that_comes_back_just_as_its_session_is_taken_over_is_attached_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, may_read, missed = asyncio.Event(), asyncio.Event(), Journal.missed

    async def missed_later(self: Journal, *args: Any) -> Any:
        if not reading.is_set():
            reading.set()
            await may_read.wait()
        return await missed(self, *args)

    async with hosts(tmp_path / "s.db") as (_, (near, far)):
        first, other = await named(near, "Zed", 2), await named(far, "Neovim", 2)
        session = await first.new()
        await first.prompt(session, "one")
        await first.settle()
        engine = await near.host.engine()
        at = str(engine.get(session).attachments[0].position)
        monkeypatch.setattr(Journal, "missed", missed_later)
        back: dict[str, object] = {"sessionId": session, "cwd": CWD, "mcpServers": []}
        resuming = first.begin("session/resume", {**back, "replayFrom": {"type": "_holdfast/from", "position": at}})
        await asyncio.wait_for(reading.wait(), PATIENCE)
        await (await far.host.engine()).restore(session, CWD)
        await join(other, session)
        await engine.rename(session, "taken over")  # so this process notices
        may_read.set()
        with pytest.raises(Refused, match="load the session again"):
            await patiently(resuming)
        assert await first.prompt(session, "hello") == "end_turn"
        await first.settle()
        assert first.said() == "one hello "
        (followed,) = vars(engine._registry.finder)["_followed"].values()  # pyright: ignore[reportPrivateUsage]
        assert len(followed.attachments) == 1


@pytest.mark.requirement("F4", "P4")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("how", ["the link is cut", "it is taken over"])
async def test_a_client_that_loses_a_session_while_it_is_shown_its_past_is_told_to_load_it_again(
    version: int, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    showing, may_show, replay = asyncio.Event(), asyncio.Event(), AttachedClient.replay

    async def replay_later(self: AttachedClient, blocks: Any) -> None:
        if self.info.name == "Zed" and not showing.is_set():
            showing.set()
            await may_show.wait()
        await replay(self, blocks)

    async with hosts(tmp_path / "s.db") as (_, (near, far)):
        client, other = await named(near, "Zed", version), await named(far, "Neovim", 2)
        owner = client if how == "it is taken over" else other
        session = await owner.new()
        for text in ("one", "two"):
            await owner.prompt(session, text)
        client.forget()
        monkeypatch.setattr(AttachedClient, "replay", replay_later)
        loading = asyncio.ensure_future(join(client, session))
        await asyncio.wait_for(showing.wait(), PATIENCE)
        if how == "it is taken over":
            await (await far.host.engine()).restore(session, CWD)
            await join(other, session)
            await (await near.host.engine()).rename(session, "taken over")  # so this process notices
        else:
            cut_links(far)
            await asyncio.sleep(0.1)
        assert await other.prompt(session, "new") == "end_turn"
        may_show.set()
        with pytest.raises(Refused, match="load it again"):
            await patiently(loading)
        assert client.said() == "one two "
        client.forget()
        await join(client, session)
        assert client.said() == "one two new "
        assert await client.prompt(session, "three") == "end_turn"


@pytest.mark.requirement("F4", "B13", "P6")
@MIXED
async def test_a_client_that_closes_a_session_while_it_is_found_again_cancels_what_it_has_prompted(
    ours: int, theirs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searches = HeldSearches(monkeypatch)
    async with followed_turn(tmp_path / "s.db", ours, theirs) as (_, near, _, owner, follower, session, mine):
        cut_links(near)
        await asyncio.wait_for(searches.begun.wait(), PATIENCE)
        closing = follower.begin("session/close", {"sessionId": session})
        await asyncio.sleep(0.1)
        searches.may_go_on.set()
        await patiently(closing)
        answer = await patiently(mine)
        if theirs == 1:
            assert answer["stopReason"] == "cancelled"
        if ours == 2:
            await owner.until(lambda: owner.states()[-1] == "cancelled")
        assert await owner.prompt(session, "next") == "end_turn"


@pytest.mark.requirement("F4", "A11")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("method", ["attach", "option"])
async def test_what_is_asked_for_just_as_the_link_is_cut_is_to_be_tried_again(
    version: int, method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requested, is_cut = OwnerLink.requested, False

    async def cut_at_first(self: OwnerLink, asked: str, params: Any) -> object:
        nonlocal is_cut
        if asked == method and not is_cut:
            is_cut = True
            cut_links(near)
            await asyncio.Event().wait()  # until the link is closed
        return await requested(self, asked, params)

    async with hosts(tmp_path / "s.db") as (_, (near, far)):
        owner, follower = await named(near, "Zed", 2), await named(far, "Neovim", version)
        session = await owner.new()
        await owner.prompt(session, "one")
        if method == "option":
            await join(follower, session)
        monkeypatch.setattr(OwnerLink, "requested", cut_at_first)

        async def ask() -> None:
            if method == "attach":
                await join(follower, session)
            else:
                option = {"sessionId": session, "configId": "units", "value": "f"}
                await follower.ask(
                    "session/set_config_option", {"type": "select", **option} if version == 2 else option
                )

        with pytest.raises(Refused, match="try again"):
            await ask()
        await ask()
        assert await follower.prompt(session, "two") == "end_turn"


@pytest.mark.requirement("F4")
async def test_no_link_is_left_to_a_client_that_has_to_load_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attach = LiveSession.attach

    async def forget_all(self: LiveSession, client: Any, since: Any = None) -> Any:
        if since is not None:
            raise PositionLost(since)
        return await attach(self, client)

    async with hosts(tmp_path / "s.db") as (_, (near, far)):
        owner, follower = await named(near, "Zed", 2), await named(far, "Neovim", 2, session={"notices": {}})
        session = await owner.new()
        await owner.prompt(session, "one")
        await join(follower, session)
        monkeypatch.setattr(LiveSession, "attach", forget_all)
        cut_links(near)
        await follower.until(lambda: follower.updates("notice"))
        await eventually(lambda: not vars(near.host.neighbours)["_accepted"])
        monkeypatch.setattr(LiveSession, "attach", attach)
        await join(follower, session)
        assert await follower.prompt(session, "two") == "end_turn"


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


@pytest.mark.requirement("C6", "F4")
@pytest.mark.parametrize("prompted_by", ["us", "them"])
@MIXED
async def test_a_cancel_that_finds_no_link_is_told_when_there_is_one(
    ours: int, theirs: int, prompted_by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hosts(tmp_path / "s.db") as (_, (near, far)):
        owner, follower = await named(near, "Zed", ours), await named(far, "Neovim", theirs)
        session = await owner.new()
        await join(follower, session)
        prompting = follower if prompted_by == "us" else owner
        running = prompting.begin_prompt(session, "wait for ever")
        await follower.until(lambda: "waiting" in follower.said())
        held = HeldSearches(monkeypatch)
        cut_links(near)
        async with asyncio.timeout(PATIENCE):
            await held.begun.wait()
        follower.tell("session/cancel", {"sessionId": session})
        await follower.settle()
        held.may_go_on.set()
        assert await end_of(prompting, session, running) == "cancelled"
        assert await follower.prompt(session, "next") == "end_turn"


@pytest.mark.requirement("C6", "F4")
async def test_a_cancel_that_finds_no_link_leaves_the_turns_that_came_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hosts(tmp_path / "s.db") as (shared, (near, far)):
        owner, follower = await named(near, "Zed", 1), await named(far, "Neovim", 1)
        session = await owner.new()
        await join(follower, session)
        first = owner.begin_prompt(session, "wait first")
        await follower.until(lambda: "waiting" in follower.said())
        held = HeldSearches(monkeypatch)
        cut_links(near)
        async with asyncio.timeout(PATIENCE):
            await held.begun.wait()
        follower.tell("session/cancel", {"sessionId": session})
        await follower.settle()
        shared.gate("first").set()
        assert await patiently(first) == {"stopReason": "end_turn"}
        second = owner.begin_prompt(session, "wait second")
        await owner.until(lambda: owner.said() == "waiting donewaiting ")
        held.may_go_on.set()
        async with asyncio.timeout(PATIENCE):
            await held.is_over.wait()
        await follower.until(lambda: follower.said() == "waiting donewaiting ")
        shared.gate("second").set()
        assert await patiently(second) == {"stopReason": "end_turn"}


@pytest.mark.requirement("C6", "F4")
@MIXED
async def test_a_prompt_and_its_cancel_while_the_link_is_cut_end_cancelled(
    ours: int, theirs: int, tmp_path: Path
) -> None:
    async with hosts(tmp_path / "s.db") as (_, (near, far)):
        owner, follower = await named(near, "Zed", ours), await named(far, "Neovim", theirs)
        session = await owner.new()
        await join(follower, session)
        for distance in range(20):
            cut_links(near)
            for _ in range(distance):
                await asyncio.sleep(0)
            answer = follower.begin_prompt(session, "wait for ever")
            follower.tell("session/cancel", {"sessionId": session})
            assert await end_of(follower, session, answer) in ("cancelled", "dropped"), distance
            assert await follower.prompt(session, f"round {distance}") == "end_turn"
