"""How a wrapped agent is started, and what is to be done where it has forgotten a conversation."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from holdfast_app.wrap.in_process import InProcessTransport

LostContext: TypeAlias = Literal["seed", "refuse", "new"]
"""What to do where an agent has forgotten a conversation: tell it again, refuse to go on, or begin anew (G6)."""

START_SECONDS = 120.0
"""An agent has so many seconds to answer `initialize`; some install themselves first."""

EXIT_SECONDS = 2.0
"""An agent has so many seconds to exit once its input has ended, and as many again once it is asked to terminate."""

MAX_LINE_BYTES = 64 << 20
"""The longest message taken from an agent."""


class Prepared(Protocol):
    """A command that is ready to be started; see `holdfast_app.sandbox`."""

    @property
    def command(self) -> tuple[str, ...]: ...
    @property
    def env(self) -> Mapping[str, str]: ...
    @property
    def cwd(self) -> str | None: ...


class HostedSession(Protocol):
    """Files and commands of one session; to an agent it is as a client that has them."""

    services: frozenset[str]
    """What it has: ``read``, ``write``, ``terminal``."""
    session_id: str

    def work_in(self, roots: Sequence[str]) -> None:
        """Use these directories from now on."""
        ...

    async def request(self, method: str, params: Mapping[str, Any]) -> Any:
        """Answer a request of the agent."""
        ...

    def embed_terminal(self, terminal_id: str, own_id: str) -> None:
        """Show a terminal of its own where a tool call shows `terminal_id`."""
        ...

    async def close(self) -> None:
        """End its commands."""
        ...


class Hosting(Protocol):
    """What a server gives to the agents of its principals (H11)."""

    @property
    def has_homes(self) -> bool:
        """Whether what an agent has in its home is of one principal alone."""
        ...

    def serves(self, principal: str) -> frozenset[str]:
        """Return what an agent may ask the server for, instead of its client; empty where nothing."""
        ...

    def prepare(self, principal: str, command: Sequence[str]) -> Prepared | None:
        """Return how an agent is started for a principal; None for as it is."""
        ...

    def open(self, principal: str, session_id: str) -> HostedSession:
        """Return the files and commands of a session."""
        ...


class Launch(NamedTuple):
    """A command that starts an agent."""

    command: tuple[str, ...]
    """Empty in a chain: a conductor has started the agent behind us (G10)."""
    name: str | None = None
    """The name its sessions belong to; without one, what the agent calls itself."""
    env: Mapping[str, str] | None = None
    """The whole environment of its process; ours if omitted."""
    lost_context: LostContext = "seed"
    start_seconds: float = START_SECONDS
    exit_seconds: float = EXIT_SECONDS
    on_frame: Callable[[Literal["in", "out"], bytes], None] | None = None
    """Is called with every line that is sent to the agent ("out") and received from it ("in")."""
    on_stderr: Callable[[bytes], None] | None = None
    """Is called with what the agent writes to stderr."""
    open: Callable[[int], Awaitable[InProcessTransport]] | None = None
    """Connects to an agent of this process, in the place of a command; it is given how long a line may be."""
    hosting: Hosting | None = None
    """Starts its processes for principals, and serves files and commands to them, where a server does."""

    store_mark: str | None = None
    """Stands for the store that its sessions are kept in: a Holdfast behind `--` must have another one."""

    @property
    def base_name(self) -> str:
        """The name of the program."""
        if not self.command:
            return "agent"
        return os.path.splitext(os.path.basename(self.command[0]))[0]  # noqa: PTH119, PTH122
