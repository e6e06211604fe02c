"""What a run of the check is told: which agent, how it is made to talk, and how long to wait."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast_app.check.schemas import Schemas


@dataclass(frozen=True, slots=True)
class Prompts:
    """What is said to an agent to make it do something. `familiar.suited` fills in the empty ones."""

    talk: str = ""
    """It answers with some words."""
    tool: str = ""
    """It uses a tool that needs no permission, or one that it asks for."""
    ask: str = ""
    """It asks for permission."""
    long: str = ""
    """It talks for a long time, in pieces."""
    think: str = ""
    """It shows thoughts, if it ever does."""


@dataclass(frozen=True, slots=True)
class CheckSettings:
    """How to check."""

    profiles: tuple[str, ...] = ("spec", "sessions", "durability", "hostile")
    only: tuple[str, ...] = ()
    """Check these requirements, by their ids, instead of profiles."""
    versions: tuple[int, ...] = (1, 2)
    """The versions to check, of those the agent speaks."""
    prompts: Prompts = field(default_factory=Prompts)
    options: tuple[tuple[str, str], ...] = ()
    """Ids and values of options that are set in every new session."""
    options_if_offered: tuple[tuple[str, str], ...] = ()
    """The same, only where the session offers the value."""
    cwd: str | None = None
    """The directory of all sessions; a fresh one for each check if this is None."""
    deadline: float = 60.0
    """An agent has so many seconds for an answer, a turn or its exit."""
    exit_deadline: float = 10.0
    """…and so many to exit once its input has ended."""
    quiet: float = 0.5
    """What did not come within so many seconds does not come."""
    jobs: int = 1
    """So many agents run at once."""
    schemas: Schemas | None = None
    """The official schemas; without them no frame is checked against them."""
    name: str = ""
    """What to call the agent in reports; what it calls itself if this is empty."""
