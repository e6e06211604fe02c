"""Secrets taken out of what is about to be shown to others: keys, tokens, passwords, private keys.

They are known by how they look (`ghp_…`, `AKIA…`, a JWT) or by what stands before them (`password=`, `Authorization:`,
a member called `apiKey`). That finds what is usual, not everything: whoever shares a session should look at it. What
is taken out is replaced by a mark that says what it was; to redact twice changes nothing more.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec

from holdfast.model import RULES, History, SessionState, event_from

if TYPE_CHECKING:
    from holdfast.model import Entry, SessionInfo


class _Rule(NamedTuple):
    """A secret of one kind: where none of the hints is in a text, lower-cased, there is none in it.

    Group 1 of the pattern, if it has one, is the secret; what stands around it stays.
    """

    kind: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]


_NAMES = (
    r"pass(?:word|wd|phrase|code)|pwd|secrets?|token|credentials?|connection[_.-]?string"
    r"|(?:api|access|private|secret|signing|encryption|auth)[_.-]?keys?|client[_.-]?secret"
)
_NAME = (
    r"(?:(?<![A-Za-z0-9])|(?-i:(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=PASSWORD|PASSWD|SECRET|TOKEN|APIKEY)))"
    rf"(?:{_NAMES})"
)
"""A name, or the last words of one. What stands before is not looked at: that could take for ever in a long text."""

_PLAIN_VALUE = r"[^\s\"'`,;&|<>(){}\[\]$\\]"

_PLACEHOLDER = re.compile(
    r"""
    [xX*.…•\#?_-]+ | \[redacted.*\] | <.*> | \$.* | \{.*\} | %.*% | your[ _-].*
    | changeme | example | placeholder | password | secret | token | str(?:ing)? | null | nil | none | undefined
    | true | false | required | optional | bearer | basic
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_CODE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
"""What stands where a secret could stand and is none: `self.token`."""


def _rule(kind: str, hints: str, pattern: str) -> _Rule:
    return _Rule(kind, tuple(hints.split()), re.compile(pattern))


_SHAPES = (
    _rule(
        "private key",
        "-----begin",
        r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
        r"(?:(?:[^-]|-(?!----))*+-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
        r"|(?:(?:\s|\\[nr])*+[A-Za-z0-9+/=]{16,})++)",
    ),
    _rule("JWT", "eyj", r"\beyJ[\w-]{8,500}\.eyJ[\w-]{8,9999}\.[\w-]*"),
    _rule("API key", "sk- sk_ rk_", r"\b(?:sk|rk)[-_](?=[\w-]{0,80}\d)[A-Za-z0-9][\w-]{18,}"),
    _rule("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", r"\bgh[pousr]_[A-Za-z0-9]{30,}"),
    _rule("GitHub token", "github_pat_", r"\bgithub_pat_\w{40,}"),
    _rule("GitLab token", "glpat-", r"\bglpat-[\w-]{20,}"),
    _rule("AWS key", "akia asia", r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    _rule("Google key", "aiza", r"\bAIza[\w-]{35}"),
    _rule("Google token", "ya29.", r"\bya29\.[\w-]{20,}"),
    _rule("Slack token", "xox xapp-", r"\b(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{10,}"),
    _rule("Slack webhook", "hooks.slack.com", r"hooks\.slack\.com/services/([\w/]{20,})"),
    _rule("npm token", "npm_", r"\bnpm_[A-Za-z0-9]{36}"),
    _rule("PyPI token", "pypi-", r"\bpypi-[\w-]{50,}"),
    _rule("Hugging Face token", "hf_", r"\bhf_[A-Za-z0-9]{30,}"),
    _rule("API key", "gsk_ xai- whsec_", r"\b(?:gsk_|xai-|whsec_)[A-Za-z0-9]{20,}"),
    _rule("SendGrid key", "sg.", r"\bSG\.[\w-]{16,}\.[\w-]{16,}"),
    _rule("DigitalOcean token", "_v1_", r"\bdo[opr]_v1_[a-f0-9]{64}"),
    _rule("Vault token", "hvs.", r"\bhvs\.[\w-]{20,}"),
    _rule("age key", "age-secret-key-", r"\bAGE-SECRET-KEY-1[0-9A-Z]{50,}"),
    _rule("Telegram token", ":aa", r"\b\d{8,10}:AA[\w-]{32,}"),
)
"""Secrets that are known by how they look. What may repeat has an end, so that no text can be made to take long."""

_QUOTE = r"\\?[\"']"

_PLACES = (
    _rule(
        "header",
        "authorization x-api-key api-key x-auth-token x-goog-api-key",
        r"(?i)\b(?:(?:proxy-)?authorization|(?:x-)?(?:goog-)?api-key|x-auth-token)[\"']?\s*[:=]\s*[\"']?"
        r"(?:(?:bearer|basic|token|digest|negotiate)\s+)?([^\s\"'\\,;<>{}\[\]$]{6,})",
    ),
    _rule("cookie", "cookie", r"(?i)\b(?:set-)?cookie:\s*([^\s\"'\\=]{1,100}=[^\n\"'\\]+)"),
    _rule("bearer token", "bearer", r"(?i)\bbearer\s+([\w.~+/=-]*[\d._~+/=-][\w.~+/=-]{12,})"),
    _rule("password", "://", r"://[^\s/:@\"'<>]*:([^\s/@\"'<>]+)@(?=[\w\[.-])"),
    _rule("password", "curl", rf"\bcurl\b[^\n]{{0,300}}?\s(?:-u|--user)[ =]+[\"']?[\w.@-]+:({_PLAIN_VALUE}+)"),
    _rule(
        "secret",
        "--pass --token --secret --api --auth --client --access",
        rf"--(?:[a-z]+-)*(?:{_NAMES})[ =]+[\"']?({_PLAIN_VALUE}{{4,}})",
    ),
)
"""Secrets that are known by a form that only secrets have."""

_KEYWORDS = ("pass", "pwd", "secret", "token", "key", "credential", "connection")

_QUOTED = re.compile(rf"(?i){_NAME}(?:{_QUOTE})?\s*(?:=>|[:=])\s*({_QUOTE})((?:(?!\1).)+?)\1")
_ASSIGNED = re.compile(rf"(?i)({_NAME})=({_PLAIN_VALUE}{{6,}})")
_LISTED = re.compile(rf"(?im)^[ \t>+-]*+[\w.-]*({_NAME}):[ \t]+({_PLAIN_VALUE}{{6,}})[ \t]*$")
"""Secrets that are known by a name before them: `"apiKey": "…"`, `PASSWORD=…`, `token: …` on a line of its own."""

_SECRET_MEMBER = re.compile(rf"(?i)(?:^|.*[_.-])(?:{_NAMES}|(?:proxy-)?authorization|(?:set-)?cookie|x-api-key)$")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


_IDS = frozenset(rule.key for rule in RULES.values()) | {"sessionUpdate", "type"}
"""By these things are told apart; they stay what they are."""

_RULES = (*_SHAPES, *_PLACES)

_HINTS = tuple((hint, at) for at, rule in enumerate(_RULES) for hint in rule.hints) + tuple(
    (hint, len(_RULES)) for hint in _KEYWORDS
)
"""All hints, and of which rule: looking for them one after the other takes less time than anything cleverer."""


class Redactor:
    """Takes secrets out of values, and counts them."""

    def __init__(self) -> None:
        self.count = 0

    def text(self, text: str) -> str:
        """Take secrets out of a text."""
        while True:
            before, clean = self.count, self._text(text)
            if self.count == before:
                return clean
            text = clean  # what stood right behind a secret can be seen for what it is now

    def _text(self, text: str) -> str:
        low = text.lower()
        hinted = [at for hint, at in _HINTS if hint in low]
        if not hinted:
            return text
        for at in sorted(set(hinted)):
            if at < len(_RULES):
                kind, _, pattern = _RULES[at]
                text = pattern.sub(lambda found, kind=kind: self._replaced(found, kind), text)
        if hinted[-1] == len(_RULES):
            text = _QUOTED.sub(self._quoted, text)
            text = _ASSIGNED.sub(self._assigned, text)
            text = _LISTED.sub(self._assigned, text)
        return text

    def value(self, value: Any, *, name: str = "") -> Any:
        """Take secrets out of a JSON value, wherever they are in it; `name` is that of the member it is."""
        if isinstance(value, str):
            return self._string(value, name)
        if isinstance(value, list):
            return [self.value(it, name=name) for it in cast("list[Any]", value)]
        if isinstance(value, dict):
            return self._object(cast("dict[str, Any]", value))
        return value

    def entry(self, entry: Entry) -> Entry:
        """Take secrets out of an entry."""
        history = History()
        for update in entry.updates():
            history.apply(event_from(self.value(update)))
        return next(iter(history), entry)

    def session(self, info: SessionInfo, state: SessionState) -> tuple[SessionInfo, SessionState]:
        """Take secrets out of what is known of a session besides its conversation."""
        title = None if info.title is None else self.text(info.title)
        clean = msgspec.convert(self.value(msgspec.to_builtins(state)), SessionState)
        return msgspec.structs.replace(info, title=title), clean

    def _object(self, members: dict[str, Any]) -> dict[str, Any]:
        match members:
            case {"type": "image" | "audio", "data": str()}:
                return {k: v if k == "data" else self.value(v, name=k) for k, v in members.items()}
            case {"name": str(name), "value": str()} if is_secret_name(name):  # as environments and headers are written
                return {k: self.value(v, name=name if k == "value" else k) for k, v in members.items()}
            case _:
                return {k: self.value(v, name=k) for k, v in members.items()}

    def _string(self, text: str, name: str) -> str:
        if name in _IDS:
            return text
        if name in ("data", "blob") and (inside := _decoded(text)) is not None:
            before = self.count
            clean = self.text(inside)
            return text if self.count == before else b64encode(clean.encode()).decode()
        if name and is_secret_name(name) and text and not _PLACEHOLDER.fullmatch(text):
            return self._mark("secret")
        return self.text(text)

    def _replaced(self, found: re.Match[str], kind: str) -> str:
        group = found.re.groups  # the first, or all of it
        return found[0] if _PLACEHOLDER.fullmatch(found[group]) else self._without(found, group, kind)

    def _quoted(self, found: re.Match[str]) -> str:
        if len(found[2]) < 4 or _PLACEHOLDER.fullmatch(found[2]):
            return found[0]
        return self._without(found, 2, "secret")

    def _assigned(self, found: re.Match[str]) -> str:
        name, secret = found[1], found[2]
        is_sure = name.isupper() or name.lower().startswith(("pass", "pwd"))
        if _PLACEHOLDER.fullmatch(secret) or _CODE.fullmatch(secret) or not (is_sure or re.search(r"\d", secret)):
            return found[0]
        return self._without(found, 2, "secret")

    def _without(self, found: re.Match[str], group: int, kind: str) -> str:
        start, end = (it - found.start() for it in found.span(group))
        return found[0][:start] + self._mark(kind) + found[0][end:]

    def _mark(self, kind: str) -> str:
        self.count += 1
        return f"[redacted: {kind}]"


@lru_cache(maxsize=1024)
def is_secret_name(name: str) -> bool:
    """Say whether something of that name is kept secret: `API_KEY`, `clientSecret`, `Authorization`."""
    return len(name) < 200 and _SECRET_MEMBER.match(_CAMEL.sub("_", name)) is not None


def _decoded(data: str) -> str | None:
    """Read base64 of text; None where it is something else."""
    try:
        return b64decode(data, validate=True).decode()
    except ValueError:
        return None
