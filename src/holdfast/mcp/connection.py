"""One connection to one server, and the task that owns it.

The SDK's scopes must be entered and left by the same task, so one task opens the connection, waits for its end and
closes it; calls are made by whoever calls, and cancelled with them. A server that died is started again by the next
call, not before a while if it dies again and again (E4).
"""

from __future__ import annotations

import asyncio
import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from holdfast.errors import ServerUnavailable, ToolFailed, ToolTimeout, UsageError
from holdfast.mcp.servers import redacted
from holdfast.mcp.values import ServerStatus

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence

    from holdfast.mcp.servers import Server
    from holdfast.mcp.values import Limits, State
    from holdfast.mcp.wire import Link
    from holdfast.model import Elicitation, ElicitationAnswer

log = logging.getLogger(__name__)

T = TypeVar("T")

GOODBYE_SECONDS = 0.2
"""What a connection may take to close, besides the time its process has to end."""

REASON_CHARACTERS = 4_000
"""How much is said about a failure; the end of it is kept, where the server's last words are."""


class Surroundings(NamedTuple):
    """What a server may know of its session, and whom it may ask."""

    cwd: str
    roots: Callable[[], Sequence[str]]
    elicit: Callable[[Elicitation], Awaitable[ElicitationAnswer | None]]
    """Puts a question to the user; None where there is no answer."""
    modes: Callable[[], Collection[str]]
    """In which ways the user can be asked now: `form`, `url`."""


