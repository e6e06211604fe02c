"""Fixtures for pytest: `connect_to`, `agent_clock`, `compare_transcript`. Loaded by pytest itself, in every project.

``async def`` tests that use one of them run by themselves, in a loop of their own, unless another plugin does that
(pytest-asyncio, anyio).
"""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from holdfast.testing.clock import Clock
    from holdfast.testing.scripted_client import ScriptedClient

FIXTURES = frozenset({"agent_clock", "compare_transcript", "connect_to"})
UPDATE = "--update-transcripts"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes transcripts anew."""
    group = parser.getgroup("holdfast")
    group.addoption(UPDATE, action="store_true", help="write the transcripts that compare_transcript compares with")


@pytest.hookimpl
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an ``async def`` test that uses a fixture of ours, if nobody else does."""
    test: Callable[..., Any] = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test) or FIXTURES.isdisjoint(pyfuncitem.fixturenames):
        return None
    asyncio.run(test(**{name: pyfuncitem.funcargs[name] for name in inspect.signature(test).parameters}))
    return True


@pytest.fixture
def connect_to(tmp_path: Path) -> Callable[..., AbstractAsyncContextManager[ScriptedClient]]:
    """Return `holdfast.testing.connect_to`; a session's directory is `tmp_path`, unless the test says otherwise."""
    from holdfast.testing.scripted_client import connect_to as connect  # noqa: PLC0415  (most tests are about others)

    def connecting(agent: Any, **options: Any) -> AbstractAsyncContextManager[ScriptedClient]:
        options.setdefault("cwd", tmp_path)
        return connect(agent, **options)

    return connecting


@pytest.fixture
def agent_clock() -> Generator[Clock]:
    """Return a `Clock` for the event loop of the test."""
    from holdfast.testing.clock import Clock  # noqa: PLC0415

    clock = Clock()
    yield clock
    clock.stop()


@pytest.fixture
def compare_transcript(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Return a function that compares the transcript of a client with the one that is stored beside the test.

    It lies in `transcripts/`, named after the test; ``pytest --update-transcripts`` writes it.
    """

    def compare(client: ScriptedClient, name: str | None = None) -> None:
        test = request.node.name.removeprefix("test_")
        file: Path = request.path.parent / "transcripts" / f"{_file_name(name or test)}.txt"
        seen = client.transcript()
        if request.config.getoption(UPDATE):
            file.parent.mkdir(exist_ok=True)
            file.write_text(seen, encoding="utf-8")
            return
        if not file.is_file():
            pytest.fail(f"there is no {file}; `pytest {UPDATE}` writes it. The transcript is:\n{seen}")
        assert seen == file.read_text(encoding="utf-8"), (
            f"the conversation is not the one of {file}; {UPDATE} writes it"
        )

    return compare


def _file_name(name: str) -> str:
    return "".join(character if character.isalnum() or character in "-_." else "_" for character in name)
