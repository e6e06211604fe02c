"""One connection to one server, and the task that owns it.

The SDK's scopes must be entered and left by the same task. So one task opens the connection, waits for its end and
closes it; calls run in the tasks of their callers, and are cancelled with them. The next call restarts a server that
died, but not sooner than a back-off allows if it dies again and again (E4).
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from holdfast.errors import ServerUnavailable, ToolFailed, ToolTimeout, UsageError, without_chatter
from holdfast.mcp.secrets import redacted
from holdfast.mcp.types import ServerStatus

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence

    from holdfast.mcp.sdk_client import SdkClient
    from holdfast.mcp.servers import Server
    from holdfast.mcp.types import McpLimits, Progress, State, ToolResult
    from holdfast.model import Elicitation, ElicitationAnswer

log: logging.Logger = logging.getLogger(__name__)

T = TypeVar("T")

CLOSE_SECONDS = 0.2
"""How long a connection may take to close, besides the time its process has to exit."""

REASON_CHARACTERS = 4_000
"""How much is said about a failure. Its end is kept, where the end of the server's stderr is."""


class SessionAccess(NamedTuple):
    """What a server may know of its session, and whom it may ask."""

    cwd: str
    roots: Callable[[], Sequence[str]]
    elicit: Callable[[Elicitation], Awaitable[ElicitationAnswer | None]]
    """Asks the user; returns None where there is no answer."""
    modes: Callable[[], Collection[str]]
    """Returns how the user can be asked now: `form`, `url`."""


