"""Paths that have one name here and another one on the server: `--map LOCAL=REMOTE` (H10)."""

from __future__ import annotations

from typing import Any, Self, cast

import msgspec

from holdfast.errors import UsageError

PATHS = frozenset({"cwd", "path", "oldPath", "newPath", "root"})
LISTS = frozenset({"additionalDirectories", "roots"})
URIS = frozenset({"uri", "url"})

_PATCH_LINES = ("--- ", "+++ ", "diff --git ", "rename from ", "rename to ", "copy from ", "copy to ")


class PathMap:
    """Rewrites paths in messages, both ways."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        """`pairs` are directories here and there; of several that fit, the longest counts."""
        self._out = sorted(((_clean(here), _clean(there)) for here, there in pairs), key=_length, reverse=True)
        self._in = sorted(((there, here) for here, there in self._out), key=_length, reverse=True)

    @classmethod
    def parse(cls, given: list[str]) -> Self:
        """Parse ``LOCAL=REMOTE`` pairs; raise `UsageError` for what is none."""
        pairs: list[tuple[str, str]] = []
        for each in given:
            here, equals, there = each.partition("=")
            if not equals or not here.startswith("/") or not there.startswith("/"):
                raise UsageError(f"{each!r} maps nothing; write --map /home/ada/project=/srv/project")
            pairs.append((here, there))
        return cls(pairs)

    def outgoing(self, line: bytes) -> bytes:
        """Return a message of the editor's as the server has to see it."""
        return self._rewritten(line, self._out)

    def incoming(self, line: bytes) -> bytes:
        """Return a message of the server's as the editor has to see it."""
        return self._rewritten(line, self._in)

    def _rewritten(self, line: bytes, pairs: list[tuple[str, str]]) -> bytes:
        if not any(before.encode() in line for before, _ in pairs):
            return line
        try:
            return msgspec.json.encode(_walk(msgspec.json.decode(line), pairs, ""))
        except msgspec.DecodeError:
            return line


def _walk(value: Any, pairs: list[tuple[str, str]], key: str) -> Any:
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {name: _walk(member, pairs, name) for name, member in members.items()}
    if isinstance(value, list):
        return [_walk(item, pairs, "path" if key in LISTS else key) for item in cast("list[Any]", value)]
    if not isinstance(value, str):
        return value
    if key in PATHS:
        return _moved(value, pairs)
    if key in URIS and value.startswith("file://"):
        return "file://" + _moved(value.removeprefix("file://"), pairs)
    if key == "patch":
        return "\n".join(_moved_in_patch(line, pairs) for line in value.split("\n"))
    return value


def _moved(path: str, pairs: list[tuple[str, str]]) -> str:
    for before, after in pairs:
        if path == before or path.startswith(f"{before}/"):
            return after + path[len(before) :]
    return path


def _moved_in_patch(line: str, pairs: list[tuple[str, str]]) -> str:
    if not line.startswith(_PATCH_LINES):
        return line
    return " ".join(_moved(word, pairs) for word in line.split(" "))


def _clean(path: str) -> str:
    return path.rstrip("/") or "/"


def _length(pair: tuple[str, str]) -> int:
    return len(pair[0])
