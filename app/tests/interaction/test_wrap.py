"""A wrapped agent, as a client of either version sees it: what it can do, and what it cannot do by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.tests.support.wrapping import wrapping

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(params=[1, 2])
def version(request: pytest.FixtureRequest) -> int:
    return request.param


def habits(version: int, *others: str) -> tuple[str, ...]:
    """Return habits, and that the agent speaks the version of the client."""
    return ("v2", *others) if version == 2 else others


@pytest.mark.requirement("G1", "G3")
async def test_a_session_is_replayed_from_our_journal(tmp_path: Path, version: int) -> None:
    async with wrapping(tmp_path, *habits(version)) as wrapped:
        client = await wrapped.client(version)
        session = await client.new(str(tmp_path))
        assert await client.prompt(session, "say Hello there") == "end_turn"
        assert client.said() == "Hello there"
    async with wrapping(tmp_path, *habits(version)) as wrapped:
        client = await wrapped.client(version)
        await client.load(session, str(tmp_path))
        assert client.said() == "Hello there"
        assert client.said("user_message") == "say Hello there"
