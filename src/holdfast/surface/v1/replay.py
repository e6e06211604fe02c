"""A stored history as version 1 sends it: one chunk per content block, one `tool_call` in its final state.

Most of what is stored is plain (`holdfast.model.layout` says what that means) and is cut by its bytes; only the rest is
decoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from holdfast.surface.v1.lower import lower_stored

if TYPE_CHECKING:
    from collections.abc import Iterator

_CALL = b'{"sessionUpdate":"tool_call_update","toolCallId":'
_CALL_MEMBERS = len(b'{"sessionUpdate":"tool_call_update"')
_CONTENT = b'"content":['
_MESSAGES = tuple(
    (b'{"sessionUpdate":"%s","messageId":"' % kind, b'{"sessionUpdate":"%s_chunk","messageId":"' % kind)
    for kind in (b"agent_message", b"user_message", b"agent_thought")
)


class Replay:
    """Turns the stored lines of one session into lines for the wire."""

    __slots__ = ("_after", "_before")

    def __init__(self, session_id: str) -> None:
        id_ = msgspec.json.encode(session_id)
        self._before = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%s,"update":' % id_
        self._after = b"}}\n"

    def lines(self, block: bytes) -> bytes:
        """Write a block of stored lines for the wire."""
        updates = [update for line in block.split(b"\n") for update in _lowered(line)]
        if not updates:
            return b""
        return b"%s%s%s" % (self._before, (self._after + self._before).join(updates), self._after)


def _lowered(line: bytes) -> Iterator[bytes]:
    if line.startswith(_CALL):
        yield b'{"sessionUpdate":"tool_call"' + line[_CALL_MEMBERS:]
        return
    for prefix, chunk in _MESSAGES:
        if line.startswith(prefix):
            key, _, content = line[len(prefix) :].partition(_CONTENT)
            yield b'%s%s"content":%s}' % (chunk, key, content[:-2])
            return
    for update in lower_stored(msgspec.json.decode(line)):
        yield msgspec.json.encode(update)
