"""`connect`: from a command, or an agent of this process, to a `Connection`."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from holdfast.agent import Agent
    from holdfast.client.connection import Connection
    from holdfast.client.session import ClientSession
    from holdfast.model import Elicitation, Filled, Permission


@asynccontextmanager
async def connect(
    *command: str | Path | Agent,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    protocol: Literal["auto", 1, 2] = "auto",
    permissions: Literal["deny", "allow"]
    | Callable[[ClientSession, Permission], Awaitable[str | bool | None]] = "deny",
    questions: Callable[[ClientSession | None, Elicitation], Awaitable[dict[str, Any] | Filled | None]] | None = None,
    files: bool | Sequence[str | Path] = False,
    terminals: bool = False,
    stderr: Callable[[bytes], object] | None = None,
    store: str | Path = ":memory:",
) -> AsyncGenerator[Connection]:
    """Start an agent and talk to it.

    `cwd` and `env` (added to ours) are those of its process; `stderr` is called with what it writes there, of which the
    last is kept for errors anyway. `store` is where an `Agent` of this process keeps its sessions.
    """
    raise NotImplementedError
    yield
