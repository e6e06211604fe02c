"""What is required of an agent: the rows of `requirements.toml`, as values."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec


class Tier(StrEnum):
    """How much a requirement weighs."""

    MANDATORY = "mandatory"
    """The protocol demands it of every agent."""
    ADVERTISED = "if advertised"
    """The protocol demands it of agents that say they can, or that do it."""
    PROMISE = "promise"
    """The protocol leaves it open; users lose something where it is missing. Holdfast promises it."""
    ADVISED = "advised"
    """Good manners. A failure is shown and does not count."""


class Requirement(msgspec.Struct, frozen=True):
    """One rule."""

    profile: str
    tier: Tier
    text: str
    source: str
    """Where the rule comes from."""
    needs: tuple[str, ...] = ("version-asked", "version-body")
    """Requirements without which this one cannot be tested."""
    versions: tuple[int, ...] = (1, 2)
    id: str = ""


PROFILES: Final = {
    "spec": "the protocol itself: connecting, prompting, cancelling",
    "sessions": "creating, finding, restoring, forking and ending sessions",
    "durability": "what is left after the agent was killed in the middle of a turn",
    "hostile": "bytes that are no message, and messages that are no request",
    "mcp": "MCP servers that the client names",
    "client-services": "the client's files and terminals",
    "remote": "the endpoint of a remote agent: WebSocket and HTTP",
}
"""What can be checked, by name. `spec-v1` and `spec-v2` are `spec` in one version."""


def _read() -> dict[str, Requirement]:
    table = Path(__file__).with_suffix(".toml").read_bytes()
    rows = msgspec.toml.decode(table, type=dict[str, Requirement])
    return {name: msgspec.structs.replace(row, id=name) for name, row in rows.items()}


BY_ID: Final = _read()
REQUIREMENTS: Final = tuple(row for row in BY_ID.values() if row.profile != "client")
"""What is required of agents."""
CLIENT_REQUIREMENTS: Final = tuple(row for row in BY_ID.values() if row.profile == "client")
"""What is required of clients."""


def required(profiles: tuple[str, ...], only: tuple[str, ...], version: int) -> tuple[Requirement, ...]:
    """Return what is required of a version, with what that in turn needs, in the order of the table.

    Args:
        profiles: everything of these profiles.
        only: these requirements instead, if there are any.
        version: the version of the protocol.

    """
    chosen = {row.id for row in REQUIREMENTS if (row.id in only if only else row.profile in profiles)}
    wanted = {name for name in chosen if version in BY_ID[name].versions}
    while missing := {need for name in wanted for need in BY_ID[name].needs} - wanted:
        wanted |= missing  # what holds for the other version only is left out below
    return tuple(row for row in REQUIREMENTS if row.id in wanted and version in row.versions)
