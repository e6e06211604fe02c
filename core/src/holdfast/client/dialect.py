"""What a client needs of a protocol version; `holdfast.surface.v1` and `v2` have it, each in its own terms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.model import Elicitation, ElicitationAnswer, Event, Permission, PermissionOption, Update


class Lifting(Protocol):
    """Lifts what an agent sends about one session into events."""

    answer_ends: bool

    def lift(self, raw: bytes) -> Sequence[Event]: ...
    def lift_prompt(self, blocks: Sequence[Update]) -> Sequence[Event]: ...
    def lift_end(self, answer: Update) -> Sequence[Event]: ...
    def lift_failure(self, stop_reason: str, error: Update) -> Sequence[Event]: ...
    def lift_permission(self, call: Update) -> Sequence[Event]: ...
    def lift_configuration(self, answer: Update) -> Sequence[Event]: ...
    def option_request(self, option_id: str, value: str | bool) -> tuple[str, Update]: ...  # noqa: FBT001
    def lift_option_answer(self, option_id: str, value: str | bool, answer: Update) -> Sequence[Event]: ...  # noqa: FBT001


class RemoteAgent(Protocol):
    """An agent by its answer to `initialize`: its name, what it can do, and which request asks it for what."""

    version: int
    name: str
    title: str | None
    release: str
    capabilities: dict[str, Any]
    auth_methods: tuple[dict[str, Any], ...]
    mcp_kinds: frozenset[str]

    def can(self, what: str) -> bool: ...
    def login(self, method_id: str) -> tuple[str, Update]: ...
    def logout(self) -> tuple[str, Update]: ...
    def new(self, roots: Update) -> tuple[str, Update]: ...
    def load(self, session_id: str, roots: Update) -> tuple[str, Update]: ...
    def resume(self, session_id: str, roots: Update) -> tuple[str, Update]: ...
    def fork(self, session_id: str, roots: Update) -> tuple[str, Update]: ...


class AskCodec(NamedTuple):
    """Reads the asks of an agent (permission, elicitation) and writes the answers to them."""

    read_permission: Callable[[Update], Permission]
    permission_answer: Callable[[PermissionOption | None], Update]
    read_elicitation: Callable[[Update], Elicitation]
    elicitation_answer: Callable[[ElicitationAnswer], Update]


class Dialect(NamedTuple):
    """One protocol version, as one agent speaks it."""

    agent: RemoteAgent
    lifting: Callable[[], Lifting]
    asks: AskCodec


def dialect_for(version: int, answer: Update) -> Dialect:
    """Return the dialect of a protocol version for the agent that answered `initialize` with `answer`."""
    # Only the version that is spoken is loaded.
    if version == 1:
        from holdfast.surface.v1 import asks, lift  # noqa: PLC0415
        from holdfast.surface.v1.agent import RemoteAgent as RemoteAgentV1  # noqa: PLC0415

        return Dialect(RemoteAgentV1(answer), lift.Lifting, _ask_codec(asks))
    from holdfast.surface.v2 import asks, lift  # noqa: PLC0415
    from holdfast.surface.v2.agent import RemoteAgent as RemoteAgentV2  # noqa: PLC0415

    return Dialect(RemoteAgentV2(answer), lift.Lifting, _ask_codec(asks))


def _ask_codec(module: Any) -> AskCodec:
    return AskCodec(
        module.read_permission, module.permission_answer, module.read_elicitation, module.elicitation_answer
    )
