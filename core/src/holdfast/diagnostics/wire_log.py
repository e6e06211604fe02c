"""`WireLog`: every message of a connection, in both directions, as a line that a person can read.

::

    14:03:22.105 client → agent  session/prompt #3  {"sessionId":"sess_…","prompt":[…]}
    14:03:22.841 agent → client  answer to session/prompt #3 (0.74 s)  {"stopReason":"end_turn"}

Keys are taken out (P10): what looks like one, and the environments and headers of MCP servers, whatever is in them.
Long texts are cut. `observe_frame` is what a connection is given.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import msgspec

from holdfast.diagnostics.masked_json import masked_json
from holdfast.diagnostics.masking import loggable
from holdfast.errors import UsageError
from holdfast.view.safe_text import safe_text

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_TEXT = 400
"""So many characters of one text are shown."""
MAX_OPEN = 10_000
"""So many requests without an answer are remembered, to name them in the answer."""

Side: TypeAlias = Literal["client", "agent"]


class WireLog:
    """Writes the messages of one connection, as its `side` sees them, line by line to `write`."""

    def __init__(self, side: Side, write: Callable[[str], object]) -> None:
        self._other: Side = "agent" if side == "client" else "client"
        self._side: Side = side
        self._write = write
        self._open: dict[tuple[str, str], tuple[str, float]] = {}

    def observe_frame(self, direction: Literal["in", "out"], frame: bytes) -> None:
        """Write one frame: a message, or several in a batch, or what is neither."""
        sender, taker = (self._side, self._other) if direction == "out" else (self._other, self._side)
        head = f"{datetime.now().astimezone().strftime('%H:%M:%S.%f')[:-3]} {sender} → {taker}  "
        try:
            decoded: Any = msgspec.json.decode(frame)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            self._write(f"{head}not JSON: {loggable(frame[:MAX_TEXT].decode(errors='replace'))!r}")
            return
        for message in cast("list[Any]", decoded) if isinstance(decoded, list) else [decoded]:
            self._write(head + safe_text(self._described(message, sender)))

    def _described(self, message: Any, sender: Side) -> str:
        match message:
            case {"method": str(method), "id": id_, **rest}:
                if len(self._open) < MAX_OPEN:
                    self._open[sender, repr(id_)] = (method, time.monotonic())
                return f"{method} #{id_}  {_shown(rest.get('params', {}))}"
            case {"method": str(method), **rest}:
                return f"{method}  {_shown(rest.get('params', {}))}"
            case {"error": error, **rest}:
                return f"{self._answer(sender, rest.get('id'), 'error')}  {_shown(error)}"
            case {"result": result, **rest}:
                return f"{self._answer(sender, rest.get('id'), 'answer')}  {_shown(result)}"
            case _:
                return f"no message: {_shown(message)}"

    def _answer(self, sender: Side, id_: object, what: str) -> str:
        asker = "client" if sender == "agent" else "agent"
        method, since = self._open.pop((asker, repr(id_)), ("", 0.0))
        took = f" ({time.monotonic() - since:.2f} s)" if method else ""
        return f"{what} to {method} #{id_}{took}" if method else f"{what} to #{id_}"


def line_writer(file: str | None) -> Callable[[str], None]:
    """Return a function that writes lines to a file, which nobody else may read, or without one to stderr.

    Raises:
        UsageError: the file cannot be written.

    """
    try:
        fd = 2 if file is None else os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    except OSError as e:
        raise UsageError(f"cannot write to {file}: {e.strerror}") from None

    def write(line: str) -> None:
        with suppress(OSError):  # nobody reads it, or the disk is full: the conversation goes on
            os.write(fd, f"{line}\n".encode(errors="replace"))

    return write


def _shown(value: Any) -> str:
    return masked_json(_cut(value))


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= MAX_TEXT else f"{value[:MAX_TEXT]}… (+{len(value) - MAX_TEXT:,})"
    if isinstance(value, list):
        return [_cut(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {name: _cut(member) for name, member in cast("dict[str, Any]", value).items()}
    return value
