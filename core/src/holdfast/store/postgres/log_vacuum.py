"""The log of running turns is kept small: a node that has removed much of it lets the space be used again at once.

Its rows come and go all the time. The database looks for what to vacuum once a minute (`autovacuum_naptime`), so the
table would grow to what all nodes say in a minute, and more where they say more. Vacuums by what was removed bound it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from holdfast.store.postgres.database import Database

log: logging.Logger = logging.getLogger(__name__)

REMOVED_BYTES = 4 << 20
"""After so much was removed from the log its space is made usable again."""

ROW_BYTES = 80
"""What a row takes besides what was said."""

LAST_SECONDS = 5.0
"""So long a vacuum is waited for when the store is closed."""

# Nobody waits: where another node is at it, this one leaves it be, and the end of the file is not cut off, for which
# those who write would have to wait.
VACUUM = "VACUUM (SKIP_LOCKED, TRUNCATE FALSE) holdfast.turn_log"


class LogVacuum:
    """Vacuums the log after this process has removed enough from it, one at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._removed = 0
        self._running: asyncio.Task[None] | None = None

    def removed(self, rows: int, size: int) -> None:
        """Count rows that were removed, and the bytes that were in them."""
        self._removed += size + rows * ROW_BYTES
        if self._removed > REMOVED_BYTES and self._running is None:
            self._removed = 0
            self._running = asyncio.get_running_loop().create_task(self._vacuum(), name="vacuum the log of turns")

    async def close(self) -> None:
        """Let a vacuum that runs come to its end; one that takes long is given up."""
        if (vacuum := self._running) is not None:
            await asyncio.wait({vacuum}, timeout=LAST_SECONDS)
            vacuum.cancel()
            await asyncio.wait({vacuum})

    async def _vacuum(self) -> None:
        try:
            await self._database.run_alone(VACUUM)
        except HoldfastError as e:  # the database's own vacuum comes later
            log.info("The log of turns was not vacuumed: %s", e)
        finally:
            self._running = None
