"""`RemoteSession`: one session as it lives in the agent's process.

It lifts what the agent says into events and gives them to the session of ours that it belongs to. While the agent
replays a past that we have already, the events are put aside instead. Prompts go one after the other: the next waits
until the agent has ended the one before, even if nobody waits for that one any longer (G8).
"""

from __future__ import annotations

import asyncio
import logging
import re
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from holdfast.errors import AgentRefused, InternalError, InvalidParams
from holdfast.model import Fold, event_from
from holdfast.model.events import is_object
from holdfast.model.kinds import RESERVED_PREFIX, TURN_END
from holdfast.surface import air
from holdfast.surface.description import REPLAY_COMPLETE
from holdfast_app.wrap.compare import normal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.client.dialect import Lifting
    from holdfast.errors import ConnectionLost
    from holdfast.model import Event, Update
    from holdfast_app.wrap.process import AgentProcess
    from holdfast_app.wrap.session import ProxySession

log: logging.Logger = logging.getLogger(__name__)

QUIET_SECONDS = 0.5
"""A replay that goes on after the answer to its request is over when nothing of it came for so long (G4)…"""

REPLAY_SECONDS = 10.0
"""…or after so long: what comes then may be a turn that is running."""

UNASKED_SECONDS = 0.1
"""An agent that replays though nobody has asked for it begins so soon after its answer."""

CANCEL_SECONDS = 4.0
"""An agent that was asked to stop is waited for so long; then its turn ends without it (G8)."""

WAITING_BYTES = 8 << 20
"""So much of what an agent says is kept for a session that is not in memory."""

_SESSION_ID = re.compile(rb'"sessionId"\s*:\s*"((?:[^"\\]|\\.){1,512})"')


class Brought(NamedTuple):
    """The directories and MCP servers that a client named when it opened a session."""

    roots: tuple[str, ...]
    servers: tuple[Any, ...]


