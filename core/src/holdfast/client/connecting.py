"""`connect`: from a command, or an agent of this process, to a `Connection`."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from holdfast.client.agent_link import AgentLink
from holdfast.client.handshake import ClientInfo, negotiate
from holdfast.client.services import Services
from holdfast.errors import StartTimeout, UsageError
from holdfast.peer import Peer, PeerLimits, Routes

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
    from pathlib import Path
    from typing import Literal

    from holdfast.agent import Agent
    from holdfast.client.connection import Connection
    from holdfast.client.dialect import Dialect
    from holdfast.client.handshake import ProtocolChoice
    from holdfast.client.services import OnComplete, OnNotification, OnRequest, Permissions, Questions
    from holdfast.peer import DroppedLine
    from holdfast.transport import ProcessTransport, Transport

LIMITS = PeerLimits(linger=0.1, end_grace=1.0, flush=0.3)

EXIT_SECONDS = 2.0
"""An agent has so many seconds to exit once its input has ended, and as many again once it is asked to terminate."""

START_SECONDS = 30.0
"""An agent has so many seconds to answer `initialize`, unless `connect` is told otherwise."""

REMOTE = ("http://", "https://", "ws://", "wss://")
"""What the address of a server begins with."""

MAX_LINE_BYTES = 64 << 20
"""The longest message taken from an agent, unless `connect` is told otherwise. Our own agents send none over 16 MiB."""


@asynccontextmanager
async def connect(
    *command: str | Path | Agent,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    protocol: ProtocolChoice = "auto",
    permissions: Permissions = "deny",
    questions: Questions = None,
    files: bool | Sequence[str | Path] = False,
    terminals: bool = False,
    on_request: OnRequest = None,
    on_notification: OnNotification = None,
    on_complete: OnComplete = None,
    on_frame: Callable[[Literal["in", "out"], bytes], None] | None = None,
    name: str = "holdfast",
    version: str | None = None,
    meta: Mapping[str, Any] | None = None,
    terminal_logins: bool = False,
    timeout: float | None = START_SECONDS,  # noqa: ASYNC109  (of the start alone, and the error says what was seen)
    max_line_bytes: int = MAX_LINE_BYTES,
    stderr: Callable[[bytes], object] | None = None,
    store: str | Path = ":memory:",
    token: str | None = None,
    over: Literal["websocket", "http"] = "websocket",
) -> AsyncGenerator[Connection]:
    """Start an agent and talk to it; when the block is left, the agent and all its processes are ended.

    Args:
        command: the agent's command and its arguments, an `Agent` of this process, or the URL of a server, as
            ``https://host/acp``.
        cwd: the directory of its process.
        env: added to our environment for its process.
        protocol: the version to speak; "auto" is 2 if the agent can, else 1.
        permissions: the answer to permission requests: "deny", "allow", or a function.
        questions: a function that fills in forms; without one they are declined.
        files: True if the agent may read and write in the session's directories, or the directories it may use instead.
        terminals: whether it may run commands in the session's directories.
        on_request: ``async (method, params) -> result`` answers requests that are not of the protocol, as those that
            begin with ``_``; it raises `MethodNotFound` for what it does not know.
        on_notification: ``async (method, params)`` is called with every such notification.
        on_complete: ``async (elicitation)`` is called when the agent says that an address it asked the user to visit is
            done with.
        on_frame: ``(direction, line)`` is called with every line that is sent ("out") and received ("in").
        name: what the client is called in `initialize`.
        version: its version, by default Holdfast's.
        meta: `_meta` of `initialize`.
        terminal_logins: whether users can be let log in by the agent's own program, in a terminal: methods of type
            ``terminal`` in `auth_methods`.
        timeout: how many seconds the agent may take to answer `initialize`; None is for ever.
        max_line_bytes: a longer message is not read; whoever it concerns gets `MessageLost`.
        stderr: is called with what the process writes to stderr, of which the last is kept for errors anyway.
        store: where an `Agent` of this process keeps its sessions.
        token: for a server, the token that lets us in.
        over: for a server, what to reach it by.

    Yields:
        The connection to the agent.

    Raises:
        UsageError: the command cannot be started.
        StartTimeout: it was started and did not answer in time.
        ProcessExited: it exited instead of answering.
        RemoteError: it refused `initialize`.

    """
    services = Services(permissions, questions, files, terminals, on_request, on_notification, on_complete)
    link = await _open(command, cwd, env, stderr, str(store), max_line_bytes, token, over)
    peer = Peer(link.transport, Routes(), limits=LIMITS, answers_noise=False)
    agent: AgentLink | None = None

    def dropped(line: DroppedLine) -> None:
        if link.process is not None:
            link.process.keep_output(line.head)
        if line.was_message and agent is not None:
            agent.unreadable(line.head, line.reason)

    peer.on_dropped_line = dropped
    if on_frame is not None:
        peer.observe(on_frame)
    running = asyncio.get_running_loop().create_task(peer.run(), name="connection to an agent")

    async def end() -> None:
        try:
            if agent is not None:
                await agent.close()
        finally:
            peer.close()
            await running
            await link.finish()

    try:
        dialect = await _start(
            negotiate(peer, services, ClientInfo(name, version, meta, terminal_logins), protocol), timeout, link
        )
        agent = AgentLink(peer, dialect, services, replays_in_time=link.process is None)
        yield agent.public
    finally:
        await _uncancelled(end())


class _AgentLink(NamedTuple):
    """The way to an agent: a transport, its process if it has one, and what waits for its end."""

    transport: Transport
    process: ProcessTransport | None
    finish: Callable[[], Awaitable[None]]


async def _open(
    command: tuple[str | Path | Agent, ...],
    cwd: str | Path | None,
    env: Mapping[str, str] | None,
    stderr: Callable[[bytes], object] | None,
    store: str,
    max_line_bytes: int,
    token: str | None,
    over: Literal["websocket", "http"],
) -> _AgentLink:
    if not command:
        raise UsageError('connect to what? As in `connect("gemini", "--acp")`, or `connect(agent)`')
    if not isinstance(command[0], str | os.PathLike):
        from holdfast.client.in_process import serve_in_process  # noqa: PLC0415  (the one case that needs a server)

        transport, finish = serve_in_process(command[0], store, max_line_bytes)
        return _AgentLink(transport, None, finish)
    if len(command) == 1 and str(command[0]).startswith(REMOTE):
        transport = await _connect_to_server(str(command[0]), token, over, max_line_bytes)
        return _AgentLink(transport, None, _nothing_to_finish)
    from holdfast.transport import spawn  # noqa: PLC0415

    arguments = [os.fspath(cast("str | Path", argument)) for argument in command]
    whole_env = None if env is None else {**os.environ, **env}
    try:
        process = await spawn(
            *arguments,
            cwd=cwd,
            env=whole_env,
            limit=max_line_bytes,
            patience=EXIT_SECONDS,
            on_stderr=cast("Any", stderr),
        )
    except UsageError as e:
        if len(arguments) == 1 and " " in arguments[0]:
            e.add_note("Give the words of a command one by one, as in `connect(*shlex.split(command))`")
        raise
    return _AgentLink(process, process, _nothing_to_finish)


async def _connect_to_server(
    url: str, token: str | None, over: Literal["websocket", "http"], max_line_bytes: int
) -> Transport:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    if over == "http":
        try:
            from holdfast.client.http_transport import HttpClientTransport  # noqa: PLC0415  (few are remote)
        except ModuleNotFoundError as e:
            raise UsageError(f"An agent over HTTP needs {e.name}: pip install 'holdfast-core[http]'") from None

        return HttpClientTransport(url, headers=headers, limit=max_line_bytes)
    from holdfast.transport.websocket_client import connect_websocket  # noqa: PLC0415

    return await connect_websocket(url, headers=headers, limit=max_line_bytes)


async def _nothing_to_finish() -> None: ...


async def _start(negotiation: Coroutine[Any, Any, Dialect], timeout: float | None, link: _AgentLink) -> Dialect:  # noqa: ASYNC109
    """Wait for the answer to `initialize`; raise `StartTimeout` if there is none in time."""
    waiting = asyncio.timeout(timeout)
    try:
        async with waiting:
            return await negotiation
    except TimeoutError:
        if not waiting.expired():
            raise
        process = link.process
        written = ("the agent", "", "") if process is None else (process.name, process.stdout, process.stderr)
        assert timeout is not None
        raise StartTimeout(*written, timeout) from None


async def _uncancelled(work: Coroutine[Any, Any, None]) -> None:
    """Run work, which ends soon by itself, to its end even if we are cancelled meanwhile."""
    task = asyncio.get_running_loop().create_task(work, name="end of a connection")
    cancelled = False
    while not task.done():
        try:
            with suppress(Exception):
                await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        task.exception()
        raise asyncio.CancelledError
    task.result()
