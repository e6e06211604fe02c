"""Which trace a piece of work belongs to: the W3C `traceparent` a client puts into `_meta` (A12).

It travels with the work as a context variable, so that whatever is logged or measured on the way, in our code or in an
author's, can name it: `TraceFilter` does so for `logging`.
"""

from __future__ import annotations

import logging
import re
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

traceparent: ContextVar[str | None] = ContextVar("traceparent", default=None)
"""The trace the work at hand belongs to, as the client named it."""

_FORM = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


def note_trace(meta: Mapping[str, Any] | None) -> None:
    """Note the trace a request belongs to, if it names one that is well formed."""
    named = (meta or {}).get("traceparent")
    traceparent.set(named if isinstance(named, str) and _FORM.fullmatch(named) else None)


class TraceFilter(logging.Filter):
    """Gives every record a `trace`: a space and the trace, or nothing."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record pass."""
        trace = traceparent.get()
        record.trace = f" trace={trace}" if trace else ""
        return True
