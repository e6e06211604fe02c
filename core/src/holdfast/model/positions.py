"""Where in the stream of a session's events something stands."""

from __future__ import annotations

import re
from typing import NamedTuple

_TEXT = r"(\d{1,18})\.(\d{1,18})\.(\d{1,18})"


class Position(NamedTuple):
    """The position of one event among all that were ever shown of a session. Of two, the greater came later.

    Every event that clients are shown takes one, whether it is stored or not. What one client alone is told takes none.
    """

    epoch: int
    """The claim under which it was shown."""
    turn: int
    """The log it belongs to: that of a turn, or of the time between two; 0 before the first."""
    event: int
    """Its number there; the first has 1. The position 0 is that before the first."""

    def after(self, count: int) -> Position:
        """Return the position so many events later in the same log."""
        return Position(self.epoch, self.turn, self.event + count)

    def __str__(self) -> str:
        return f"{self.epoch}.{self.turn}.{self.event}"

    @classmethod
    def parse(cls, text: str) -> Position | None:
        """Parse what `str` has made; None where it is something else."""
        found = re.fullmatch(_TEXT, text)
        return None if found is None else cls(*map(int, found.groups()))
