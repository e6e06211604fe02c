"""Keys in our environment: what is shown, stored or handed to others must be without them (P10)."""

from __future__ import annotations

import os
import re

_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL)S?$", re.IGNORECASE)

SHORTEST = 8
"""What is shorter is no key, and would be found in innocent text."""


def redacted(text: str) -> str:
    """Take out the values of all variables of our environment that are called like a secret."""
    for name, value in os.environ.items():
        if len(value) >= SHORTEST and _NAME.search(name):
            text = text.replace(value, "…")
    return text


def environment() -> dict[str, str]:
    """Give our environment without what is called like a secret, for commands that a model has chosen."""
    return {name: value for name, value in os.environ.items() if not _NAME.search(name)}