class RemoteSession:
    """One session in the agent's process."""

    def __init__(self, process: AgentProcess, session_id: str) -> None:
        self.process = process
        self.id = session_id
        self.lifting: Lifting = process.dialect.lifting()
        self.answer: Update = {}
        """What the agent answered when it was opened: its options."""
        self.heard: bool = False
        """Whether the agent has said or asked anything since it was prompted last."""
        self.brought: Brought | None = None
        """The roots and servers that the agent was given for it; None until the session of ours has noted them (F3)."""
        self.owner: ProxySession | None = None
        """The session of ours it belongs to, while that is in memory."""
        self._waiting: list[Event] = []  # said while nobody here took it
        self._waiting_bytes = 0
        self._replayed: list[Event] | None = None  # put aside while the agent replays the past
        self._heard_at = 0.0
        self._prompt: asyncio.Task[Update] | None = None
        self._idle: asyncio.Future[Update] | None = None  # what a version 2 agent says at the end of a turn
        self._prompted = ""  # what the agent may repeat as the user's message…
        self._repeated: str | None = None  # …and the id under which it has
        self._steered: list[_Steered] = []  # what was said to it meanwhile, in this turn
        self._loop = asyncio.get_running_loop()

    @property
    def alive(self) -> bool:
        """Whether the agent still has it."""
        return self.process.alive and self.process.sessions.get(self.id) is self

    @property
    def busy(self) -> bool:
        """Whether the agent works on a prompt."""
        return self._prompt is not None and not self._prompt.done()

    def belong_to(self, owner: ProxySession | None) -> None:
        """Give all that is heard from now on, and what was heard before, to a session of ours."""
        self.owner = owner
        if owner is not None:
            waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
            for event in waiting:
                owner.take(event)

    # What the agent says

    def hear(self, raw: bytes) -> None:
        """Take an update as it came."""
        self.heard = True
        try:
            events = self.lifting.lift(raw)
        except InvalidParams as e:
            log.warning("An update of the agent is not what it says it is, and is left out: %s", e)
            self.missed(raw[:200], str(e), sure=True)
            return
        for event in events:
            if event.kind.startswith(RESERVED_PREFIX):
                self._refuse_reserved(event.kind)
            else:
                self._take(event)

    def _refuse_reserved(self, kind: str) -> None:
        """Skip an update of a kind that is ours: stored, it would be read as something that Holdfast itself noted.

        A wrapped Holdfast marks how its turns end. Our session marks that too, so nothing is missing.
        """
        log.warning("The agent sent an update of a kind that is reserved for Holdfast, which is skipped: %s", kind)
        if kind != TURN_END:
            self.missed(b"", f"{kind} is reserved for Holdfast", sure=True)

    def tell(self, events: Sequence[Event]) -> None:
        """Take events that were lifted from something else than an update."""
        for event in events:
            self._take(event)

    def _take(self, event: Event) -> None:
        if _ends_replay(event):
            pass  # the agent's; a client is told of ours
        elif event.kind == "state_update":
            self._state_told(event.update())
        elif event.kind.startswith("user_message") and self._is_repetition(event):
            pass
        elif self._replayed is not None:
            if event.rule.fold is not Fold.STATE:
                self._heard_at = self._loop.time()
            self._replayed.append(event)
        elif self.owner is not None:
            self.owner.take(event)
        elif self._waiting_bytes < WAITING_BYTES:
            self._waiting.append(event)
            self._waiting_bytes += len(event.body)

    def _is_repetition(self, event: Event) -> bool:
        """Return whether an agent repeats under an id of its own what the user has said: the session has it already."""
        if self._replayed is not None:
            return False
        text = normal(_text_of(event))
        if self.busy and self._repeated is None and text in self._prompted:
            self._repeated = event.key
        return event.key == self._repeated or self._is_steered(event.key, text)

    def _is_steered(self, key: str, text: str) -> bool:
        """Return whether an agent repeats what it was steered with; that is the place where it has taken it."""
        for steered in self._steered:
            if steered.repeated == key or (steered.repeated is None and text in steered.text):
                steered.repeated = key
                steered.take()
                return True
        return False

    @property
    def congested(self) -> bool:
        """Whether whoever says more should wait first."""
        return self.owner is not None and self.owner.congested

    async def drain(self, *, alone: bool) -> None:
        """Wait until what was said is shown; for slow readers too where no other session has to wait with this one."""
        if self.owner is not None:
            await self.owner.drain(readers=alone)

    def missed(self, line: bytes, reason: str, *, sure: bool = False) -> None:
        """Say that something the agent sent could not be read, if it was about this session or about none (P11)."""
        named = _SESSION_ID.search(line)
        if not sure and named is not None and named[1].decode(errors="replace") != self.id:
            return
        if self.owner is not None:
            title = "A message of the agent could not be read, so something is missing here"
            notice = {"sessionUpdate": "notice", "severity": "error", "title": title, "description": reason}
            self.owner.take(event_from(notice))

    def lost(self, death: ConnectionLost) -> None:
        """Note that the agent's process is gone."""
        if self._idle is not None and not self._idle.done():
            self._idle.set_exception(AgentRefused(InternalError.code, str(death)))
            self._idle.exception()
        if self.owner is not None:
            self.owner.end_commands()

    def replaced(self) -> None:
        """Note that the agent has given this id to another session."""
        log.warning("The agent has given the id of a session to another one: %s", self.id[:100])
        if self._idle is not None and not self._idle.done():
            self._idle.cancel()

    # Replays

    def begin_replay(self) -> None:
        """Put aside what is said from now on: it is the past."""
        self._replayed = []
        self._heard_at = self._loop.time()

    async def quiet_if_replaying(self) -> None:
        """Wait until a replay that nobody asked for is over, if there is one: agents exist that replay on a resume."""
        if not self._has_replayed():
            await asyncio.sleep(UNASKED_SECONDS)
        if self._has_replayed():
            await self.quiet()

    def _has_replayed(self) -> bool:
        return any(event.key for event in self._replayed or ())

    async def quiet(self) -> None:
        """Wait until a replay that may go on after its answer is over: nothing came for a while (G4)."""
        self._heard_at = self._loop.time()
        deadline = self._heard_at + REPLAY_SECONDS
        left = QUIET_SECONDS
        while left > 0 and self.process.alive:
            await asyncio.sleep(left)
            left = min(self._heard_at + QUIET_SECONDS, deadline) - self._loop.time()

    def end_replay(self) -> list[Event]:
        """Return what was put aside, and give what comes from now on to the session again."""
        replayed, self._replayed = self._replayed or [], None
        return replayed

    def take_besides(self, events: Sequence[Event]) -> None:
        """Take events that were put aside and turned out to be new."""
        self.tell(events)

    # Prompts

    async def prompt(self, blocks: Sequence[Update], meta: Mapping[str, Any] | None) -> Update:
        """Send a prompt and return how its turn ended: `stopReason`, and whatever else the agent says of it.

        Raises `AgentRefused` where the agent fails or dies. When this is cancelled, the agent is asked to stop.
        """
        self.heard = False
        self._prompt = self._loop.create_task(self._run(blocks, meta), name=f"prompt of {self.id}")
        self._prompt.add_done_callback(_retrieve)
        try:
            return await asyncio.shield(self._prompt)
        except asyncio.CancelledError:
            if not self._prompt.done():
                self.process.peer.notify("session/cancel", {"sessionId": self.id})
                await asyncio.wait({self._prompt}, timeout=CANCEL_SECONDS)
            raise

    async def steer(
        self, blocks: Sequence[Update], meta: Mapping[str, Any] | None, taken: Callable[[], None]
    ) -> Update:
        """Give words of the user to the prompt that runs, and return what became of them.

        `taken` is called once, at the place where the agent takes them. Agents exist that start a turn of their own for
        words that come too late; they are asked not to, as a turn is ours to start.
        """

        def take() -> None:
            self.lifting.lift_prompt(blocks)  # what is said next is a new message
            taken()

        steered = _Steered(normal("\n".join(map(text_in, blocks))), take)
        self._steered.append(steered)
        hints: object = (meta or {}).get("steering")
        steering = {**(hints if is_object(hints) else {}), "idleBehavior": "promptRequired"}
        params: Update = {"sessionId": self.id, "prompt": list(blocks), "_meta": {**(meta or {}), "steering": steering}}
        answer: object = None
        try:
            answer = await self.process.request("_session/steering", params)
        finally:
            if is_object(answer) and answer.get("outcome") in ("injected", "startedNewTurn"):
                steered.take()
            elif not steered.is_taken and steered in self._steered:
                self._steered.remove(steered)
        if not is_object(answer):
            raise InternalError("The agent did not say what became of the steered message")
        return answer if not steered.is_taken else {**answer, "outcome": "injected"}

    async def settled(self, within: float) -> bool:
        """Wait until the agent works on no prompt any more, but no longer than `within`; return whether it does not."""
        if self._prompt is not None and self.busy:
            self.process.peer.notify("session/cancel", {"sessionId": self.id})
            await asyncio.wait({self._prompt}, timeout=within)
        return not self.busy

    async def _run(self, blocks: Sequence[Update], meta: Mapping[str, Any] | None) -> Update:
        self.lifting.lift_prompt(blocks)  # so that the agent's repetition of it is known as one
        self._idle = None if self.lifting.answer_ends else self._loop.create_future()
        self._prompted, self._repeated, self._steered = normal("\n".join(map(text_in, blocks))), None, []
        params: Update = {"sessionId": self.id, "prompt": list(blocks)}
        answer: Any = await self.process.request("session/prompt", params if not meta else {**params, "_meta": meta})
        end: Update = cast("Update", answer) if isinstance(answer, dict) else {}
        if isinstance(end.get("messageId"), str):
            self._repeated = end["messageId"]
        if self._idle is None:
            self.lifting.lift_end(end)
            return end
        end = await self._idle
        if end.get("stopReason") == "error" or (end.get("error") and not end.get("stopReason")):
            raise _failure(end.get("error"))
        return end

    def _state_told(self, update: Update) -> None:
        """Note that a version 2 agent is done; its other states are the engine's to tell."""
        if update.get("state") == "idle" and self._idle is not None and not self._idle.done():
            self._idle.set_result(update)


