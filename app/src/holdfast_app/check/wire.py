"""`Wire`: one conversation with one started agent, byte by byte. Every frame both ways is kept; every wait is bounded.

It judges nothing. What an agent asks is answered by functions that a script gives, and refused otherwise.
"""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from holdfast_app.check.outcomes import AgentGone, NoAnswer, Refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holdfast_app.check.target import Link

Json: TypeAlias = Any
Answerer: TypeAlias = Callable[[dict[str, Json]], Json]
"""Answers a request of the agent: returns the result, or raises `Refused`. An awaitable is waited for."""

MAX_FRAMES = 200_000
MAX_BYTES = 256 << 20
"""An agent that sends more than one of these in one conversation floods: nothing more is taken from it."""
EXIT_SECONDS = 5.0
"""So long is waited for the status of an agent whose output has ended: it says more than the end."""
LINE_CHARACTERS = 80


class Frame(NamedTuple):
    """One line, as it went over the wire."""

    sent: bool
    line: bytes
    at: float
    value: Json
    """What it says; None for bytes that are no JSON."""


class Update(NamedTuple):
    """One `session/update`."""

    session_id: str
    body: dict[str, Json]
    at: int
    """Its place among all frames."""


class Response(NamedTuple):
    """The answer to a request."""

    body: dict[str, Json]
    at: int
    """Its place among all frames."""


