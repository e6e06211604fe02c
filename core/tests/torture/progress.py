"""How far a torture has come, on stderr: all the time on a terminal, once a minute elsewhere."""

from __future__ import annotations

import sys
import time


class Progress:
    """Tells how much of something is done."""

    def __init__(self, total: float, what: str) -> None:
        self.total = total
        self._what = what
        self._began = time.monotonic()
        self._terminal = sys.stderr.isatty()
        self._told = self._began if not self._terminal else float("-inf")

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return time.monotonic() - self._began

    def tell(self, done: float, more: str = "") -> None:
        """Tell, unless that was done a moment ago."""
        if time.monotonic() - self._told < (0.3 if self._terminal else 60):
            return
        self._told = time.monotonic()
        text = f"{done:,.0f} of {self.total:,.0f} {self._what}, {self.seconds:.0f} s{f', {more}' if more else ''}"
        sys.stderr.write(f"\r\033[K{text}" if self._terminal else f"{text}\n")
        sys.stderr.flush()

    def close(self, line: str) -> None:
        """Say the last line, to whoever reads our stdout."""
        if self._terminal:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
