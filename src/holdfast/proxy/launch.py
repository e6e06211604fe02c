"""How a wrapped agent is started, and what is to be done where it has forgotten a conversation."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from holdfast.proxy.in_process import InProcessTransport

LostContext: TypeAlias = Literal["seed", "refuse", "new"]
"""What to do where an agent has forgotten a conversation: tell it again, refuse to go on, or begin anew (G6)."""

START_SECONDS = 120.0
"""An agent has so many seconds to answer `initialize`; some install themselves first."""

EXIT_SECONDS = 2.0
"""An agent has so many seconds to exit once its input has ended, and as many again once it is asked to terminate."""

MAX_LINE_BYTES = 64 << 20
"""The longest message taken from an agent."""

SEED_CHARACTERS = 100_000
"""So much of a conversation is told again to an agent that has forgotten it, the newest of it."""


class Launch(NamedTuple):
    """A command that starts an agent."""

    command: tuple[str, ...]
    """Empty in a chain: a conductor has started the agent behind us (G10)."""
    name: str | None = None
    """The name its sessions belong to; without one, what the agent calls itself."""
    env: Mapping[str, str] | None = None
    """The whole environment of its process; ours if omitted."""
    lost_context: LostContext = "seed"
    seed_characters: int = SEED_CHARACTERS
    start_seconds: float = START_SECONDS
    exit_seconds: float = EXIT_SECONDS
    on_frame: Callable[[Literal["in", "out"], bytes], None] | None = None
    """Is called with every line that is sent to the agent ("out") and received from it ("in")."""
    on_stderr: Callable[[bytes], None] | None = None
    """Is called with what the agent writes to stderr."""
    open: Callable[[int], Awaitable[InProcessTransport]] | None = None
    """Connects to an agent of this process, in the place of a command; it is given how long a line may be."""

    @property
    def base_name(self) -> str:
        """The name of the program."""
        if not self.command:
            return "agent"
        return os.path.splitext(os.path.basename(self.command[0]))[0]  # noqa: PTH119, PTH122
