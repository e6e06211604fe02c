"""How pieces of a reply become events of a stream, whatever the protocol."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING
from uuid import uuid4

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.testing.model_server.replies import Say

_PIECE = 7
"""Characters in a piece: some words are split, as by the tokens of real models."""


def pieces(reply: Say, text: str) -> Iterator[str]:
    """Split a text as a model would stream it: by words where it is said slowly, else into small pieces."""
    if reply.pace:
        return iter(re.findall(r"\s*\S+\s*", text))
    return (text[at : at + _PIECE] for at in range(0, len(text), _PIECE))


def event(data: object, kind: str | None = None) -> bytes:
    """Encode an event of a stream."""
    named = f"event: {kind}\n".encode() if kind else b""
    return named + b"data: " + json.dumps(data).encode() + b"\n\n"


def new_id(kind: str) -> str:
    """Return an id as providers make them."""
    return f"{kind}_{uuid4().hex[:24]}"
