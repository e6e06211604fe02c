"""Writing to a terminal: what is erased and what is drawn in its place arrive together."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prompt_toolkit.data_structures import Size
from prompt_toolkit.output.vt100 import Vt100_Output

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

REFLOWS = "XTERM_VERSION" not in os.environ and not os.environ.get("TERM", "").startswith(("linux", "rxvt"))
"""Whether the terminal breaks long lines anew when it becomes narrower, as nearly all do."""


class TerminalOutput(Vt100_Output):
    """Writes nothing while it is held."""

    _held = False

    @classmethod
    def over(cls, stdout: TextIO) -> TerminalOutput:
        """Create the output of a terminal, which is not asked for its cursor: the answer would come among the keys."""
        real: Callable[[], Size] = Vt100_Output.from_pty(stdout).get_size

        def size() -> Size:
            """Return one line less than there are: what was finished last stays in sight."""
            now = real()
            return Size(rows=max(now.rows - 1, 1), columns=max(now.columns, 1))

        return cls(stdout, size, term=os.environ.get("TERM"), enable_cpr=False)

    def erase_down(self) -> None:
        """Erase from the cursor on, the first line by itself.

        Erasing from the very first line on is more to some terminals: they keep what was there in the scrollback.
        """
        self.write_raw("\x1b[K\x1b7\x1b[B\r\x1b[J\x1b8")

    def hold(self) -> None:
        """Write nothing for now."""
        self._held = True

    def release(self) -> None:
        """Write everything."""
        self._held = False
        self.flush()

    def flush(self) -> None:
        """Write, unless held."""
        if not self._held:
            super().flush()
