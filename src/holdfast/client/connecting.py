"""`connect`: from a command, or an agent of this process, to a `Connection`."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from holdfast.client.connection import Connection
from holdfast.client.dialect import dialect
from holdfast.client.services import Services
from holdfast.errors import InvalidAnswer, RemoteError, UsageError
from holdfast.peer import Peer, PeerLimits, Routes

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
    from pathlib import Path

    from holdfast.agent import Agent
    from holdfast.client.dialect import Dialect
    from holdfast.client.services import Permissions, Questions
    from holdfast.model import Update
    from holdfast.transport import Transport

ProtocolChoice: TypeAlias = Literal["auto", 1, 2]

LIMITS = PeerLimits(linger=0.1, end_grace=1.0, flush=0.3)

PATIENCE = 2.0
"""An agent has so many seconds to exit once its input has ended, and as many again once it is asked to terminate."""


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
    stderr: Callable[[bytes], object] | None = None,
    store: str | Path = ":memory:",
) -> AsyncGenerator[Connection]:
    """Start an agent and talk to it: a command with its arguments, or an `Agent` of this process.

    `cwd` and `env` (added to ours) are those of its process; `stderr` is called with what it writes there, of which the
    last is kept for errors anyway. `store` is where an `Agent` of this process keeps its sessions. What the agent may
    ask of us is said by `permissions`, `questions`, `files` and `terminals`; see `holdfast.client`.
    """
    services = Services(permissions, questions, files, terminals)
    transport, finish = await _open(command, cwd, env, stderr, store)
    peer = Peer(transport, Routes(), limits=LIMITS, answers_noise=False)
    running = asyncio.get_running_loop().create_task(peer.run(), name="connection to an agent")
    connection: Connection | None = None

    async def end() -> None:
        try:
            if connection is not None:
                await connection.close()
        finally:
            peer.close()
            await running
            await finish()

    try:
        connection = Connection(peer, await introduce(peer, services, protocol), services)
        yield connection
    finally:
        await _to_the_end(end())


async def _open(
    command: tuple[str | Path | Agent, ...],
    cwd: str | Path | None,
    env: Mapping[str, str] | None,
    stderr: Callable[[bytes], object] | None,
    store: str | Path,
) -> tuple[Transport, Callable[[], Awaitable[None]]]:
    if not command:
        raise UsageError('connect to what? As in `connect("gemini", "--acp")`, or `connect(agent)`')
    if not isinstance(command[0], str | os.PathLike):
        from holdfast.client.inside import serve  # noqa: PLC0415  (the one case that needs a server)

        return serve(command[0], str(store))
    from holdfast.transport import spawn  # noqa: PLC0415

    words = [os.fspath(cast("str | Path", it)) for it in command]
    whole = None if env is None else {**os.environ, **env}
    try:
        started = await spawn(*words, cwd=cwd, env=whole, patience=PATIENCE, on_stderr=cast("Any", stderr))
    except UsageError as e:
        if len(words) == 1 and " " in words[0]:
            e.add_note("Give the words of a command one by one, as in `connect(*shlex.split(command))`")
        raise
    return started, _nothing_more


async def _nothing_more() -> None: ...


async def introduce(peer: Peer, services: Services, protocol: ProtocolChoice) -> Dialect:
    """Say who we are, and find out which version the agent speaks (A8)."""
    first = 1 if protocol == 1 else 2
    try:
        answer = await _initialize(peer, services, first, both=protocol == "auto")
    except RemoteError:  # so some agents of version 1 take it that they are asked for version 2
        if protocol != "auto":
            raise
        answer = await _initialize(peer, services, 1, both=False)
    version = _version(answer)
    if protocol not in ("auto", version):
        raise InvalidAnswer(
            f'The agent speaks protocol version {version}, not {protocol}; connect with protocol="auto"'
        )
    return dialect(version, answer)


async def _initialize(peer: Peer, services: Services, version: int, *, both: bool) -> Update:
    """Ask for a version; who would speak either says what both versions want to know."""
    from importlib.metadata import version as release  # noqa: PLC0415

    from holdfast.surface.v1.agent import introduction as in_version_1  # noqa: PLC0415
    from holdfast.surface.v2.agent import introduction as in_version_2  # noqa: PLC0415

    params: Update = {"protocolVersion": version}
    about = ("holdfast", release("holdfast"))
    asks = services.questions is not None
    if version == 1 or both:
        params |= in_version_1(*about, files=services.files is not False, terminals=services.terminals, questions=asks)
    if version == 2:
        params |= in_version_2(*about, questions=asks)
    return await peer.request("initialize", params, result=dict[str, Any])


def _version(answer: Update) -> int:
    """Find out which version an answer is in: agents exist that say 2 and mean 1."""
    said = answer.get("protocolVersion")
    if isinstance(said, int) and said > 2:
        raise InvalidAnswer(f"The agent speaks protocol version {said}, which this library does not know")
    in_version_1 = "agentCapabilities" in answer or "agentInfo" in answer
    return 2 if said == 2 and not in_version_1 and ("info" in answer or "capabilities" in answer) else 1


async def _to_the_end(work: Coroutine[Any, Any, None]) -> None:
    """Do something to its end, which comes soon by itself, even if we are cancelled meanwhile."""
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
