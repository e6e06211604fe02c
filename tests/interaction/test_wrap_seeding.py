"""What an agent that has forgotten a conversation is told again, as real agents take it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.support.wrapping import wrapping

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.requirement("G6", "P11")
async def test_an_agent_whose_model_hears_only_the_names_of_files_is_told_as_text(tmp_path: Path) -> None:
    async with wrapping(tmp_path, "names files", "keeps nothing") as wrapped:
        client = await wrapped.client(1)
        session = await client.new(str(tmp_path))
        await client.prompt(session, "remember heron")
    async with wrapping(tmp_path, "names files", "keeps nothing") as wrapped:
        client = await wrapped.client(1)
        await client.load(session, str(tmp_path))
        client.forget()
        await client.prompt(session, "recall")
        assert client.said().endswith("heron")


@pytest.mark.requirement("G6")
@pytest.mark.parametrize("habits", [("joins blocks",), ("joins blocks", "no resources")])
async def test_the_users_words_stay_apart_where_an_agent_joins_the_blocks_of_a_prompt(
    tmp_path: Path, habits: tuple[str, ...]
) -> None:
    async with wrapping(tmp_path, *habits, "keeps nothing") as wrapped:
        client = await wrapped.client(1)
        session = await client.new(str(tmp_path))
        await client.prompt(session, "remember heron")
    async with wrapping(tmp_path, *habits, "keeps nothing") as wrapped:
        client = await wrapped.client(1)
        await client.load(session, str(tmp_path))
        client.forget()
        await client.prompt(session, "recall")
        assert client.said().endswith("heron")


@pytest.mark.requirement("G6", "B17")
@pytest.mark.parametrize("habits", [(), ("no resources",)])
async def test_an_agent_that_was_told_again_does_not_make_its_title_of_that(
    tmp_path: Path, habits: tuple[str, ...]
) -> None:
    habits = ("titles itself", "keeps nothing", *habits)
    async with wrapping(tmp_path, *habits) as wrapped:
        client = await wrapped.client(1)
        session = await client.new(str(tmp_path))
        await client.prompt(session, "remember heron")
        await client.prompt(session, "title Birds")  # where nothing was lost, the agent's title is the session's
    for _ in range(2):
        async with wrapping(tmp_path, *habits) as wrapped:
            client = await wrapped.client(1)
            await client.load(session, str(tmp_path))
            client.forget()
            await client.prompt(session, "recall")
            assert client.said().endswith("heron")
            assert [it for it in client.updates("session_info_update") if "title" in it] == []
            assert [it["title"] for it in (await client.ask("session/list", {}))["sessions"]] == ["Birds"]
