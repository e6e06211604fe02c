"""Texts as a log may hold them: without keys (P10), and with nothing that steers the terminal it is read in.

Two ways to know a key: it is the value of a variable of our environment that is named like a secret, or it has the form
of one (`holdfast.redaction.secrets` has the forms). The second needs a while to load, so only `masked` does it.
"""

from __future__ import annotations

import os
import re

from holdfast.view.safe_text import safe_text

_SECRET_NAME = re.compile(
    r"(?:^|_)(?:AUTH|DSN|JWT|PAT|PASS|PWD|(?:API|ACCESS|PRIVATE|SECRET)?KEY"
    r"|\w*(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL))S?(?:_|$)"
    r"|(?:DATABASE|CONNECTION|REDIS|MONGO\w*|POSTGRES\w*)_(?:URL|URI|STRING)$",
    re.IGNORECASE,
)
_INNOCENT = frozenset({"PWD", "OLDPWD", "SSH_AUTH_SOCK"})

SHORTEST = 8
"""A shorter value is no key, and would be found in innocent text."""


def without_environment_keys(text: str) -> str:
    """Return a text without the values of all variables of our environment that are named like a secret."""
    for name, value in os.environ.items():
        if len(value) >= SHORTEST and name not in _INNOCENT and _SECRET_NAME.search(name):
            text = text.replace(value, "…")
    return text


def loggable(text: str) -> str:
    """Return a text as a log may hold it: without keys, its control characters as pictures of themselves."""
    return safe_text(masked(text))


def masked(text: str) -> str:
    """Return a text without the keys of our environment, and without all that has the form of a secret."""
    from holdfast.redaction.redact import Redactor  # noqa: PLC0415  (most processes never log anything)

    return Redactor().text(without_environment_keys(text))