class Connection:
    """A server of one session."""

    def __init__(
        self, server: Server, around: Surroundings, limits: Limits, on_failure: Callable[[ServerStatus], None]
    ) -> None:
        self.server = server
        self.state: State = "connecting"
        self.reason: str | None = None
        self.was_ready = False
        self._around = around
        self._limits = limits
        self._on_failure = on_failure
        self._loop = asyncio.get_running_loop()
        self._owner: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()
        self._over = asyncio.Event()
        self._ended_because: str | None = None
        self._lost_because: str | None = None
        self._last_words = ""
        self._newest = False
        self._wire: Any = None
        self._link: Link | None = None
        self._failures = 0
        self._not_before = 0.0
        self._ready_at = 0.0

    @property
    def status(self) -> ServerStatus:
        """How it is doing."""
        return ServerStatus(self.server.name, self.state, self.reason)

    def start(self) -> None:
        """Begin to connect."""
        self.state, self.reason = "connecting", None
        self._settled, self._over = asyncio.Event(), asyncio.Event()
        self._ended_because, self._lost_because, self._last_words = None, None, ""
        self._owner = self._loop.create_task(self._own(), name=f"MCP server {self.server.name}")

    async def settled(self) -> None:
        """Wait until it is ready, or has failed."""
        await self._settled.wait()

    async def use(
        self, what: str, limit: float | None, work: Callable[[Link, Callable[[], None]], Awaitable[T]], *, revive: bool
    ) -> T:
        """Do something with the server; the work may say that it hears something, and the clock starts again."""
        link = await self._get_link(revive=revive)
        wire = self._wire
        try:
            async with asyncio.timeout(limit) as clock:

                def alive() -> None:
                    if limit is not None:
                        clock.reschedule(self._loop.time() + limit)

                return await work(link, alive)
        except TimeoutError:
            raise ToolTimeout(self.server.name, f"{what} took longer than {limit:g} s") from None
        except Exception as e:
            if self._over.is_set() or wire.is_lost(e):
                self._lost_because = wire.said_by(e)
                await self._lose()
                raise ServerUnavailable(self.server.name, self.reason or "it was closed") from None
            if (said := wire.said_by(e)) is None:
                raise
            raise ToolFailed(self.server.name, f"{what} failed: {self._clean(said)}") from None

    async def tell_roots_changed(self) -> None:
        """Tell the server that the session's roots are others now, if it is there to be told."""
        if self.state == "ready" and self._link is not None:
            try:
                await self._link.tell_roots_changed()
            except Exception as e:  # noqa: BLE001  (then the next call will say what is wrong)
                log.info("MCP server %s could not be told its roots: %s", self.server.name, type(e).__name__)

    async def close(self) -> None:
        """End it; the process is gone then, with all it started."""
        connecting, self.state, self.reason = self.state == "connecting", "closed", None
        self._settled.set()
        self._over.set()
        owner = self._owner
        if owner is None or owner.done():
            return
        if connecting:
            owner.cancel()
        await self._finish(owner)

    async def _get_link(self, *, revive: bool) -> Link:
        if self.state == "ready" and self._over.is_set():
            await self._lose()  # it is dead, and that is just being noticed
        if self.state == "failed" and revive:
            wait = self._not_before - self._loop.time()
            if wait > 0:
                again = f"{self.reason}\nIt is not started again for {wait:.1f} s"
                raise ServerUnavailable(self.server.name, again)
            self.start()
        await self._settled.wait()
        if self._link is None:
            raise ServerUnavailable(self.server.name, self.reason or "it was closed")
        return self._link

    async def _lose(self) -> None:
        """Let the owner clean up after a connection that turned out to be over."""
        self._over.set()
        if self._owner is not None:
            await self._finish(self._owner)

    async def _finish(self, owner: asyncio.Task[None]) -> None:
        """Wait for the owner to clean up; one that says goodbye to a server which does not listen is hurried."""
        _, left = await asyncio.wait({owner}, timeout=2 * self._limits.stop + GOODBYE_SECONDS)
        if left:
            owner.cancel()
            await asyncio.wait({owner})

    # What the owner does

    async def _own(self) -> None:
        failure = "it was closed"
        try:
            # Beside the loop, which others need. Once it is loaded this is a look into a dict.
            self._wire = self._wire or await asyncio.to_thread(import_module, "holdfast.mcp.wire")
            await self._stay(self._wire)
            failure = self._ended_because or self._lost_because or "the connection ended"
        except (Exception, BaseExceptionGroup) as e:  # noqa: BLE001  (whatever it is, it is one server's)
            failure = self._explain(e)
        finally:
            self._link = None
            if self.state != "closed":
                self._fail(failure)
            self._settled.set()

    async def _stay(self, wire: Any) -> None:
        try:
            await self._connect(wire, newest=self._newest)
        except (Exception, BaseExceptionGroup) as e:
            if self.state != "connecting" or self._newest or not wire.wants_newest(_first(e)):
                raise
            self._newest = True
            await self._connect(wire, newest=True)

    async def _connect(self, wire: Any, *, newest: bool) -> None:
        """Connect, and stay until the end."""
        opening = wire.open_link(self.server, self._around, self._limits, self, newest=newest)
        async with asyncio.timeout(self._limits.start) as clock, opening as link:
            clock.reschedule(None)
            if self.state == "closed":
                return
            self._link, self.state = link, "ready"
            self.was_ready = True
            self._ready_at = self._loop.time()
            self._settled.set()
            if self._ended_because is None:  # it may have answered and gone in the same moment
                await self._over.wait()

    def process_ended(self, reason: str) -> None:
        """Note why the server's process is of no use any more."""
        self._ended_because = self._ended_because or reason
        if self.state == "ready":
            self._over.set()

    def last_words(self, stderr: str) -> None:
        """Note what the server's process wrote to stderr last."""
        self._last_words = stderr

    def _fail(self, failure: str) -> None:
        now = self._loop.time()
        if self.state == "ready" and now - self._ready_at > self._limits.again_most:
            self._failures = 0  # it did its work for a while
        self._failures += 1
        pause = self._limits.again * 2 ** (self._failures - 2) if self._failures > 1 else 0.0
        self._not_before = now + min(pause, self._limits.again_most)
        self.state, self.reason = "failed", self._clean(failure)
        log.warning("MCP server %s failed: %s", self.server.name, self.reason)
        self._on_failure(self.status)

    def _explain(self, error: BaseException) -> str:
        cause = _first(error)
        if self._wire is not None and (fault := self._wire.fault_in(cause)) is not None:
            return fault
        if self._ended_because is not None:
            return self._ended_because
        if isinstance(cause, UsageError):
            return str(cause)
        late = isinstance(cause, TimeoutError)
        what = f"it was not ready within {self._limits.start:g} s" if late else f"{type(cause).__name__}: {cause}"
        return f"{what}; its last words on stderr:\n{self._last_words}" if self._last_words else what

    def _clean(self, text: str) -> str:
        """Leave out what nobody may see (P10), and what nobody would read."""
        clean = redacted(text, self.server.secrets)
        return clean if len(clean) <= REASON_CHARACTERS else f"… {clean[-REASON_CHARACTERS:]}"


def _first(error: BaseException) -> BaseException:
    """Find what went wrong first, inside of what the SDK's task groups make of it."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error