class ServerConnection:
    """A server of one session."""

    def __init__(
        self, server: Server, session: SessionAccess, limits: McpLimits, on_failure: Callable[[ServerStatus], None]
    ) -> None:
        self.server = server
        self.state: State = "connecting"
        self.reason: str | None = None
        self.was_ready: bool = False
        self._session = session
        self._limits = limits
        self._on_failure = on_failure
        self._loop = asyncio.get_running_loop()
        self._owner: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()
        self._over = asyncio.Event()
        self._end_reason: str | None = None
        self._call_reason: str | None = None
        self._stderr = ""
        self._refuses_handshake = False
        self._sdk: Any = None  # the module, once it is loaded
        self._client: SdkClient | None = None
        self._failures = 0
        self._restart_at = 0.0
        self._ready_at = 0.0

    @property
    def status(self) -> ServerStatus:
        """The state of the server, and why it failed if it did."""
        return ServerStatus(self.server.name, self.state, self.reason)

    def start(self) -> None:
        """Begin to connect."""
        self.state, self.reason = "connecting", None
        self._settled, self._over = asyncio.Event(), asyncio.Event()
        self._end_reason, self._call_reason, self._stderr = None, None, ""
        self._owner = self._loop.create_task(self._own(), name=f"MCP server {self.server.name}")

    async def settled(self) -> None:
        """Wait until the server is ready, or has failed."""
        await self._settled.wait()

    async def call_tool(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        limit: float | None,
        on_progress: Callable[[Progress], Awaitable[None]] | None,
    ) -> tuple[ToolResult, bool]:
        """Call a tool; return its result, and whether that is an error. Progress restarts the time limit."""
        over = telling = False
        latest: Progress | None = None
        async with self._request(f"tool {tool!r}", limit, restart=True) as (client, clock):

            async def progressed(progress: Progress) -> None:
                """Tell one after the other. A slow listener misses what is outdated by then."""
                nonlocal latest, telling
                if over:  # the SDK may tell of progress later than of the result
                    return
                if limit is not None:
                    clock.reschedule(self._loop.time() + limit)
                latest = progress
                if telling or on_progress is None:
                    return
                telling = True
                try:
                    while latest is not None and not over:
                        now, latest = latest, None
                        await on_progress(now)
                finally:
                    telling = False

            try:
                return await client.call(tool, dict(arguments), progressed)
            finally:
                over = True

    async def ask(
        self, what: str, limit: float | None, question: Callable[[SdkClient], Awaitable[T]], *, restart: bool
    ) -> T:
        """Ask the server something; `what` names it in errors. With `restart`, a server that failed is restarted."""
        async with self._request(what, limit, restart=restart) as (client, _):
            return await question(client)

    async def tell_roots_changed(self) -> None:
        """Notify the server that the session's roots have changed, if it is there."""
        if self.state == "ready" and self._client is not None:
            try:
                await self._client.tell_roots_changed()
            except Exception as e:  # noqa: BLE001  (the next call will say what is wrong)
                log.info("MCP server %s could not be told its roots: %s", self.server.name, type(e).__name__)

    async def close(self) -> None:
        """End the connection. Afterwards the server's process is gone, with all that it started."""
        connecting, self.state, self.reason = self.state == "connecting", "closed", None
        self._settled.set()
        self._over.set()
        owner = self._owner
        if owner is None or owner.done():
            return
        if connecting:
            owner.cancel()
        await self._finish(owner)

    # Requests

    @asynccontextmanager
    async def _request(
        self, what: str, limit: float | None, *, restart: bool
    ) -> AsyncGenerator[tuple[SdkClient, asyncio.Timeout]]:
        """Give a request its client and its clock, and make our errors of what goes wrong."""
        client = await self._get_client(restart=restart)
        sdk = self._sdk
        try:
            async with asyncio.timeout(limit) as clock:
                yield client, clock
        except TimeoutError:
            raise ToolTimeout(self.server.name, f"{what} took longer than {limit:g} s") from None
        except Exception as e:
            if self._over.is_set() or sdk.is_connection_lost(e):
                self._call_reason = sdk.server_message(e)
                await self._lose()
                raise ServerUnavailable(self.server.name, self.reason or "it was closed") from None
            if (message := sdk.server_message(e)) is None:
                raise
            raise ToolFailed(self.server.name, f"{what} failed: {self._redacted(message)}") from None

    async def _get_client(self, *, restart: bool) -> SdkClient:
        if self.state == "ready" and self._over.is_set():
            await self._lose()  # the server is gone, and that is just being noticed
        if self.state == "failed" and restart:
            wait = self._restart_at - self._loop.time()
            if wait > 0:
                raise ServerUnavailable(self.server.name, f"{self.reason}\nIt is not started again for {wait:.1f} s")
            self.start()
        await self._settled.wait()
        if self._client is None:
            raise ServerUnavailable(self.server.name, self.reason or "it was closed")
        return self._client

    async def _lose(self) -> None:
        """Let the owner clean up after a connection that is over."""
        self._over.set()
        if self._owner is not None:
            await self._finish(self._owner)

    async def _finish(self, owner: asyncio.Task[None]) -> None:
        """Wait for the owner to clean up; cancel it if the server does not listen to its goodbye."""
        _, left = await asyncio.wait({owner}, timeout=2 * self._limits.stop + CLOSE_SECONDS)
        if left:
            owner.cancel()
            await asyncio.wait({owner})

    # What the owner does

    async def _own(self) -> None:
        failure = "it was closed"
        try:
            # In a thread: others need the loop. Once the module is loaded this is a look into a dict.
            self._sdk = self._sdk or await asyncio.to_thread(import_module, "holdfast.mcp.sdk_client")
            await self._stay_connected()
            failure = self._end_reason or self._call_reason or "the connection ended"
        except (Exception, BaseExceptionGroup) as e:  # noqa: BLE001  (whatever it is, it is one server's)
            failure = self._explain(e)
        finally:
            self._client = None
            if self.state != "closed":
                self._fail(failure)
            self._settled.set()

    async def _stay_connected(self) -> None:
        try:
            await self._connect()
        except (Exception, BaseExceptionGroup) as e:
            unfit = self.state != "connecting" or self._refuses_handshake
            if unfit or not self._sdk.refuses_handshake(_first_cause(e)):
                raise
            self._refuses_handshake = True
            await self._connect()

    async def _connect(self) -> None:
        """Connect, and stay until the end."""
        opening = self._sdk.open_client(self.server, self._session, self._limits, self, newest=self._refuses_handshake)
        async with asyncio.timeout(self._limits.start) as clock, opening as client:
            clock.reschedule(None)
            if self.state == "closed":
                return
            self._client, self.state = client, "ready"
            self.was_ready = True
            self._ready_at = self._loop.time()
            self._settled.set()
            if self._end_reason is None:  # the server may have answered and exited in the same moment
                await self._over.wait()

    def connection_ended(self, reason: str) -> None:
        """Note why the server is of no use any more."""
        self._end_reason = self._end_reason or reason
        if self.state == "ready":
            self._over.set()

    def process_exited(self, stderr: str) -> None:
        """Note the end of what the server's process wrote to stderr."""
        self._stderr = stderr

    def _fail(self, failure: str) -> None:
        now = self._loop.time()
        if self.state == "ready" and now - self._ready_at > self._limits.max_backoff:
            self._failures = 0  # it worked for a while
        self._failures += 1
        pause = self._limits.backoff * 2 ** (self._failures - 2) if self._failures > 1 else 0.0
        self._restart_at = now + min(pause, self._limits.max_backoff)
        self.state, self.reason = "failed", self._redacted(failure)
        log.warning("MCP server %s failed: %s", self.server.name, self.reason)
        self._on_failure(self.status)

    def _explain(self, error: BaseException) -> str:
        cause = _first_cause(error)
        if self._sdk is not None and (fault := self._sdk.stream_fault(cause)) is not None:
            return fault
        if self._end_reason is not None:
            return self._end_reason
        if isinstance(cause, UsageError):
            return str(cause)
        late = isinstance(cause, TimeoutError)
        what = f"it was not ready within {self._limits.start:g} s" if late else f"{type(cause).__name__}: {cause}"
        last = without_chatter(self._stderr)
        return f"{what}; its last words on stderr:\n{last}" if last else what

    def _redacted(self, text: str) -> str:
        """Return a text without the server's secrets (P10), and not longer than anybody would read."""
        clean = redacted(text, self.server.secrets)
        return clean if len(clean) <= REASON_CHARACTERS else f"… {clean[-REASON_CHARACTERS:]}"


def _first_cause(error: BaseException) -> BaseException:
    """Return what went wrong first, inside of what the SDK's task groups make of it."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error
