"""`connect_to` and the client it returns: an agent of this process, and answers to all that it asks."""

from __future__ import annotations

import asyncio
import logging
import threading
import warnings
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from traceback import extract_tb, format_exception_only
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from holdfast.client import connect
from holdfast.diagnostics.tracebacks import author_frames
from holdfast.errors import RemoteError, UsageError
from holdfast.model import RULES, ElicitationAnswer, History
from holdfast.testing.transcripts import draw_ask, draw_entry, without_chance
from holdfast.testing.turn_result import TurnResult

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

    from holdfast.agent import Agent
    from holdfast.client import ClientSession, Connection, SessionUpdate
    from holdfast.model import Elicitation, Permission, Update

PermissionAnswer: TypeAlias = bool | str | None
"""True and False are a yes and a no that hold once; a text is the id of an option; None is no answer."""

PermissionScript: TypeAlias = Literal["allow", "deny"] | Sequence[PermissionAnswer] | Mapping[str, PermissionAnswer]
FormAnswer: TypeAlias = Mapping[str, Any] | None
FormScript: TypeAlias = Sequence[FormAnswer] | Mapping[str, FormAnswer]

PATIENCE = 30.0
"""A turn may take so many real seconds, unless a test says otherwise."""


@asynccontextmanager
async def connect_to(
    agent: Agent,
    *,
    permissions: PermissionScript = (),
    forms: FormScript = (),
    cwd: str | Path | None = None,
    store: str | Path = ":memory:",
    protocol: Literal["auto", 1, 2] = "auto",
    mcp_servers: Sequence[dict[str, Any]] = (),
    **options: Any,
) -> AsyncGenerator[ScriptedClient]:
    """Connect to an agent of this process and open a session with it.

    A question that the script has no answer for fails the turn that asked it; answers that were not asked for fail the
    test when the block is left.

    Args:
        agent: the agent under test.
        permissions: the answers to permission requests: in the order they come, or by the beginning of their title;
            or "allow" or "deny" for all of them.
        forms: what is filled into forms: in the order they come, or by the beginning of their message; None declines.
        cwd: the session's directory, by default an empty one that is removed afterwards.
        store: where sessions are kept, by default in memory. Two clients that share a file share the sessions.
        protocol: the version to speak.
        mcp_servers: the MCP servers of the session, as the protocol has them:
            ``{"name": "clock", "command": "python3", "args": ["clock.py"], "env": []}``.
        options: what else `holdfast.connect` takes: `files`, `terminals`, `on_request`…

    Yields:
        The client, with a session open.

    """
    with _directory(cwd) as directory:
        client = ScriptedClient(_Script("permission", permissions), _Script("form", forms))
        async with connect(
            agent,
            permissions=client.answer_permission,
            questions=client.answer_form,
            on_frame=lambda direction, frame: client.wire.append((direction, bytes(frame))),
            protocol=protocol,
            store=store,
            **options,
        ) as client.connection:
            with _failures(client.failures):
                await client.open_session(directory, mcp_servers=mcp_servers)
                yield client
        client.check_unused()


