"""Which parts of a server's description are secrets, and texts without them (P10).

A server that fails is quoted in logs, notices and errors, and may itself quote what it was given: as it is, or as JSON,
in an address or in base64. What nobody can tell from another word, as a password after `-p`, is not found.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode, urlsafe_b64encode
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus, unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

HIDDEN = "[hidden]"

SHORT = 4
"""A shorter secret is taken out only where it stands alone. Otherwise every text would be full of holes."""

ENCODED = 6
"""A shorter base64 form is not looked for: it would be found in innocent text."""

_SECRET_NAME = re.compile(
    r"key|token|secret|passw|passphrase|pwd|auth|credential|cookie|bearer|signature|jwt|dsn|(?:^|[-_])pat(?:$|[-_])",
    re.IGNORECASE,
)
_ASSIGNED = re.compile(r"-{0,2}([A-Za-z][\w.-]*)(?:=|:\s*)(.+)", re.DOTALL)
"""`--token=…`, `TOKEN=…` and `X-Token: …`."""
_ADDRESS = re.compile(r"[a-zA-Z][\w+.-]*://\S+")
_TOKEN = re.compile(
    r"(?=[A-Za-z_]*\d)(?=\d*[A-Za-z_])[A-Za-z0-9_]{16,}|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE
)
"""What looks like a key: long, of letters and digits. A word of a path or of a package name hardly ever does."""


def secrets_in_environment(variables: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield the values of variables, and what is secret in those that are addresses."""
    for _, value in variables:
        if value:
            yield value
        if _ADDRESS.fullmatch(value):
            yield from secrets_in_address(value)


def secrets_in_headers(headers: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield the values of headers, what follows the scheme in one (`Bearer …`), and what is in its base64."""
    for _, value in headers:
        yield value
        for word in value.split()[1:]:
            yield word
            yield from _decoded(word)


def secrets_in_address(address: str) -> Iterator[str]:
    """Yield the user, the password and the query of an address, and the parts of its path that look like keys."""
    try:
        parts = urlsplit(address)
        username, password = parts.username, parts.password
    except ValueError:
        return
    for secret in (username, password):
        if secret:
            yield from (secret, unquote(secret))
    if username and password:
        yield f"{unquote(username)}:{unquote(password)}"
    for query in (parts.query, parts.fragment):
        if query:
            yield query
        for pair in query.split("&"):
            value = pair.partition("=")[2]
            if len(value) >= SHORT:
                yield from (value, unquote(value))
    yield from (segment for segment in parts.path.split("/") if _TOKEN.search(segment))


def secrets_in_arguments(arguments: Iterable[str]) -> Iterator[str]:
    """Yield the arguments, or parts of them, that are named like a secret, look like a key, or are in an address."""
    option = ""
    for argument in arguments:
        if option and not argument.startswith("-"):
            yield argument
        option = argument if argument.startswith("-") and _SECRET_NAME.search(argument) else ""
        assigned = _ASSIGNED.fullmatch(argument)
        if assigned is not None and _SECRET_NAME.search(assigned[1]):
            yield from secrets_in_headers([(assigned[1], assigned[2])])
        for address in _ADDRESS.findall(argument):
            yield from secrets_in_address(address)
        yield from (found[0] for found in _TOKEN.finditer(argument))


def redacted(text: str, secrets: Collection[str]) -> str:
    """Return a text without secrets, in whatever form they are in it."""
    for secret in sorted(set(secrets), key=len, reverse=True):
        for form in _plain_forms(secret):
            if len(form) >= SHORT:
                text = text.replace(form, HIDDEN)
            elif form.strip():
                text = re.sub(rf"(?<!\w){re.escape(form)}(?!\w)", HIDDEN, text)
        for form in _base64_forms(secret):
            text = text.replace(form, HIDDEN)
    return text


def _plain_forms(secret: str) -> dict[str, None]:
    quoted = (quote(secret), quote(secret, safe=""), quote_plus(secret))
    lower = (re.sub(r"%[0-9A-F]{2}", lambda found: found[0].lower(), form) for form in quoted)
    return dict.fromkeys((secret, json.dumps(secret)[1:-1], repr(secret)[1:-1], *quoted, *lower))


def _base64_forms(secret: str) -> set[str]:
    """Return what a secret is in base64, alone or inside of something longer, without what its neighbours decide."""
    data = secret.encode(errors="surrogateescape")
    forms: set[str] = set()
    for before, cut in ((0, 0), (1, 2), (2, 3)):  # how far into a group of three bytes it begins
        whole = (before + len(data)) * 8 // 6
        for encode in (b64encode, urlsafe_b64encode):
            forms.add(encode(b"\0" * before + data).decode()[cut:whole])
    return {form for form in forms if len(form) >= ENCODED}


def _decoded(word: str) -> Iterator[str]:
    """Yield what a word is in base64, where that is text, and the password in it (`Basic …`)."""
    try:
        text = b64decode(word, validate=True).decode()
    except ValueError:
        return
    if len(text) >= SHORT and text.isprintable():
        yield text
        if len(password := text.partition(":")[2]) >= SHORT:
            yield password
