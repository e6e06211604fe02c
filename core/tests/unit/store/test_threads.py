"""The threads of the SQLite store go on, whatever meets them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from holdfast.errors import StoreError
from holdfast.store.sqlite.threads import DatabaseThread

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.store.sqlite.threads import Transaction


async def test_an_error_after_a_commit_is_told_to_whoever_waits_and_ends_no_thread(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def break_after_commit(transaction: Transaction) -> None:
        def broken() -> None:
            raise ZeroDivisionError

        transaction.after_commit(broken)

    thread = DatabaseThread(str(tmp_path / "sessions.db"), None, "writer")
    try:
        async with asyncio.timeout(30):
            with pytest.raises(StoreError, match="the log of this process has it"):
                await thread.write("s", break_after_commit)
            assert await thread.run(lambda _: "goes on") == "goes on"
        assert "ZeroDivisionError" in caplog.text
    finally:
        await thread.close()
