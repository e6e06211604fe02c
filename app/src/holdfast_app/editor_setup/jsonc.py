"""JSON with comments, as editors have it: read where things stand, and change one member without touching the rest.

Comments, trailing commas, order, indentation and line ends stay as they are.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from holdfast.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

_SPACE = re.compile(r"(?:[ \t\r\n\ufeff]|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"true|false|null|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_MAX_DEPTH = 200


class Node(NamedTuple):
    """A value, where it stands in the text, and what it means."""

    start: int
    end: int
    value: Any
    members: dict[str, Node] | None = None
    """Of an object: its members, in order; of two with one name the later counts."""
    ends: tuple[int, bool] = (0, False)
    """Of an object with members: where its last value ends, and whether a comma follows it."""
    first_key: int = 0
    """Of an object with members: where its first name begins."""


def read_jsonc(text: str) -> Node:
    """Return what a text means; a blank one is an empty object.

    Raises:
        UsageError: It is no JSON, even with comments; the message says where.

    """
    if not _SPACE.sub("", text):
        return Node(len(text), len(text), {}, {})
    reader = _Reader(text)
    node = reader.value(reader.skip(0), 0)
    if (rest := reader.skip(node.end)) != len(text):
        raise reader.error(rest, "something follows behind the end")
    return node


def with_member(text: str, path: Sequence[str], value: Any) -> str:
    """Return a text in which the member at a path has a value; objects on the way are made where they are missing.

    Raises:
        UsageError: The text is no JSON, or there is something else than an object on the way.

    """
    if not _SPACE.sub("", text):
        text = text.rstrip() + "\n" * bool(text.strip()) + "{}\n"
    node = _object(read_jsonc(text), path, 0)
    for depth, name in enumerate(path):
        assert node.members is not None
        found = node.members.get(name)
        last = depth == len(path) - 1
        if found is None:
            for missing in reversed(path[depth + 1 :]):
                value = {missing: value}
            return _inserted(text, node, name, value)
        if last:
            indent = _line_indent(text, found.start)
            return text[: found.start] + _dumped(text, value, indent, _step(text, node)) + text[found.end :]
        node = _object(found, path, depth + 1)
    raise AssertionError("a path has at least one name")


def without_member(text: str, path: Sequence[str]) -> str:
    """Return a text without the member at a path, and without objects that are empty because of it."""
    node = _object(read_jsonc(text), path, 0)
    for depth, name in enumerate(path[:-1]):
        if node.members is None or name not in node.members:
            return text
        node = _object(node.members[name], path, depth + 1)
    if node.members is None or path[-1] not in node.members:
        return text
    if len(node.members) == 1 and len(path) > 1:
        return without_member(text, path[:-1])
    return _removed(text, node, path[-1])


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text

    def skip(self, at: int) -> int:
        found = _SPACE.match(self._text, at)
        assert found is not None
        return found.end()

    def error(self, at: int, what: str) -> UsageError:
        line = self._text.count("\n", 0, at) + 1
        column = at - (self._text.rfind("\n", 0, at) + 1) + 1
        return UsageError(f"{what} (line {line}, column {column})")

    def value(self, at: int, depth: int) -> Node:
        if depth > _MAX_DEPTH:
            raise self.error(at, "it is nested too deeply")
        match self._text[at : at + 1]:
            case "{":
                return self._object(at, depth)
            case "[":
                return self._array(at, depth)
            case '"':
                return self._string(at)
            case _:
                found = _SCALAR.match(self._text, at)
                if found is None:
                    raise self.error(at, "a value is expected here")
                return Node(at, found.end(), json.loads(found[0]))

    def _string(self, at: int) -> Node:
        found = _STRING.match(self._text, at)
        if found is None:
            raise self.error(at, "a text is not closed here")
        try:
            return Node(at, found.end(), json.loads(found[0]))
        except ValueError:
            raise self.error(at, "a text has an escape that JSON does not know") from None

    def _object(self, start: int, depth: int) -> Node:
        members: dict[str, Node] = {}
        at, end, comma, first_key = self.skip(start + 1), 0, False, 0
        while self._text[at : at + 1] != "}":
            if members and not comma:
                raise self.error(at, "a comma or `}` is expected here")
            if self._text[at : at + 1] != '"':
                raise self.error(at, "a name in quotes is expected here")
            name = self._string(at)
            first_key = first_key or at
            colon = self.skip(name.end)
            if self._text[colon : colon + 1] != ":":
                raise self.error(colon, "a colon is expected here")
            member = self.value(self.skip(colon + 1), depth + 1)
            members.pop(name.value, None)
            members[name.value] = member
            end, at = member.end, self.skip(member.end)
            if comma := self._text[at : at + 1] == ",":
                at = self.skip(at + 1)
        value = {name: member.value for name, member in members.items()}
        return Node(start, at + 1, value, members, (end, comma), first_key)

    def _array(self, start: int, depth: int) -> Node:
        values: list[Any] = []
        at, comma = self.skip(start + 1), True
        while self._text[at : at + 1] != "]":
            if not comma:
                raise self.error(at, "a comma or `]` is expected here")
            item = self.value(at, depth + 1)
            values.append(item.value)
            at = self.skip(item.end)
            if comma := self._text[at : at + 1] == ",":
                at = self.skip(at + 1)
        return Node(start, at + 1, values)


def _object(node: Node, path: Sequence[str], depth: int) -> Node:
    if node.members is None:
        where = f"`{'.'.join(path[:depth])}`" if depth else "the whole file"
        raise UsageError(f"{where} is expected to be an object in braces, and is something else")
    return node


def _inserted(text: str, node: Node, name: str, value: Any) -> str:
    """Return a text with one member more at the end of an object."""
    line_end = "\r\n" if "\r\n" in text else "\n"
    step = _step(text, node)
    outer = _line_indent(text, node.start)
    indent = _line_indent(text, node.first_key) if _own_line(text, node) else outer + step
    member = f"{json.dumps(name, ensure_ascii=False)}: {_dumped(text, value, indent, step)}"
    inside_end = node.end - 1
    end, has_comma = node.ends
    before = text[:inside_end].rstrip(" \t\r\n")
    if node.members and not has_comma:
        before = text[:end] + "," + before[end:]
    comma = "," if node.members and has_comma else ""
    return f"{before}{line_end}{indent}{member}{comma}{line_end}{outer}{text[inside_end:]}"


def _removed(text: str, node: Node, name: str) -> str:
    """Return a text without a member of an object; the comma before it goes where nothing follows."""
    assert node.members is not None
    reader = _Reader(text)
    names = list(node.members)
    member = node.members[name]
    start = _name_start(text, member.start, name)
    after = reader.skip(member.end)
    if text[after : after + 1] == ",":
        return _without_lines(text, start, after + 1)
    at = names.index(name)
    if at > 0:
        comma = reader.skip(node.members[names[at - 1]].end)
        return _without_lines(text[:comma] + text[comma + 1 :], start - 1, member.end - 1)
    return _without_lines(text, start, member.end)


def _name_start(text: str, value_start: int, name: str) -> int:
    """Return where the name of a member begins, which stands before its value."""
    at = value_start
    while True:
        at = text.rfind('"', 0, at)
        found = _STRING.match(text, at)
        if found is not None and found.end() <= value_start and json.loads(found[0]) == name:
            return at


def _without_lines(text: str, start: int, end: int) -> str:
    """Return a text without a part, and without the line that this leaves blank."""
    line_start = text.rfind("\n", 0, start) + 1
    rest = re.compile(r"[ \t]*\r?\n").match(text, end)
    if not text[line_start:start].strip() and rest is not None:
        return text[:line_start] + text[rest.end() :]
    return text[:start] + text[end:]


def _own_line(text: str, node: Node) -> bool:
    """Return whether the first member of an object begins a line."""
    return bool(node.members) and not text[text.rfind("\n", 0, node.first_key) + 1 : node.first_key].strip()


def _line_indent(text: str, at: int) -> str:
    line_start = text.rfind("\n", 0, at) + 1
    line = text[line_start:at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _step(text: str, node: Node) -> str:
    """Return by how much the text is indented for each level."""
    if _own_line(text, node):
        outer, inner = _line_indent(text, node.start), _line_indent(text, node.first_key)
        if inner.startswith(outer) and inner != outer:
            return inner[len(outer) :]
    found = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    return "\t" if found is not None and found[1].startswith("\t") else "  "


def _dumped(text: str, value: Any, indent: str, step: str) -> str:
    """Return a value as people write it: members on lines of their own, lists on one."""
    if not isinstance(value, dict) or not value:
        return json.dumps(value, ensure_ascii=False)
    line_end = "\r\n" if "\r\n" in text else "\n"
    inner = indent + step
    members = [
        f"{inner}{json.dumps(name, ensure_ascii=False)}: {_dumped(text, member, inner, step)}"
        for name, member in cast("dict[str, Any]", value).items()
    ]
    return f"{{{line_end}{f',{line_end}'.join(members)}{line_end}{indent}}}"
