"""Random operations on sessions, crashes among them, against a model made of lists
(`core.tests.support.session_model`).

Whatever happened in whatever order: the history, the list and the values are as the model says, and whoever watched
holds the same history. A crash is a copy of the files as they are at that moment, opened by another engine.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from core.tests.support.session_model import (
    FORKED_EARLIER,
    ModelSession,
    ModelTurn,
    finished,
    lines_after,
    normal,
    remembered,
)
from core.tests.support.sessions import (
    OPTIONS,
    PATIENCE,
    Recorder,
    ScriptedAgent,
    begin,
    disk_as_of_now,
    ended,
    history,
    watch,
)
from holdfast.engine import Engine
from holdfast.errors import SessionNotFound
from holdfast.store import open_store

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from holdfast.engine import LiveSession
    from holdfast.model import ArchiveFilter

T = TypeVar("T")

MEMORY = Path("/dev/shm")  # where syncing costs nothing

words = st.sampled_from(["a", "b ", "ü", "long " * 20])
instructions = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["say", "say", "think", "plan", "unknown"]), words),
        st.tuples(st.sampled_from(["call", "output", "done", "tick"])),
        st.tuples(st.just("usage"), st.integers(0, 9)),
        st.tuples(st.just("remember"), st.sampled_from("xy"), st.integers(0, 9)),
    ),
    max_size=8,
)
picks = st.integers(0, 1 << 16)
reasons = st.sampled_from(["end_turn", "end_turn", "refusal", "error"])


class Sessions(RuleBasedStateMachine):
    """Engine and model, side by side."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.base = Path(tempfile.mkdtemp(prefix="holdfast-", dir=MEMORY if MEMORY.exists() else None))
        self.numbers = count(1)
        self.model: dict[str, ModelSession] = {}
        self.gone: list[str] = []
        self.watchers: dict[str, list[Recorder]] = {}
        self.place = self.base / "0" / "sessions.db"
        self.agent = ScriptedAgent()
        self.engine: Any = None

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        async def bounded() -> T:
            async with asyncio.timeout(PATIENCE):
                return await work

        return self.loop.run_until_complete(bounded())

    async def opened(self) -> None:
        self.agent = ScriptedAgent()
        self.engine = Engine(await open_store(str(self.place)), self.agent)

    def now(self) -> int:
        return next(self.numbers)

    def chosen(self, pick: int) -> ModelSession:
        return list(self.model.values())[pick % len(self.model)]

    async def live(self, session: ModelSession) -> LiveSession:
        """Get a session, restored if it is not open."""
        if session.live:
            return self.engine.get(session.id)
        session.live, session.additional = True, ()
        return await self.engine.restore(session.id, session.cwd)

    def script(self, steps: list[tuple[Any, ...]]) -> list[str]:
        """Make instructions that make sense: calls have ids of their own, and are open when they are continued."""
        script: list[str] = []
        open_call = ""
        for verb, *rest in steps:
            if verb == "call":
                open_call = f"c{next(self.numbers)}"
                script.append(f"call {open_call} Run")
            elif verb in ("output", "done"):
                if open_call:
                    script.append(f"{verb} {open_call}{' x' if verb == 'output' else ''}")
                open_call = open_call if verb == "output" else ""
            else:
                script.append(" ".join([verb, *map(str, rest)]))
        return script

    # Beginning and ending

    @initialize()
    def begin(self) -> None:
        self.do(self.opened())
        self.create("/a")

    @rule(cwd=st.sampled_from(["/a", "/b"]))
    def create(self, cwd: str) -> None:
        session = self.do(self.engine.create(cwd, ["/more"]))
        self.model[session.id] = ModelSession(session.id, cwd, additional=("/more",), active=self.now())

    @rule(pick=picks)
    @precondition(lambda self: len(self.model) > 1)
    def delete(self, pick: int) -> None:
        session = self.chosen(pick)
        self.do(self.engine.delete(session.id))
        del self.model[session.id]
        self.watchers.pop(session.id, None)
        self.gone.append(session.id)

    @rule(pick=picks)
    @precondition(lambda self: self.model)
    def close(self, pick: int) -> None:
        session = self.chosen(pick)
        self._cancelled(session)
        self.do(self.engine.close(session.id))
        session.live = False
        self._check_watchers(session)
        self.watchers.pop(session.id, None)

    @rule(pick=picks, additional=st.sampled_from([(), ("/x",), ("/x", "/y")]))
    @precondition(lambda self: self.model)
    def restore(self, pick: int, additional: tuple[str, ...]) -> None:
        session = self.chosen(pick)
        self.do(self.engine.restore(session.id, session.cwd, additional))
        session.live, session.additional = True, additional

    @rule(pick=picks, at=st.none() | picks)
    @precondition(lambda self: self.model and len(self.model) < 6)
    def fork(self, pick: int, at: int | None) -> None:
        source = self.chosen(pick)
        copy = self.do(self._fork(source, at))
        if copy is not None:
            self.model[copy.id] = copy

    async def _fork(self, source: ModelSession, at: int | None) -> ModelSession | None:
        live = await self.live(source)
        if at is None:
            lines, up_to = [*source.lines, *finished(source.running.lines() if source.running else [])], None
        else:
            keys = [it.get("messageId") or it.get("toolCallId") for it in await history(self.engine, live)]
            named = [i for i, key in enumerate(keys) if key and source.history()[i] != FORKED_EARLIER]
            if not named or any(it[0] == "plan" for it in source.history()):
                return None  # where there is one plan in many places, positions say nothing
            cut = named[at % len(named)]
            lines, up_to = source.history()[: cut + 1], keys[cut]
            sealed = len(source.lines)
            lines = lines[:sealed] + [it for it in lines[sealed:] if it[2:3] != ("in_progress",)]
            if cut + 1 < len(source.history()):
                lines.append(FORKED_EARLIER)
        fork = await self.engine.fork(source.id, source.cwd, ["/fork"], up_to=up_to)
        messages = sum(it[0] in ("user", "agent") for it in lines)
        return ModelSession(
            fork.id,
            source.cwd,
            lines=list(lines),
            options=dict(source.options),
            title=title_of_fork(source.title),
            titled=source.titled,
            memory=dict(source.stored_memory),
            stored_memory=dict(source.stored_memory),
            additional=("/fork",),
            active=self.now(),
            listed=messages > 0,
            interrupted=source.interrupted,
        )

    # Talking

    @rule(pick=picks, steps=instructions, reason=reasons)
    @precondition(lambda self: any(it.running is None for it in self.model.values()))
    def prompt(self, pick: int, steps: list[Any], reason: str) -> None:
        idle = [it for it in self.model.values() if it.running is None]
        session, script = idle[pick % len(idle)], self.script(steps)
        text = "\n".join(["tick", *script, *_ending(reason)])
        session.begin(text, self.now())
        end = self.do(self._prompt(session, text))
        assert end == reason
        session.memory |= remembered(script)
        session.end([("user", "", text), *lines_after(script)], reason, self.now())

    async def _prompt(self, session: ModelSession, text: str) -> str:
        return (await ended(begin(self.engine, await self.live(session), text))).reason

    @rule(pick=picks, before=instructions, after=instructions, reason=reasons)
    @precondition(lambda self: any(it.running is None for it in self.model.values()))
    def prompt_and_stop_in_the_middle(self, pick: int, before: list[Any], after: list[Any], reason: str) -> None:
        idle = [it for it in self.model.values() if it.running is None]
        session, first, rest = idle[pick % len(idle)], self.script(before), self.script(after)
        gate = f"gate {self.now()}"
        text = "\n".join(["tick", *first, f"wait {gate}", *rest, *_ending(reason)])
        session.begin(text, self.now())
        self.do(self._start(session, text, gate))
        session.memory |= remembered(first)
        session.running = ModelTurn(text, first, rest, reason)

    async def _start(self, session: ModelSession, text: str, gate: str) -> None:
        begin(self.engine, await self.live(session), text)
        await self.agent.at(gate)
        await asyncio.sleep(0)

    @rule(pick=picks, steps=instructions)
    @precondition(lambda self: any(it.running for it in self.model.values()))
    def prompt_behind(self, pick: int, steps: list[Any]) -> None:
        session, script = self._running(pick), self.script(steps)
        text = "\n".join(["tick", *script])
        self.do(self._begin(session, text))
        session.waiting.append((text, script))

    async def _begin(self, session: ModelSession, text: str) -> None:
        begin(self.engine, self.engine.get(session.id), text)

    @rule(pick=picks)
    @precondition(lambda self: any(it.running for it in self.model.values()))
    def go_on(self, pick: int) -> None:
        session = self._running(pick)
        turn = session.running
        assert turn
        gate = next(it.removeprefix("wait ") for it in turn.text.splitlines() if it.startswith("wait gate"))
        self.do(self._go_on(session, gate))
        session.memory |= remembered(turn.after)
        lines = [("user", "", turn.text), *_joined(turn)]
        session.end(lines, turn.reason, self.now())
        for text, script in session.waiting:
            session.begin(text, self.now())
            session.memory |= remembered(script)
            session.end([("user", "", text), *lines_after(script)], "end_turn", self.now())
        session.waiting.clear()

    async def _go_on(self, session: ModelSession, gate: str) -> None:
        live = self.engine.get(session.id)
        self.agent.gates[gate].set()
        while live.runner is not None:
            await asyncio.wait({live.runner})

    @rule(pick=picks)
    @precondition(lambda self: self.model)
    def cancel(self, pick: int) -> None:
        session = self.chosen(pick)
        if session.live:
            self.do(self._cancel(session))
            self._cancelled(session)

    async def _cancel(self, session: ModelSession) -> None:
        live = self.engine.get(session.id)
        live.cancel()
        while live.runner is not None:
            await asyncio.wait({live.runner})

    def _cancelled(self, session: ModelSession) -> None:
        session.waiting.clear()
        if session.running is not None:
            session.end(session.running.lines(), "cancelled", self.now())

    def _running(self, pick: int) -> ModelSession:
        running = [it for it in self.model.values() if it.running]
        return running[pick % len(running)]

    # Changing

    @rule(pick=picks, change=st.sampled_from([("units", "c"), ("units", "f"), ("model", "big"), ("loud", True)]))
    @precondition(lambda self: self.model)
    def option(self, pick: int, change: tuple[str, Any]) -> None:
        session = self.chosen(pick)

        async def set_option() -> None:
            await (await self.live(session)).set_option(*change)

        self.do(set_option())
        session.options[change[0]] = change[1]
        session.stored_memory = dict(session.memory)

    @rule(pick=picks, title=st.sampled_from(["One", "Two", None]))
    @precondition(lambda self: self.model)
    def rename(self, pick: int, title: str | None) -> None:
        session = self.chosen(pick)

        async def rename() -> None:
            await (await self.live(session)).rename(title)

        self.do(rename())
        session.title, session.titled = title, True
        session.stored_memory = dict(session.memory)

    @rule(pick=picks, archived=st.booleans())
    @precondition(lambda self: self.model)
    def archive(self, pick: int, archived: bool) -> None:
        session = self.chosen(pick)
        self.do(self.engine.archive(session.id, archived=archived))
        session.archived = archived
        if archived:  # as if it had been closed, for everybody (B16)
            self._cancelled(session)
            self.watchers.pop(session.id, None)
        session.live = not archived

    # Watching

    @rule(pick=picks)
    @precondition(lambda self: self.model)
    def attach(self, pick: int) -> None:
        session = self.chosen(pick)

        async def attach() -> Recorder:
            return await watch(self.engine, await self.live(session))

        self.watchers.setdefault(session.id, []).append(self.do(attach()))

    @rule(pick=picks)
    @precondition(lambda self: any(self.watchers.values()))
    def detach(self, pick: int) -> None:
        watched = [it for it in self.watchers if self.watchers[it]]
        session_id = watched[pick % len(watched)]
        self.watchers[session_id].pop(0)

        async def detach() -> None:
            session = self.engine.get(session_id)
            session.detach(session.attachments[0])

        self.do(detach())

    # Crashing

    @rule()
    def crash(self) -> None:
        self._check_all_watchers()
        left = disk_as_of_now(self.place, self.base / str(self.now()))
        self.do(self.engine.shut_down())
        self.watchers.clear()
        self.place = left
        for session in self.model.values():
            session.crash()
        self.do(self.opened())
        self._check_all()

    @rule()
    def restart(self) -> None:
        opened = list(self.engine._registry.live)  # pyright: ignore[reportPrivateUsage]  (they end in this order)
        for session in sorted(self.model.values(), key=lambda it: opened.index(it.id) if it.id in opened else -1):
            self._cancelled(session)
            session.live = False
        self.do(self.engine.shut_down())
        self._check_all_watchers()
        self.watchers.clear()
        self.do(self.opened())
        self._check_all()

    # What must hold

    @invariant()
    def whoever_watches_holds_the_history(self) -> None:
        self._check_all_watchers()

    @invariant()
    def open_sessions_are_as_the_model_says(self) -> None:
        for session in self.model.values():
            if session.live:
                self.do(self._check(session))

    @invariant()
    def lists_are_in_order(self) -> None:
        if self.engine is not None:
            self.do(self._check_lists())

    def teardown(self) -> None:
        try:
            if self.engine is not None:
                self.crash()
                self.do(self.engine.shut_down())
        finally:
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
            self.loop.close()
            shutil.rmtree(self.base)

    def _check_all(self) -> None:
        for session in self.model.values():
            self.do(self._check(session))
        for session_id in self.gone:
            with pytest.raises(SessionNotFound):
                self.do(self.engine.restore(session_id, "/a"))
        assert self.agent.performed == []

    def _check_all_watchers(self) -> None:
        for session_id in self.watchers:
            self._check_watchers(self.model[session_id])

    def _check_watchers(self, session: ModelSession) -> None:
        for recorder in self.watchers.get(session.id, ()):
            assert recorder.drops == []
            assert normal(recorder.history()) == session.history()

    async def _check(self, session: ModelSession) -> None:
        live = await self.live(session)
        assert normal(await history(self.engine, live)) == session.history()
        assert live.title == session.title
        assert live.state.memory == session.memory
        assert live.state.interrupted == session.interrupted
        assert live.additional == session.additional
        defaults = {it.id: it.default for it in OPTIONS}
        assert {it.id: live.value(it) for it in OPTIONS} == {**defaults, **session.options}

    async def _check_lists(self) -> None:
        for archived in ("exclude", "only", "include"):
            await self._check_list(archived, None)
        await self._check_list("exclude", "/a")

    async def _check_list(self, archived: ArchiveFilter, cwd: str | None) -> None:
        shown: list[Any] = []
        cursor = None
        while True:
            page = await self.engine.list(archived=archived, cwd=cwd, cursor=cursor, limit=2)
            shown += page.sessions
            cursor = page.cursor
            if cursor is None:
                break
        wanted = [
            it
            for it in sorted(self.model.values(), key=lambda it: -it.active)
            if it.listed and cwd in (None, it.cwd) and (archived == "include" or it.archived == (archived == "only"))
        ]
        assert [it.id for it in shown] == [it.id for it in wanted]
        assert [it.title for it in shown] == [it.title for it in wanted]
        for info, session in zip(shown, wanted, strict=True):
            if session.live or not session.interrupted:
                assert info.messages == session.messages()


def _ending(reason: str) -> list[str]:
    return {"end_turn": [], "error": ["fail x"]}.get(reason, [f"stop {reason}"])


def title_of_fork(title: str | None) -> str | None:
    """Return "T (fork)", of a fork of that "T (fork 2)"; no title here is so long that it is cut."""
    if not title:
        return title
    name, mark, number = title.removesuffix(")").partition(" (fork")
    return f"{name} (fork {int(number or 1) + 1})" if mark else f"{name} (fork)"


def _joined(turn: ModelTurn) -> list[Any]:
    return lines_after([*turn.before, *turn.after])


def test_sessions_are_as_a_simple_model_says_whatever_happens_to_them() -> None:
    run_state_machine_as_test(
        Sessions,
        settings=settings(
            max_examples=50,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )
