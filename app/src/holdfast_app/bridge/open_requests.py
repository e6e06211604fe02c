"""What a bridge has open: the editor's sessions and requests, and the server's requests to the editor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.jsonrpc import Id
    from holdfast_app.bridge.messages import Message


class OpenSession:
    """A session that the editor has open."""

    def __init__(self, params: dict[str, Any], position: str | None) -> None:
        self.params: dict[str, Any] = params
        self.position: str | None = position
        self.lines: int = 0  # how many lines of that position the editor has
        self.known: int = 0  # how many of those that come now it has

    def take(self, position: str | None) -> bool:
        """Note an update; return whether the editor has it already."""
        if position is None:
            return False
        if position != self.position:
            self.position, self.lines, self.known = position, 0, 0
        if self.known:
            self.known -= 1
            return True
        self.lines += 1
        return False


class PendingRequest:
    """A request of the editor's that is not answered."""

    def __init__(self, line: bytes, method: str, params: dict[str, Any]) -> None:
        self.line: bytes = line
        self.method: str = method
        self.params: dict[str, Any] = params
        self.sent: bool = False


class OpenAsk:
    """A request of the server's that the editor was given."""

    def __init__(self, key: bytes, server_id: Id) -> None:
        self.key = key
        self.server_id: Id | None = server_id
        self.answer: Message | None = None
