"""The trace that a piece of work belongs to: the W3C `traceparent` that a client puts into `_meta` (A12).

It is kept in a context variable, so that whatever is logged or measured while the work is done, in our code or in an
author's, can name the trace: `TraceFilter` does so for `logging`.
"""

from __future__ import annotations

import logging
import re
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

traceparent: ContextVar[str | None] = ContextVar("traceparent", default=None)
"""The trace of the current work, as the client named it."""

_TRACEPARENT = r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}"


def note_trace(meta: Mapping[str, Any] | None) -> None:
    """Set the trace of the current work to the one in a request's `_meta`, or to None if there is no valid one."""
    named = (meta or {}).get("traceparent")
    traceparent.set(named if isinstance(named, str) and re.fullmatch(_TRACEPARENT, named) else None)


class TraceFilter(logging.Filter):
    """Gives every log record a `trace`: a space and the trace, or nothing."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Set `record.trace`; return True, so that every record is logged."""
        trace = traceparent.get()
        record.trace = f" trace={trace}" if trace else ""
        return True