class ScriptedClient:
    """A client of one agent, in one session, whose answers are given beforehand.

    Attributes:
        connection: the connection to the agent, for everything that is not here.
        session: the session that `say` and `begin` prompt, for everything that is not here.

    """

    connection: Connection
    session: ClientSession

    def __init__(self, permissions: _Script, forms: _Script) -> None:
        self.wire: list[tuple[Literal["in", "out"], bytes]] = []
        """Every line that was sent ("out") and received ("in")."""
        self.asked: list[Permission | Elicitation] = []
        """Every question of the agent."""
        self.failures: dict[str, BaseException] = {}
        """What the agent's code raised, by what clients are told of it: a reference, or the message of a refusal."""
        self._permissions = permissions
        self._forms = forms
        self._shown: list[tuple[str, str] | str] = []  # keys of entries and lines, in the order they appeared
        self._known: set[tuple[str, str]] = set()
        self._unanswered: list[str] = []

    async def open_session(
        self, cwd: str | Path | None = None, *, mcp_servers: Sequence[dict[str, Any]] = ()
    ) -> ClientSession:
        """Open a new session and go on in that.

        Args:
            cwd: its directory, by default that of the session before.
            mcp_servers: the MCP servers that the client gives to it, as the protocol has them.

        Returns:
            The session, which is also `session` now.

        """
        self.session = await self.connection.new_session(cwd or self.session.cwd, mcp_servers=mcp_servers)
        return self.session

    async def load(self, session_id: str) -> ClientSession:
        """Restore a session and go on in that; what was said in it becomes part of the transcript.

        Args:
            session_id: its id.

        Returns:
            The session, which is also `session` now.

        Raises:
            RemoteError: there is no such session.

        """
        self.session = await self.connection.load(session_id, self.session.cwd)
        for entry in self.session.history:
            self._note(entry.entity, entry.key)
        return self.session

    # Turns

    def begin(self, prompt: str | Sequence[Update], *, timeout: float = PATIENCE) -> RunningTurn:
        """Begin a turn and return at once.

        Args:
            prompt: a text, or content blocks.
            timeout: how many real seconds the turn may take; a `Clock` does not change that.

        Returns:
            The turn; await it for its result.

        """
        return RunningTurn(self, prompt, timeout)

    async def say(self, prompt: str | Sequence[Update], *, timeout: float = PATIENCE) -> TurnResult:  # noqa: ASYNC109
        """Say something and wait for the end of the turn.

        Args:
            prompt: a text, or content blocks.
            timeout: how many real seconds the turn may take.

        Returns:
            How the turn went.

        Raises:
            RemoteError: the turn failed; what the agent's code raised is its cause.
            AssertionError: the agent asked something the script has no answer for, or an `await` was forgotten.
            TimeoutError: the turn took too long.

        """
        return await self.begin(prompt, timeout=timeout)

    def take(self, update: SessionUpdate) -> None:
        """Note where in the transcript what an update is about belongs."""
        entity = update.kind.removesuffix("_chunk")
        self._note("tool_call_update" if entity == "tool_call_content" else entity, update.key)

    def check_script(self) -> None:
        """Raise `AssertionError` if the agent has asked something the script has no answer for."""
        if self._unanswered:
            unanswered, self._unanswered = self._unanswered, []
            raise AssertionError("; ".join(unanswered))

    def check_unused(self) -> None:
        """Raise `AssertionError` if there are answers that the agent has not asked for."""
        left = [*self._permissions.left(), *self._forms.left()]
        assert not left, f"the agent did not ask for all that was scripted: {', '.join(left)}"

    # The transcript

    def ended(self, stop_reason: str | None) -> None:
        """Note the end of a turn in the transcript."""
        self._shown.append(f"= {stop_reason}")

    def transcript(self) -> str:
        """Return the conversation as a text to compare: see `holdfast.testing.transcripts` for its signs.

        Returns:
            The text, in which ids, times and the session's directory stand as signs.

        """
        entries = {(entry.entity, entry.key): entry for entry in self.session.history}
        lines: list[str] = []
        for shown in self._shown:
            if isinstance(shown, str):
                lines.append(shown)
            elif shown in entries:
                lines += draw_entry(entries[shown])
        return without_chance("\n".join((*lines, "")), self.session.cwd)

    def _note(self, entity: str, key: str) -> None:
        if (entity, key) not in self._known:
            self._known.add((entity, key))
            self._shown.append((entity, key))

    # What the agent asks

    async def answer_permission(self, _session: ClientSession, question: Permission) -> str | bool | None:
        """Answer a permission request by the script."""
        self.asked.append(question)
        answer: PermissionAnswer = None
        try:
            answer = self._permissions.next(question.title)
        except LookupError as e:
            self._unanswered.append(str(e.args[0]))
        shown = {True: "allow", False: "reject", None: "no answer"}.get(cast("Any", answer), str(answer))
        self._shown.append(draw_ask(question.title, shown))
        return answer

    async def answer_form(
        self, _session: ClientSession | None, question: Elicitation
    ) -> dict[str, Any] | ElicitationAnswer | None:
        """Fill in a form by the script."""
        self.asked.append(question)
        message = str(question.params.get("message", ""))
        answer: FormAnswer = None
        try:
            answer = self._forms.next(message)
        except LookupError as e:
            self._unanswered.append(str(e.args[0]))
        shown = "declined" if answer is None else ", ".join(f"{name}: {value}" for name, value in answer.items())
        self._shown.append(draw_ask(message, shown or "accepted"))
        return None if answer is None else dict(answer)


