"""A wrapped agent, served in this process: `core/tests/programs/wrapped_agent.py` with habits, behind our proxy."""

from __future__ import annotations

import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.tests.support.acp import Serving
from holdfast.model import History
from holdfast.server import Host
from holdfast.surface.v1.lift import Lifting as Lifting1
from holdfast.surface.v2.lift import Lifting as Lifting2
from holdfast_app.wrap import Launch, ProxyPort

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

    from holdfast.engine import EngineLimits
    from holdfast.store import SessionStore

PROGRAM = str(Path(__file__).parent.parent.parent.parent / "core" / "tests" / "programs" / "wrapped_agent.py")


def agent_command(*habits: str) -> tuple[str, ...]:
    """Return the command of the agent with these habits."""
    return (sys.executable, PROGRAM, *habits)


class Wrapped(Serving):
    """A host of a wrapped agent, and the clients that are connected to it."""

    def __init__(self, host: Host, port: ProxyPort, home: Path) -> None:
        super().__init__(host)
        self.port = port
        self.home = home

    @property
    def starts(self) -> int:
        """How often the agent was started."""
        path = self.home / "starts"
        return len(path.read_text().splitlines()) if path.exists() else 0

    @property
    def agent_pid(self) -> int:
        """The process id of the agent that was started last."""
        return int((self.home / "pid").read_text())


@asynccontextmanager
async def wrapping(
    tmp_path: Path,
    *habits: str,
    store: str | Path | None = None,
    limits: EngineLimits | None = None,
    on_open: Callable[[SessionStore], Awaitable[None]] | None = None,
    **launch: Any,
) -> AsyncGenerator[Wrapped]:
    """Wrap the agent with these habits; its home and the store are in `tmp_path`, and stay there."""
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    env = {**os.environ, "AGENT_HOME": str(home)}
    command = launch.pop("command", agent_command(*habits))
    launch.setdefault("exit_seconds", 0.3)
    async with ProxyPort(Launch(command, env=env, **launch)) as port:
        host = Host(port, store=str(store or tmp_path / "sessions.db"), limits=limits, on_open=on_open)
        wrapped = Wrapped(host, port, home)
        try:
            yield wrapped
        finally:
            await wrapped.close()


def conversation(version: int, updates: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what a client holds that has heard these updates: its entries, with their ids."""
    import msgspec

    lifting = Lifting1() if version == 1 else Lifting2()
    history = History()
    for update in updates:
        for event in lifting.lift(msgspec.json.encode(update)):
            history.apply(event)
    return [update for entry in history for update in entry.updates()]