class _Steered:
    """Words of the user that an agent is given while it works on a prompt."""

    def __init__(self, text: str, taken: Callable[[], None]) -> None:
        self.text = text
        self.repeated: str | None = None
        """The id under which the agent has repeated them."""
        self.is_taken: bool = False
        self._taken = taken

    def take(self) -> None:
        """Note that the agent has taken them."""
        if not self.is_taken:
            self.is_taken = True
            self._taken()


def _ends_replay(event: Event) -> bool:
    """Return whether the agent says that it has replayed a session."""
    is_info = event.kind == "session_info_update"
    return event.kind == REPLAY_COMPLETE or (is_info and air.is_replay_end(event.update()))


def _text_of(event: Event) -> str:
    content: Any = event.update().get("content")
    blocks = cast("list[Any]", content) if isinstance(content, list) else [content]
    return "\n".join(text_in(block) for block in blocks)


def text_in(block: Any) -> str:
    """Return the text of a text block; nothing of any other."""
    text = cast("Update", block).get("text") if isinstance(block, dict) else None
    return text if isinstance(text, str) else ""


def _failure(error: Any) -> AgentRefused:
    members: Update = cast("Update", error) if isinstance(error, dict) else {}
    code = members.get("code")
    message = str(members.get("message") or "The agent failed")
    return AgentRefused(code if isinstance(code, int) else InternalError.code, message, members.get("data"))


def _retrieve(task: asyncio.Task[Update]) -> None:
    """Look at how a prompt ended that nobody waits for any more."""
    if not task.cancelled() and (failure := task.exception()) is not None:
        log.info("The agent ended a prompt with an error: %s", failure)
