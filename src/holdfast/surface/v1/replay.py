"""Stored lines as version 1 sends them, without decoding: most are plain, as `holdfast.model.layout` calls it."""

from __future__ import annotations

_CALL = b'{"sessionUpdate":"tool_call_update","toolCallId":'
_CALL_MEMBERS = len(b'{"sessionUpdate":"tool_call_update"')
_CONTENT = b'"content":['
_MESSAGES = tuple(
    (b'{"sessionUpdate":"%s","messageId":"' % kind, b'{"sessionUpdate":"%s_chunk","messageId":"' % kind)
    for kind in (b"agent_message", b"user_message", b"agent_thought")
)


def cut(line: bytes) -> bytes | None:
    """Say a plain line in version 1: a message is one chunk, a tool call a `tool_call`. None where it is not plain."""
    if line.startswith(_CALL):
        return b'{"sessionUpdate":"tool_call"' + line[_CALL_MEMBERS:]
    for prefix, chunk in _MESSAGES:
        if line.startswith(prefix):
            key, _, content = line[len(prefix) :].partition(_CONTENT)
            return b'%s%s"content":%s}' % (chunk, key, content[:-2])
    return None