class Wire:
    """A conversation."""

    def __init__(self, link: Link, deadline: float, answerers: Mapping[str, Answerer] | None = None) -> None:
        self.link = link
        self.frames: list[Frame] = []
        self.updates: list[Update] = []
        self.asked: list[tuple[str, dict[str, Json]]] = []
        """What the agent has asked of its client: methods and params."""
        self.answers: dict[str, int] = {}
        """By request id, as JSON, how often it was answered."""
        self.answerers: dict[str, Answerer] = dict(answerers or {})
        self.deadline = deadline
        self.answered_at: int = 0
        """The place of the answer to the last request that was waited for."""
        self.ended: bool = False
        self._why_ended = ""
        self._bytes = 0
        self._waiting: dict[str, asyncio.Future[Response]] = {}
        self._next_id = 0
        self._heard = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        link.open(self._take, self._end)

    # Saying

    def send(self, data: bytes) -> None:
        """Send bytes as they are, and a newline."""
        self.frames.append(Frame(sent=True, line=data, at=time.monotonic(), value=_read(data)))
        self.link.send(data + b"\n")

    def notify(self, method: str, params: Json) -> None:
        """Send a notification."""
        self.send(_encode({"jsonrpc": "2.0", "method": method, "params": params}))

    def begin(self, method: str, params: Json, id_: str | int | None = None) -> asyncio.Future[Response]:
        """Send a request; return what will be its response. `id_` is chosen here unless it is given."""
        if id_ is None:
            self._next_id += 1
            id_ = self._next_id
        future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._waiting[json.dumps(id_)] = future
        self.send(_encode({"jsonrpc": "2.0", "id": id_, "method": method, "params": params}))
        return future

    async def request(self, method: str, params: Json) -> Json:
        """Send a request and return the result.

        Raises `Refused` for an error, `NoAnswer` if none comes in time, `AgentGone` if the agent goes away.
        """
        return await self.result(self.begin(method, params), method)

    async def result(self, future: asyncio.Future[Response], method: str) -> Json:
        """Wait for a response and return the result, as `request` does."""
        start = len(self.frames)
        ending = asyncio.ensure_future(self.until(lambda: self.ended, None))
        try:
            await asyncio.wait({future, ending}, timeout=self.deadline, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ending.cancel()
        if not future.done():
            raise await self.silence(f"it answered {method}", f"{method} was not answered", start)
        response, self.answered_at = future.result()
        if "error" in response:
            error = members(response["error"])
            raise Refused(method, error.get("code"), str(error.get("message")))
        return response.get("result")

    async def silence(self, hoped: str, missed: str, start: int) -> AgentGone | NoAnswer:
        """Return why something did not come that was waited for since there were `start` frames.

        Args:
            hoped: what did not come, as it stands behind "before".
            missed: the same, as it stands before "within 60 s".
            start: how many frames there were when the waiting began.

        """
        if self.ended:
            return AgentGone(f"{await self._end_told()} before {hoped}", self.link.stderr)
        heard = sum(not frame.sent for frame in self.frames[start:])
        meanwhile = f"; {heard:,} other {'line' if heard == 1 else 'lines'} came meanwhile" if heard else ""
        strange = self._strange(start)
        return NoAnswer(f"{missed} within {self.deadline:g} s{meanwhile}{f', among them {strange}' if strange else ''}")

    async def _end_told(self) -> str:
        """Return how the agent has ended, in words."""
        if self._why_ended:
            return self._why_ended
        if not self.link.is_process:
            return "the connection ended"
        ended, strange = _ending(await self.link.close(EXIT_SECONDS)), self._strange()
        return f"{ended}, having written {strange}," if strange else ended

    def _strange(self, start: int = 0) -> str:
        """Return the first line behind `start` that is no message, as it stands in a sentence; empty if all are."""
        line = next((each.line for each in self.frames[start:] if each.value is None and not each.sent), b"")
        return f"{line[:LINE_CHARACTERS].decode(errors='replace')!r}, which is no message" if line else ""

    # Hearing

    async def until(self, holds: Callable[[], bool], within: float | None) -> bool:
        """Wait until something holds, at most so many seconds; return whether it does."""
        try:
            async with asyncio.timeout(within):
                while not holds():
                    self._heard.clear()
                    await self._heard.wait()
        except TimeoutError:
            return False
        return True

    async def quiet(self, seconds: float) -> None:
        """Wait until nothing was heard for so many seconds, at most for the deadline."""
        loop = asyncio.get_running_loop()
        last = loop.time() + self.deadline
        while not self.ended and loop.time() < last:
            before = len(self.frames)
            await asyncio.sleep(seconds)
            if len(self.frames) == before:
                return

    def received(self) -> Iterator[Frame]:
        """Iterate over what the agent has sent."""
        return (frame for frame in self.frames if not frame.sent)

    def answers_to(self, id_: str) -> list[dict[str, Json]]:
        """Return the responses to the request with an id."""
        values = (members(frame.value) for frame in self.received())
        return [value for value in values if value.get("id") == id_ and "method" not in value]

    def errors_without_id(self) -> list[int]:
        """Return the codes of errors that name no request."""
        found: list[int] = []
        for frame in self.received():
            match frame.value:
                case {"id": None, "error": {"code": int(code)}}:
                    found.append(code)
                case _:
                    pass
        return found

    def _take(self, line: bytes) -> None:
        if self.ended or not line.strip():
            return
        self._bytes += len(line)
        if len(self.frames) >= MAX_FRAMES or self._bytes > MAX_BYTES:
            self._end(f"the agent flooded us with {len(self.frames):,} frames")
            return
        value = _read(line)
        self.frames.append(Frame(sent=False, line=line, at=time.monotonic(), value=value))
        for message in cast("list[Json]", value) if isinstance(value, list) else [value]:
            if isinstance(message, dict):
                self._take_message(members(message))
        self._heard.set()

    def _take_message(self, message: dict[str, Json]) -> None:
        method, id_ = message.get("method"), message.get("id")
        if not isinstance(method, str):
            if "result" in message or "error" in message:
                self._take_response(message)
            return
        params = members(message.get("params"))
        if method == "initialize":
            self._end("what we started sends back what it is sent: it is no agent, and fell silent")
        elif "id" in message:
            self.asked.append((method, params))
            task = asyncio.get_running_loop().create_task(self._answer(id_, method, params), name=f"answer to {method}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        elif method == "session/update" and isinstance(params.get("update"), dict):
            self.updates.append(Update(str(params.get("sessionId")), params["update"], len(self.frames)))

    def _take_response(self, message: dict[str, Json]) -> None:
        key = json.dumps(message.get("id"))
        self.answers[key] = self.answers.get(key, 0) + 1
        future = self._waiting.get(key)
        if future is not None and not future.done():
            future.set_result(Response(message, len(self.frames)))

    async def _answer(self, id_: Json, method: str, params: dict[str, Json]) -> None:
        try:
            result = self.answerers.get(method, _refuse(method))(params)
            if asyncio.isfuture(result) or asyncio.iscoroutine(result):
                result = await result
        except Refused as e:
            self.send(_encode({"jsonrpc": "2.0", "id": id_, "error": {"code": e.code, "message": e.message}}))
        else:
            self.send(_encode({"jsonrpc": "2.0", "id": id_, "result": result}))

    def _end(self, why: str | None = None) -> None:
        self.ended = True
        self._why_ended = why or self._why_ended
        self._heard.set()

    async def dispose(self) -> None:
        """Let nothing of the agent be left."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.link.dispose()


def _ending(status: int | None) -> str:
    if status is None:
        return "the agent closed its output"
    if status >= 0:
        return f"the agent exited with status {status}"
    names = {number.value: number.name for number in signal.Signals}
    return f"the agent was ended by {names.get(-status, f'signal {-status}')}"


def _refuse(method: str) -> Answerer:
    def refuse(params: dict[str, Json]) -> Json:
        del params
        raise Refused(method, -32601, f"this client does not answer {method}")

    return refuse


def members(value: Json) -> dict[str, Json]:
    """Return the members of an object; none where the value is no object."""
    return cast("dict[str, Json]", value) if isinstance(value, dict) else {}


def objects(value: Json) -> list[dict[str, Json]]:
    """Return the objects in an array; none where the value is no array."""
    return [members(each) for each in cast("list[Json]", value)] if isinstance(value, list) else []


def _encode(message: dict[str, Json]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


def _read(line: bytes) -> Json:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
