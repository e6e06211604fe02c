"""`LogEntry`: something that was logged, as a line of JSON, in the log file and with `--log-format json` alike."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from holdfast.diagnostics.masking import loggable
from holdfast.diagnostics.tracebacks import format_failure
from holdfast.view.safe_text import safe_json, safe_text

if TYPE_CHECKING:
    import logging

MAX_MESSAGE, MAX_TRACEBACK = 8_000, 48_000
"""So many characters are kept."""


class LogEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of something that was logged."""

    time: str
    level: str
    logger: str
    message: str
    process: int = 0
    agent: str = ""
    """The agent, as the command line named it."""
    reference: str = ""
    """What a client was shown in place of it."""
    trace: str = ""
    """The W3C `traceparent` of the work, if the client named one."""
    traceback: str = ""


def entry_from(record: logging.LogRecord, agent: str) -> LogEntry:
    """Return the entry of a record of `logging`, without keys (P10) and control characters."""
    failure = record.exc_info[1] if record.exc_info else None
    return LogEntry(
        datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        record.levelname.lower(),
        record.name,
        _shortened(loggable(record.getMessage()), MAX_MESSAGE),
        os.getpid(),
        safe_text(agent),
        str(getattr(record, "reference", "")),
        str(getattr(record, "trace", "")).removeprefix(" trace="),
        "" if failure is None else _shortened(loggable(format_failure(failure)), MAX_TRACEBACK),
    )


def encode_entry(entry: LogEntry) -> bytes:
    """Return an entry as a line, with its newline."""
    return safe_json(msgspec.json.encode(entry)).encode() + b"\n"


def decode_entry(line: bytes) -> LogEntry | None:
    """Return the entry that a line is, or None where it is none: somebody else may have written it."""
    if not line.startswith(b'{"time":'):
        return None
    try:
        return msgspec.json.decode(line, type=LogEntry)
    except msgspec.DecodeError:
        return None


def _shortened(text: str, limit: int) -> str:
    """Cut the middle out of a text that is too long: how it begins and how it ends says most."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n… {len(text) - limit:,} characters left out …\n{text[-half:]}"
