"""What a wrapped agent says while its session is brought back is no part of the conversation."""

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


@pytest.mark.requirement("G4", "G5")
@pytest.mark.parametrize("habit", ["warns on resume", "warns behind resume"])
async def test_a_warning_on_a_resume_is_no_replay_and_no_part_of_the_history(
    tmp_path: Path, version: int, habit: str
) -> None:
    async with wrapping(tmp_path, *habits(version)) as wrapped:
        client = await wrapped.client(version)
        session = await client.new(str(tmp_path))
        await client.prompt(session, "remember heron")
    for _ in range(2):
        async with wrapping(tmp_path, *habits(version, habit)) as wrapped:
            client = await wrapped.client(version)
            await client.load(session, str(tmp_path))
            client.forget()
            await client.prompt(session, "recall")
            assert client.said() == "heron"
            await client.prompt(session, "seeds")
            assert client.said() == "heron0"
            client.forget()
            await client.load(session, str(tmp_path))
            assert "Warning" not in client.said()


@pytest.mark.requirement("G4")
async def test_what_the_agent_can_do_now_is_taken_from_a_resume_that_shows_no_past(
    tmp_path: Path, version: int
) -> None:
    async with wrapping(tmp_path, *habits(version)) as wrapped:
        client = await wrapped.client(version)
        session = await client.new(str(tmp_path))
        await client.prompt(session, "say hello")
    async with wrapping(tmp_path, *habits(version, "warns on resume")) as wrapped:
        client = await wrapped.client(version)
        await client.load(session, str(tmp_path))
        await client.prompt(session, "say more")
        told = client.updates("available_commands_update")[-1]
        assert [command["name"] for command in told["availableCommands"]] == ["resumed"]


@pytest.mark.requirement("G4")
@pytest.mark.parametrize("others", [(), ("keeps nothing",), ("no resume",)])
async def test_what_the_agent_says_of_its_mode_being_set_again_is_not_stored(
    tmp_path: Path, others: tuple[str, ...]
) -> None:
    async with wrapping(tmp_path, "speaks of its mode", *others) as wrapped:
        client = await wrapped.client(1)
        session = await client.new(str(tmp_path))
        await client.prompt(session, "say hello")
        await client.ask("session/set_mode", {"sessionId": session, "modeId": "code"})
        await client.until(lambda: "[MODE_UPDATE] code" in client.said())
    for _ in range(2):
        async with wrapping(tmp_path, "speaks of its mode", *others) as wrapped:
            client = await wrapped.client(1)
            await client.load(session, str(tmp_path))
            assert client.said().count("MODE_UPDATE") == 1  # that of the user's own change
            client.forget()
            await client.prompt(session, "mode")
            assert client.said().endswith("code")
            assert "MODE_UPDATE" not in client.said()
