"""What a wrapped agent and we both say of a session is told to clients once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from app.tests.support.wrapping import wrapping

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.requirement("D2", "G4")
@pytest.mark.parametrize("habits", [(), ("has config options",), ("v2",), ("tells its options",)])
async def test_a_mode_that_is_set_is_told_once_to_every_client(tmp_path: Path, habits: tuple[str, ...]) -> None:
    async with wrapping(tmp_path, *habits) as wrapped:
        setting, watching = await wrapped.client(1), await wrapped.client(2)
        session = await setting.new(str(tmp_path))
        await watching.load(session, str(tmp_path))
        for mode in ("code", "ask", "code"):
            setting.forget()
            watching.forget()
            params = {"sessionId": session, "configId": "mode", "value": mode}
            await setting.ask("session/set_config_option", params)
            await setting.prompt(session, "say something")  # what would be told twice is told before this
            for client in (setting, watching):
                await client.until(lambda client=client: "something" in client.said())
                told = client.updates("config_option_update")
                assert [it["configOptions"][0]["currentValue"] for it in told] == [mode]


@pytest.mark.requirement("D6", "G4")
async def test_a_mode_that_the_agent_changes_is_told_once(tmp_path: Path) -> None:
    async with wrapping(tmp_path) as wrapped:
        client = await wrapped.client(2)
        session = await client.new(str(tmp_path))
        for mode in ("code", "code", "ask"):
            await client.prompt(session, f"change {mode}")
        await client.prompt(session, "say something")
        told = client.updates("config_option_update")
        assert [it["configOptions"][0]["currentValue"] for it in told] == ["code", "ask"]


@pytest.mark.requirement("B17")
async def test_a_title_that_the_agent_gives_too_is_told_once(tmp_path: Path) -> None:
    async with wrapping(tmp_path, "titles itself") as wrapped:  # as a Holdfast behind this one does
        setting, watching = await wrapped.client(1), await wrapped.client(2)
        session = await setting.new(str(tmp_path))
        await watching.load(session, str(tmp_path))
        setting.forget()
        watching.forget()
        await setting.prompt(session, "say something")
        about = {"sessionUpdate": "session_info_update", "title": "say something", "_meta": {"colour": "red"}}
        await setting.prompt(session, f"raw {json.dumps(about)}")
        await setting.prompt(session, "title Birds")
        for client in (setting, watching):
            await client.until(lambda client=client: "Birds" in str(client.updates("session_info_update")))
            told = client.updates("session_info_update")
            assert [it["title"] for it in told if "title" in it] == ["say something", "Birds"]
            assert {"colour": "red"} in [it.get("_meta") for it in told]