class RunningTurn:
    """A turn that was begun: await it for its `TurnResult`."""

    def __init__(self, client: ScriptedClient, prompt: str | Sequence[Update], timeout: float) -> None:
        self.updates: list[SessionUpdate] = []
        """What has come so far."""
        self._client = client
        self._prompt = prompt
        self._timeout = timeout
        self._news = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._run(), name="turn under test")
        self._task.add_done_callback(lambda _: self._news.set())

    def __await__(self) -> Generator[Any, None, TurnResult]:
        return self._task.__await__()

    @property
    def text(self) -> str:
        """What the agent has said so far."""
        return self._result(None).text

    async def until(self, text: str) -> None:
        """Wait until the agent has said a text: in its answer, not in a thought, a plan or a tool call.

        Args:
            text: the text.

        Raises:
            AssertionError: the turn ends before. The message says what there was instead.

        """
        while text not in self.text:
            if self._task.done():
                raise AssertionError(self._not_said(text)) from _failure_of(self._task)
            await self._wait_for_news()

    def _not_said(self, text: str) -> str:
        kinds = list(dict.fromkeys(update.kind for update in self.updates))
        is_kind = any(text in (kind, kind.removesuffix("_update")) for kind in (*kinds, *RULES))
        advice = "; kinds of updates are in `turn.updates`" if is_kind else ""
        failure = _failure_of(self._task)
        ended = "the turn ended" if failure is None else f"the turn failed ({failure})"
        said = f"the agent said {self.text!r}, and its updates were: {', '.join(kinds) or 'none'}"
        return f"`until` waits for text that the agent says, and {ended} without {text!r}: {said}{advice}"

    async def _wait_for_news(self) -> None:
        self._news.clear()
        if not self._task.done():
            await self._news.wait()

    async def cancel(self) -> TurnResult:
        """Cancel the turn as a user does who has seen it begin, and wait for its end.

        Returns:
            How the turn went.

        """
        while not self.updates and not self._task.done():
            await self._wait_for_news()
        await self._client.session.cancel()
        return await self

    async def _run(self) -> TurnResult:
        with _real_deadline(self._timeout), _forgotten_awaits() as forgotten:
            turn = self._client.session.prompt(self._prompt)
            try:
                async for update in turn:
                    self.updates.append(update)
                    self._client.take(update)
                    self._news.set()
            except RemoteError as e:
                self._client.ended("error")
                self._client.check_script()
                cause = self._cause_of(e)
                raise e if cause is None else _failed_by(cause, e) from cause
        assert not forgotten, "; ".join(forgotten)
        self._client.check_script()
        self._client.ended(turn.stop_reason)
        return self._result(turn.stop_reason)

    def _cause_of(self, error: RemoteError) -> BaseException | None:
        """Return what the agent's code raised, of which the client is told a reference or the message."""
        failures, told = self._client.failures, f"{error.message} {error.data}"
        if error.message in failures:
            return failures[error.message]
        return next((failures[known] for known in failures if known.startswith("ref_") and known in told), None)

    def _result(self, stop_reason: str | None) -> TurnResult:
        history = History()
        for update in self.updates:
            history.apply(update)
        return TurnResult(stop_reason, history, tuple(self.updates))


def _failure_of(task: asyncio.Task[Any]) -> BaseException | None:
    return None if task.cancelled() else task.exception()


