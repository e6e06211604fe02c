"""A Holdfast behind `--`: on the same store it is recognised and refused, on another one it is an agent like others."""

from __future__ import annotations

import os
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from app.tests.support.wrapping import agent_command
from core.tests.support.acp import Client, Refused
from holdfast.transport import spawn

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

HOLDFAST = (sys.executable, "-m", "holdfast")


def wrap(store: str, *command: str) -> tuple[str, ...]:
    return (*HOLDFAST, "wrap", "--store", store, "--", *command)


@asynccontextmanager
async def client_of(tmp_path: Path, command: tuple[str, ...], version: int) -> AsyncGenerator[Client]:
    """Start a command; yield a client that has said nothing yet."""
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    transport = await spawn(*command, env={**os.environ, "AGENT_HOME": str(home)}, patience=20.0)
    try:
        yield Client(transport, version)
    finally:
        await transport.close(0.1)


async def refusal_of(tmp_path: Path, command: tuple[str, ...], version: int) -> str:
    async with client_of(tmp_path, command, version) as client:
        with pytest.raises(Refused) as refused:
            await client.initialize()
    return refused.value.message


@pytest.mark.requirement("G1", "P11")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_wrap_in_a_wrap_on_one_store_is_refused_with_what_to_do(tmp_path: Path, version: int) -> None:
    store = str(tmp_path / "sessions.db")
    linked = tmp_path / "linked"
    linked.symlink_to(tmp_path, target_is_directory=True)
    same = wrap(store, *wrap(f"sqlite:///{linked}/sessions.db", *agent_command()))
    said = await refusal_of(tmp_path, same, version)
    assert "same store" in said
    assert "--store" in said


@pytest.mark.requirement("G1")
async def test_an_agent_of_ours_behind_a_wrap_on_its_store_is_refused_too(tmp_path: Path) -> None:
    store = str(tmp_path / "sessions.db")
    command = wrap(store, *HOLDFAST, "run", "demo", "--store", store)
    assert "same store" in await refusal_of(tmp_path, command, 1)


@pytest.mark.requirement("G1")
async def test_a_store_that_comes_again_behind_another_one_is_recognised(tmp_path: Path) -> None:
    outer, between = str(tmp_path / "sessions.db"), str(tmp_path / "between.db")
    command = wrap(outer, *wrap(between, *wrap(outer, *agent_command())))
    assert "same store" in await refusal_of(tmp_path, command, 1)


@pytest.mark.requirement("G1", "G3")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_holdfast_on_another_store_is_wrapped_like_any_agent(tmp_path: Path, version: int) -> None:
    command = wrap(str(tmp_path / "sessions.db"), *wrap(str(tmp_path / "other.db"), *agent_command()))
    async with client_of(tmp_path, command, version) as client:
        await client.initialize()
        session = await client.new(str(tmp_path))
        await client.prompt(session, "say the heron is back")
        assert "the heron is back" in client.said()
