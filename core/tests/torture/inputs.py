"""Making lines: valid frames, the same ones damaged, batches of both, random bytes, and lines that are too long."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from core.tests.support.oracle import INVALID_REQUEST, Verdict, answer

if TYPE_CHECKING:
    from collections.abc import Callable

LINE_LIMIT = 8_192
GROUP_LINES = 128

_FRAMES = [
    b'{"jsonrpc":"2.0","id":%b,"method":"echo","params":{"a":[1,-2.5e3,"x"],"b":{"c":null}}}',
    b'{"jsonrpc":"2.0","id":%b,"method":"echo"}',
    b'{"jsonrpc":"2.0","id":%b,"method":"later","params":[true,false,null]}',
    b'{"id":%b,"method":"echo","params":{"\\u00e9":"\\ud83d\\ude00 \xc3\xa9"},"jsonrpc":"2.0"}',
    b'{ "jsonrpc" : "2.0", "id" : %b , "method" : "refuse", "params" : { } }\r',
    b'{"jsonrpc":"2.0","id":%b,"method":"fail","params":null}',
    b'{"jsonrpc":"2.0","id":%b,"method":"nobody","params":{"_meta":{"k":"v"}}}',
    b'{"jsonrpc":"2.0","id":%b,"method":"_custom/thing"}',
    b'{"jsonrpc":"2.0","method":"told","params":{"id":%b}}',
    b'{"jsonrpc":"2.0","method":"failing","params":[%b]}',
    b'{"jsonrpc":"2.0","method":"urgent","params":[%b]}',
    b'{"jsonrpc":"2.0","method":"unknown/thing","params":[%b]}',
    b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":%b}}',
    b'{"jsonrpc":"2.0","id":%b,"result":{"a":1}}',
    b'{"jsonrpc":"2.0","id":%b,"error":{"code":-32601,"message":"no","data":[1e5]}}',
    b'{"jsonrpc":"2.0","id":%b,"result":null,"error":null}',
    b'{"id":%b}',
    b"%b",
]
_IDS = [
    b"0",
    b"1",
    b"2",
    b"-7",
    b"9007199254740993",
    b"9223372036854775807",
    b"18446744073709551616",
    b'""',
    b'"1"',
    b'"a\\"b\\\\"',
    b'"\xf0\x9f\x98\x80"',
    b'"\\u0000"',
    b"null",
    b"true",
    b"1.0",
    b"1.5",
    b"1e2",
    b"[]",
    b"{}",
]
_PIECES = [
    b"\\ud800",
    b"\\udc00",
    b"\\u",
    b"\\",
    b'"',
    b"'",
    b"[",
    b"]",
    b"{",
    b"}",
    b"[[[[",
    b"]]]]",
    b",",
    b":",
    b",,",
    b"NaN",
    b"-Infinity",
    b"1e999",
    b"-",
    b"0",
    b"00",
    b"1.",
    b"null",
    b"nul",
    b"true",
    b"\x00",
    b"\t",
    b"\r",
    b"\n",
    b"\r\n",
    b" ",
    b"\x0b",
    b"\x7f",
    b"\xff",
    b"\xc3",
    b"\xe2\x80\xa8",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b'"id":5,',
    b'"id":1.5,',
    b'"method":"echo",',
    b'"method":3,',
    b'"jsonrpc":"1.0",',
    b'"result":1,',
    b'"error":{"code":1,"message":""},',
    b'"error":1,',
    b'"params":3,',
    b"/**/",
    b"//",
    b"1" * 50,
    b"[" * 130,
    b"[" * 70 + b"]" * 70,
    b'{"a":' * 40,
]


class Group:
    """Some lines, the pieces they arrive in, and what they are owed where the oracle cannot say."""

    def __init__(self, number: int, asked: list[bytes]) -> None:
        self._random = Random(number)
        self._ids = _IDS + 3 * asked
        self.known: dict[bytes, Verdict] = {}
        stream = b"".join([self._line() + b"\n" for _ in range(GROUP_LINES)])
        self.lines = stream.split(b"\n")[:-1]
        self.chunks = self._cut(stream)

    def _below(self, end: int) -> int:
        return int(self._random.random() * end)

    def _line(self) -> bytes:
        kind = self._random.random()
        if kind < 0.25:
            line = self._frame()
        elif kind < 0.80:
            line = self._damaged()
        elif kind < 0.90:
            line = self._batch()
        elif kind < 0.96:
            line = self._random.randbytes(self._below(60))
        elif kind < 0.99:
            line = self._nested()
        else:
            return self._oversized()
        return line if len(line) <= LINE_LIMIT else line[:LINE_LIMIT]

    def _frame(self) -> bytes:
        below = self._below
        return _FRAMES[below(len(_FRAMES))] % self._ids[below(len(self._ids))]

    def _damaged(self) -> bytes:
        line = self._frame()
        for _ in range(1 if self._random.random() < 0.8 else 3):
            line = _DAMAGES[self._below(len(_DAMAGES))](self, line)
        return line

    def _overwrite(self, line: bytes) -> bytes:
        at = self._below(len(line) + 1)
        return line[:at] + bytes((self._below(256),)) + line[at + 1 :]

    def _insert(self, line: bytes) -> bytes:
        at = self._below(len(line) + 1)
        return line[:at] + _PIECES[self._below(len(_PIECES))] + line[at:]

    def _replace(self, line: bytes) -> bytes:
        at = self._below(len(line) + 1)
        return line[:at] + _PIECES[self._below(len(_PIECES))] + line[at + self._below(8) :]

    def _delete(self, line: bytes) -> bytes:
        at = self._below(len(line) + 1)
        return line[:at] + line[at + 1 + self._below(12) :]

    def _truncate(self, line: bytes) -> bytes:
        return line[: self._below(len(line) + 1)]

    def _repeat(self, line: bytes) -> bytes:
        at = self._below(len(line) + 1)
        return line[: at + self._below(30)] + line[at:]

    def _splice(self, line: bytes) -> bytes:
        other = self._frame()
        return line[: self._below(len(line) + 1)] + other[self._below(len(other) + 1) :]

    def _replace_a_value(self, line: bytes) -> bytes:
        name, colon, rest = line.partition(b":")
        for _ in range(self._below(4)):
            before, colon, after = rest.partition(b":")
            if not colon:
                break
            name, rest = name + b":" + before, after
        end = rest.find(b",")
        return name + colon + self._ids[self._below(len(self._ids))] + (rest[end:] if end >= 0 else b"}")

    def _batch(self) -> bytes:
        entries = [self._frame() if self._random.random() < 0.8 else self._damaged() for _ in range(self._below(6))]
        return b"[" + b",".join(entries) + b"]"

    def _nested(self) -> bytes:
        depth = 120 + self._below(16)
        inside = _PIECES[self._below(len(_PIECES))] if self._random.random() < 0.3 else b"[]"
        value = b"[" * depth + inside + b"]" * depth
        return b'{"jsonrpc":"2.0","id":1,"method":"echo","params":%b}' % value

    def _oversized(self) -> bytes:
        """Write a line over the limit whose id can be told from one end or the other; the oracle cannot read it."""
        id_ = self._below(1_000)
        filler = b"x" * (LINE_LIMIT + self._below(LINE_LIMIT))
        shape, owed = _LONG[self._below(len(_LONG))]
        line = shape.replace(b"%id", b"%d" % id_) % filler
        told = id_ if owed == "its id" else None
        self.known[line] = Verdict(answer(told, INVALID_REQUEST) if owed else None)
        return line

    def _cut(self, stream: bytes) -> list[bytes]:
        cuts = sorted(self._below(len(stream)) for _ in range(self._below(12)))
        return [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]


_LONG: list[tuple[bytes, str | None]] = [
    (b'{"jsonrpc":"2.0","id":%id,"method":"echo","params":["%b"]}', "its id"),
    (b'{"params":["%b"],"method":"echo","id":%id,"jsonrpc":"2.0"}', "its id"),
    (b'{"jsonrpc":"2.0","method":"told","params":{"id":%id,"x":"%b"}}', "no id"),
    (b'{"jsonrpc":"2.0","id":1%id1,"result":"%b"}', None),
    (b'{"error":{"code":1,"message":"%b"},"id":1%id1}', None),
    (b'[{"jsonrpc":"2.0","id":%id,"method":"echo","params":["%b"]}]', "no id"),
    (b"%id%b", "no id"),
]

_DAMAGES: list[Callable[[Group, bytes], bytes]] = [
    Group._overwrite,  # pyright: ignore[reportPrivateUsage]
    Group._insert,  # pyright: ignore[reportPrivateUsage]
    Group._replace,  # pyright: ignore[reportPrivateUsage]
    Group._delete,  # pyright: ignore[reportPrivateUsage]
    Group._truncate,  # pyright: ignore[reportPrivateUsage]
    Group._repeat,  # pyright: ignore[reportPrivateUsage]
    Group._splice,  # pyright: ignore[reportPrivateUsage]
    Group._replace_a_value,  # pyright: ignore[reportPrivateUsage]
]
