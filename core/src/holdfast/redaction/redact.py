"""Takes secrets out of what is about to be shown to others: keys, tokens, passwords, private keys.

`secrets` has the rules. They find what is usual, not everything: who shares a session should look at it. A secret is
replaced by a mark that says what it was; to redact twice changes nothing more.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any, cast

import msgspec

from holdfast.model import RULES, History, SessionState, event_from, is_object
from holdfast.redaction import secrets
from holdfast.redaction.hidden import disguises_removed, without_invisible
from holdfast.redaction.secrets import is_assigned_secret, is_code, is_placeholder, is_secret_name, is_variable_secret
from holdfast.view.safe_text import ESCAPES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from holdfast.model import Entry, SessionInfo, Update

_RULES = (*secrets.FORMS, *secrets.CONTEXTS)

_HINTS = tuple((hint, at) for at, rule in enumerate(_RULES) for hint in rule.hints) + tuple(
    (hint, len(_RULES)) for hint in secrets.KEYWORDS
)
"""All hints, and of which rule: looking for them one after the other takes less time than anything cleverer."""

_IDS = frozenset(rule.key for rule in RULES.values()) | {"sessionUpdate", "type"}
"""Members by which things are told apart; they stay what they are."""

_NOT_SECRET = _IDS | {"name", "id", "description", "title", "user", "username", "login", "host", "url", "uri", "region"}
"""Members that stay even inside `credentials`."""

_NUMERIC = re.compile(r"(?i)pass|pwd|secret")
"""Names of secrets that may be numbers; a number of tokens is none."""

SHORTEST_KEY = 16
"""A shorter name of a member is no secret."""

_BEGINNINGS = tuple(hint for rule in secrets.FORMS for hint in rule.hints)

_REST = "0aA" * 30
"""How a word may go on that was cut: longer than any rule wants a secret to be."""

_ENDS = ("", "@x/", '"', "'")

_INVISIBLE = re.compile(f"{ESCAPES.pattern}|\0")


class Redactor:
    """Takes secrets out of values, and counts them."""

    def __init__(self) -> None:
        self.count: int = 0

    def text(self, text: str) -> str:
        """Return a text without secrets. One that has any loses its colours too: they can stand inside a secret.

        A text that shows a secret only because of characters that nobody sees loses these as well.
        """
        clean = self._visible_text(text)
        for looks in disguises_removed(clean):
            before = self.count
            undisguised = self._visible_text(looks)
            if self.count > before:
                return undisguised
        return clean

    def _visible_text(self, text: str) -> str:
        visible = _INVISIBLE.sub("", text) if "\x1b" in text or "\x9b" in text or "\0" in text else text
        before = self.count
        clean = self._json(self._until_clean(visible))
        return text if self.count == before else clean

    def title(self, title: str) -> str:
        """Return a title without secrets. Where it was cut, its end may be half of one."""
        if not title.endswith("…"):
            return self.text(title)
        is_word = " " not in title
        if is_word and title.lower().startswith(_BEGINNINGS):
            return self._mark("secret")
        plain = Redactor()
        clean = plain.text(title)
        for end in _ENDS:
            whole = Redactor()
            tried = whole.text(f"{title[:-1]}{_REST if is_word else ''}{end}")
            if whole.count > plain.count and _REST not in tried:
                self.count += whole.count
                return f"{tried.removesuffix(end)}…"
        self.count += plain.count
        return clean

    def value(self, value: Any, *, name: str = "") -> Any:
        """Return a JSON value without secrets, wherever they are in it; `name` is that of the member it is."""
        if isinstance(value, str):
            return self._string(value, name)
        if isinstance(value, list):
            return [self.value(item, name=name) for item in cast("list[Any]", value)]
        if is_object(value):
            return self._object(value, name)
        if isinstance(value, int | float) and abs(value) >= 1000 and _NUMERIC.search(name) and is_secret_name(name):
            return self._mark("secret")
        return value

    def entry(self, entry: Entry) -> Entry:
        """Return an entry without secrets."""
        updates = [self._whole(entry)] if self._is_split(entry) else entry.updates()
        history = History()
        for update in updates:
            history.apply(event_from(self.value(update)))
        return next(iter(history), entry)

    def session(self, info: SessionInfo, state: SessionState) -> tuple[SessionInfo, SessionState]:
        """Return what is known of a session besides its conversation, without secrets."""
        clean = msgspec.convert(self.value(msgspec.to_builtins(state)), SessionState)
        return self.info(info), clean

    def info(self, info: SessionInfo) -> SessionInfo:
        """Return what a list shows of a session, without secrets."""
        return msgspec.structs.replace(
            info,
            title=None if info.title is None else self.title(info.title),
            cwd=self.text(info.cwd),
            additional=tuple(map(self.text, info.additional)),
        )

    # Texts

    def _until_clean(self, text: str) -> str:
        while True:
            before, clean = self.count, self._once(text)
            if self.count == before:
                return clean
            text = clean  # what stood right behind a secret can be seen for what it is now

    def _once(self, text: str) -> str:
        low = text.lower()
        hinted = {at for hint, at in _HINTS if hint in low}
        for at in sorted(hinted):
            if at < len(_RULES):
                kind, _, pattern = _RULES[at]
                text = pattern.sub(lambda found, kind=kind: self._replaced(found, kind), text)
        return self._named(text) if len(_RULES) in hinted else text

    def _named(self, text: str) -> str:
        """Take out secrets with a name before them. That is slow, so only lines that may have one are looked at."""
        parts: list[str] = []
        done = 0
        for start, end in _lines_with(text, secrets.KEYWORDS):
            line = secrets.QUOTED.sub(self._quoted, text[start:end])
            line = secrets.ASSIGNED.sub(lambda found: self._assigned(found, is_assigned_secret), line)
            line = secrets.ON_A_LINE.sub(lambda found: self._assigned(found, is_assigned_secret), line)
            line = secrets.IN_A_SENTENCE.sub(lambda found: self._assigned(found, is_assigned_secret), line)
            line = secrets.VARIABLE.sub(lambda found: self._assigned(found, is_variable_secret), line)
            parts += (text[done:start], line)
            done = end
        return "".join((*parts, text[done:]))

    def _json(self, text: str) -> str:
        """Redact a text that is JSON by the names of its members too."""
        start = text.lstrip()[:1]
        if start not in ("{", "[") or not start:
            return text
        try:
            value: Any = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return text
        before = self.count
        clean = self.value(value)
        if self.count == before:
            return text
        encoded = msgspec.json.encode(clean)
        return (msgspec.json.format(encoded, indent=2) if "\n" in text.strip() else encoded).decode()

    def _replaced(self, found: re.Match[str], kind: str) -> str:
        group = found.re.groups  # the first, or all of it
        if is_placeholder(found[group]) or (kind == "header" and is_code(found[group])):
            return found[0]
        return self._without(found, group, kind)

    def _quoted(self, found: re.Match[str]) -> str:
        if len(found[2]) < 4 or is_placeholder(found[2]):
            return found[0]
        return self._without(found, 2, "secret")

    def _assigned(self, found: re.Match[str], is_secret: Callable[[str, str], bool]) -> str:
        return self._without(found, 2, "secret") if is_secret(found[1], found[2]) else found[0]

    def _without(self, found: re.Match[str], group: int, kind: str) -> str:
        start, end = (position - found.start() for position in found.span(group))
        return found[0][:start] + self._mark(kind) + found[0][end:]

    def _mark(self, kind: str) -> str:
        self.count += 1
        return f"[redacted: {kind}]"

    # Values

    def _object(self, members: Update, name: str) -> Update:
        match members:
            case {"type": "image" | "audio", "data": str()}:
                return self._renamed({k: v if k == "data" else self.value(v, name=k) for k, v in members.items()})
            case {"name": str(named), "value": _} if is_secret_name(
                without_invisible(named)
            ):  # as environments and headers are written
                return self._renamed(
                    {k: self.value(v, name=without_invisible(named) if k == "value" else k) for k, v in members.items()}
                )
            case _:
                return self._renamed({k: self.value(v, name=self._inner_name(name, k)) for k, v in members.items()})

    def _renamed(self, members: Update) -> Update:
        """Return an object without secrets among its names: a table of tokens has them there."""
        if all(len(name) < SHORTEST_KEY for name in members):
            return members
        renamed: Update = {}
        for name, value in members.items():
            clean = self.text(name) if len(name) >= SHORTEST_KEY else name
            renamed[clean if clean not in renamed else f"{clean} ({len(renamed)})"] = value
        return renamed

    @staticmethod
    def _inner_name(outer: str, name: str) -> str:
        """Return the name by which a member is judged: inside `credentials` everything is a secret."""
        name = without_invisible(name)
        return outer if secrets.holds_secrets(outer) and name not in _NOT_SECRET else name

    def _string(self, text: str, name: str) -> str:
        if name in _IDS:
            return text
        if name in ("data", "blob"):
            return self._base64(text, is_terminal=name == "data")
        if is_secret_name(name) and text and not is_placeholder(text):
            return self._mark("secret")
        if name == "auth" and secrets.is_basic_auth(text):
            return self._mark("password")
        return self.text(text)

    def _base64(self, data: str, *, is_terminal: bool) -> str:
        """Redact text in base64, in whatever encoding it is. What is not text, as an archive, stays as it is."""
        try:
            output = b64decode(data, validate=True)
        except ValueError:
            return data
        if b"\0" in output and not is_terminal:
            return data
        before = self.count
        clean = self.text(output.decode(errors="surrogateescape"))
        return data if self.count == before else b64encode(clean.encode(errors="surrogateescape")).decode()

    # Messages that came in chunks

    def _is_split(self, entry: Entry) -> bool:
        """Return whether a secret of a message lies across chunks that are kept apart."""
        if not entry.extras:
            return False
        apart, together = Redactor(), Redactor()
        for text in (item["text"] for item in entry.content() if is_object(item) and isinstance(item.get("text"), str)):
            apart.text(text)
        for block in entry.blocks():
            together.value(block)
        return together.count != apart.count

    @staticmethod
    def _whole(entry: Entry) -> Update:
        rule = RULES[entry.entity]
        head = {"sessionUpdate": entry.entity, rule.key: entry.key}
        return {**head, **entry.members, rule.items: list(entry.blocks())}


def _lines_with(text: str, words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield where the lines are, in order, that have one of the words, in whatever case."""
    low = text.lower()
    if len(low) != len(text):  # a few letters are longer in lower case
        yield 0, len(text)
        return
    found: dict[int, int] = {}
    for word in words:
        at = low.find(word)
        while at >= 0:
            newline = low.find("\n", at)
            end = newline if newline >= 0 else len(low)
            found[low.rfind("\n", 0, at) + 1] = end
            at = low.find(word, end)
    yield from sorted(found.items())
