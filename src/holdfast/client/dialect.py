"""What a client needs of a protocol version; `holdfast.surface.v1` and `v2` have it, each in its words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.model import Elicitation, ElicitationAnswer, Event, Permission, PermissionOption, Update


class Lifting(Protocol):
    """Makes events of what an agent says of one session."""

    answer_ends: bool

    def lift(self, raw: bytes) -> Sequence[Event]: ...
    def said(self, blocks: Sequence[Update]) -> Sequence[Event]: ...
    def answered(self, answer: Update) -> Sequence[Event]: ...
    def failed(self, stop_reason: str, error: Update) -> Sequence[Event]: ...
    def asked(self, call: Update) -> Sequence[Event]: ...
    def configured(self, answer: Update) -> Sequence[Event]: ...
    def setting(self, option_id: str, value: str | bool) -> tuple[str, Update]: ...  # noqa: FBT001
    def was_set(self, option_id: str, value: str | bool, answer: Update) -> Sequence[Event]: ...  # noqa: FBT001


class Agent(Protocol):
    """Knows what an agent has said of itself, and how it is asked."""

    version: int
    name: str
    title: str | None
    release: str
    capabilities: dict[str, Any]
    auth_methods: tuple[dict[str, Any], ...]

    def can(self, what: str) -> bool: ...
    def login(self, method_id: str) -> tuple[str, Update]: ...
    def new(self, roots: Update) -> tuple[str, Update]: ...
    def load(self, session_id: str, roots: Update) -> tuple[str, Update]: ...
    def resume(self, session_id: str, roots: Update) -> tuple[str, Update]: ...
    def fork(self, session_id: str, roots: Update) -> tuple[str, Update]: ...


class Asks(NamedTuple):
    """Reads what an agent asks, and writes the answers."""

    read_permission: Callable[[Update], Permission]
    permission_answer: Callable[[PermissionOption | None], Update]
    read_elicitation: Callable[[Update], Elicitation]
    elicitation_answer: Callable[[ElicitationAnswer], Update]


class Dialect(NamedTuple):
    """One protocol version, as one agent speaks it."""

    agent: Agent
    lifting: Callable[[], Lifting]
    asks: Asks


def dialect(version: int, answer: Update) -> Dialect:
    """Get the words of a version, for the agent that answered `initialize` so."""
    # Only the version that is spoken is loaded.
    if version == 1:
        from holdfast.surface.v1 import asks, lift  # noqa: PLC0415
        from holdfast.surface.v1.agent import Agent as Agent1  # noqa: PLC0415

        return Dialect(Agent1(answer), lift.Lifting, _asks(asks))
    from holdfast.surface.v2 import asks, lift  # noqa: PLC0415
    from holdfast.surface.v2.agent import Agent as Agent2  # noqa: PLC0415

    return Dialect(Agent2(answer), lift.Lifting, _asks(asks))


def _asks(module: Any) -> Asks:
    return Asks(module.read_permission, module.permission_answer, module.read_elicitation, module.elicitation_answer)
