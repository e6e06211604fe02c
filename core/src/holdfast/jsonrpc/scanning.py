"""What can be told of a line without parsing it: how deep it nests, its lone surrogates, the ends of a long one.

Bytes in, bytes and numbers out. Everything takes time linear in the line, whatever the line holds (P7).
"""

from __future__ import annotations

import re
from itertools import accumulate

import msgspec


def nests_deeper_than(depth: int, line: bytes) -> bool:
    """Return whether the containers of a line nest deeper than `depth`; most of the work is done in C."""
    bare = line.replace(rb"\\", b"").replace(rb"\"", b"").translate(_BRACKETS, _NEITHER_QUOTES_NOR_BRACKETS)
    brackets = b"".join(bare.replace(b'""', b"").split(b'"')[::2])  # every second piece is outside strings
    for _ in range(_PEELED):  # what is ordinary is gone after peeling off empty brackets a few times
        brackets = brackets.replace(b"[]", b"")
    level = 0
    for at in range(0, len(brackets), _BLOCK):
        levels = list(accumulate(map(_STEPS.__getitem__, brackets[at : at + _BLOCK]), initial=level))
        if max(levels) > depth - _PEELED:
            return True
        level = levels[-1]
    return False


_PEELED = 8
_BLOCK = 4_096
_BRACKETS = bytes.maketrans(b"{}", b"[]")
_NEITHER_QUOTES_NOR_BRACKETS = bytes(c for c in range(256) if c not in b'"{}[]')
_STEPS = {ord("["): 1, ord("]"): -1}


def replace_lone_surrogates(line: bytes) -> bytes:
    r"""Return the line with the escape of U+FFFD for every surrogate escape that has no partner (A2).

    JavaScript writes `"\ud83d"` where a string was cut inside an emoji. Pairs stay as they are.
    """
    if b"\0" in line or (rb"\ud" not in line and rb"\uD" not in line):  # no JSON holds a zero byte
        return line
    # With `\\` out of the way every backslash begins an escape.
    marked = line.replace(rb"\\", b"\0\0")
    return re.sub(_LONE_SURROGATE, rb"\\ufffd", marked, flags=re.VERBOSE).replace(b"\0\0", rb"\\")


# Patterns are compiled when they are first needed, which in most processes is never.

_HIGH = rb"\\u[dD][89abAB][0-9a-fA-F]{2}"
_LOW = rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_LONE_HIGH = rb"[89abAB][0-9a-fA-F]{2} (?!%b)" % _LOW
_LONE_LOW = rb"[c-fC-F][0-9a-fA-F]{2} (?<!%b%b)" % (_HIGH, _LOW)
# Both kinds begin alike, so that the search for the next one is a search for two bytes.
_LONE_SURROGATE = rb"\\u[dD] (?: %b | %b )" % (_LONE_HIGH, _LONE_LOW)


class Ends(msgspec.Struct, frozen=True):
    """What the two ends of a message say about it."""

    id: bytes | None
    """The id, as it is written, where either end has it."""
    is_response: bool


def read_ends(head: bytes, tail: bytes) -> Ends:
    """Read the id and the kind of a message from its first and its last bytes."""
    if (before := re.match(_HEAD, head, re.VERBOSE | re.DOTALL)) is None:
        return Ends(None, is_response=False)
    after = re.search(_TAIL, tail, re.VERBOSE | re.DOTALL)
    id_ = before["id"] or (after and after["id"])
    method = before["method"] or (after and after["method"])
    return Ends(id_, method is None and before["next"] in (b"result", b"error"))


# Members that serializers write before or after the long one, in whatever order.
_SHORT = rb"""\s*"(?: jsonrpc"\s*:\s*"2\.0"
                  | id"\s*:\s*(?P<id> -?\d{1,40} | "(?:[^"\\]|\\.){0,512}")
                  | method"\s*:\s*(?P<method>"(?:[^"\\]|\\.){0,512}") )\s*"""
_HEAD = rb"\s*\{ (?: %b , ){0,3} \s*\"(?P<next>\w+)\"\s*:" % _SHORT
_TAIL = rb"(?: , %b ){1,3} \}\s*\Z" % _SHORT