class _Script:
    """Answers given beforehand: all the same, one after the other, or by the beginning of the question."""

    def __init__(self, kind: str, answers: Any) -> None:
        self._kind = kind
        self._always: list[Any] = [answers == "allow"] if isinstance(answers, str) else []
        self._named: dict[str, Any] = dict(cast("Any", answers)) if isinstance(answers, Mapping) else {}
        self._unused = set(self._named)
        in_order = isinstance(answers, Sequence) and not isinstance(answers, str)
        self._queue: deque[Any] = deque(cast("Any", answers) if in_order else ())

    def next(self, question: str) -> Any:
        """Return the answer to a question; raise `LookupError` if there is none."""
        if self._always:
            return self._always[0]
        for beginning, answer in self._named.items():
            if question.startswith(beginning):
                self._unused.discard(beginning)
                return answer
        if self._queue:
            return self._queue.popleft()
        raise LookupError(f"the agent asked for a {self._kind} that is not in the script: {question!r}")

    def left(self) -> list[str]:
        """Return what was not asked for."""
        return [f"{self._kind} {answer!r}" for answer in (*sorted(self._unused), *self._queue)]


def _failed_by(cause: BaseException, error: RemoteError) -> RemoteError:
    """Return an error whose message says what the agent's code raised, and where: clients get a reference instead."""
    if error.message == str(cause):
        return error
    frames = author_frames(extract_tb(cause.__traceback__))
    where = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    what = str(cause) if isinstance(cause, UsageError) else "".join(format_exception_only(cause)).strip()
    return RemoteError(error.code, f"The agent failed{where}: {what}", error.data)


class _Failures(logging.Handler):
    """Keeps what agent code raised, by what clients are told of it."""

    def __init__(self, kept: dict[str, BaseException]) -> None:
        super().__init__()
        self._kept = kept

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the exception of a record that says what clients are told of it."""
        failure = record.exc_info[1] if record.exc_info else None
        told = getattr(record, "reference", None) or getattr(record, "told", None)
        if failure is not None and told is not None:
            self._kept[str(told)] = failure


@contextmanager
def _failures(kept: dict[str, BaseException]) -> Generator[None]:
    handler, logger, turns = _Failures(kept), logging.getLogger("holdfast"), logging.getLogger("holdfast.engine.turn")
    level = turns.level
    logger.addHandler(handler)
    turns.setLevel(logging.DEBUG)  # what an agent refuses by itself is no error to the log
    try:
        yield
    finally:
        turns.setLevel(level)
        logger.removeHandler(handler)


@contextmanager
def _forgotten_awaits() -> Generator[list[str]]:
    """Collect where an `await` was forgotten while the block runs; other warnings are issued as they are."""
    forgotten: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RuntimeWarning)
        yield forgotten
    for warning in caught:
        if str(warning.message).endswith("was never awaited"):
            forgotten.append(f"{warning.filename}:{warning.lineno}: {warning.message}; write `await` before it")
        else:
            warnings.warn_explicit(warning.message, None, warning.filename, warning.lineno)  # pyright: ignore[reportArgumentType, reportCallIssue]


@contextmanager
def _real_deadline(seconds: float) -> Generator[None]:
    """Cancel the current task after so many real seconds, whatever a `Clock` says; raise `TimeoutError` then."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None
    late = threading.Event()

    def expire() -> None:
        late.set()
        loop.call_soon_threadsafe(task.cancel)

    timer = threading.Timer(seconds, expire)
    timer.daemon = True
    timer.start()
    try:
        yield
    except asyncio.CancelledError:
        if not late.is_set():
            raise
        task.uncancel()
        raise TimeoutError(f"the turn has not ended after {seconds:g} seconds") from None
    finally:
        timer.cancel()


@contextmanager
def _directory(given: str | Path | None) -> Generator[Path]:
    if given is not None:
        yield Path(given)
        return
    with TemporaryDirectory(prefix="holdfast-test-") as made:
        yield Path(made).resolve()
