"""What is public: the line that `docs/versioning.md` draws."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import holdfast
import holdfast.agent
import holdfast.client
from core.tests.support.schemas import ROOT
from holdfast import errors

if TYPE_CHECKING:
    from types import ModuleType

EXPORTS = {
    "holdfast": {
        *(
            "Agent",
            "ClientSession",
            "ClientTurn",
            "Connection",
            "HoldfastError",
            "Session",
            "ToolCall",
            "Turn",
            "asgi",
            "connect",
        ),
    },
    "holdfast.agent": {"Agent", "BackgroundTerminal", "Message", "Session", "ToolCall", "Turn"},
    "holdfast.client": {
        *("AgentInfo", "ClientSession", "ClientTurn", "Connection", "ListedSession", "SessionHistory", "SessionUpdate"),
        *("UpdateStream", "connect"),
    },
    "holdfast.testing": {
        *("Clock", "RunningTurn", "ScriptedClient", "ToolCallSeen", "TurnResult", "assert_valid_wire", "connect_to"),
    },
}

MEMBERS = {
    "Connection": {
        *(
            "agent",
            "auth_methods",
            "authenticate",
            "can",
            "capabilities",
            "delete",
            "fork",
            "load",
            "logout",
            "new_session",
            "notify",
        ),
        *("protocol", "request", "resume", "sessions"),
    },
    "ClientSession": {
        *(
            "additional",
            "ask_text",
            "background",
            "cancel",
            "close",
            "closed",
            "commands",
            "cwd",
            "fork",
            "history",
            "id",
            "mode",
            "model",
        ),
        *(
            "models",
            "modes",
            "options",
            "prompt",
            "running",
            "set",
            "stop_background",
            "title",
            "updates",
            "usage",
        ),
    },
    "ClientTurn": {"stop_reason"},
}


@pytest.mark.parametrize("name", EXPORTS)
def test_a_module_exports_what_is_written_down_and_shows_nothing_else(name: str) -> None:
    module: ModuleType = importlib.import_module(name)
    assert set(module.__all__) == EXPORTS[name]
    for export in module.__all__:
        assert getattr(module, export) is not None
    page = (ROOT / "docs" / "versioning.md").read_text()
    if name != "holdfast.testing":
        assert all(f"`{export}`" in page for export in EXPORTS[name])


def test_lazy_names_are_listed_before_they_are_loaded() -> None:
    program = "import holdfast, holdfast.testing; print(sorted(dir(holdfast)), sorted(dir(holdfast.testing)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"{sorted(EXPORTS['holdfast'])} {sorted(EXPORTS['holdfast.testing'])}"
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = holdfast.nothing  # pyright: ignore[reportAttributeAccessIssue]


def test_public_names_say_where_they_are_imported_from() -> None:
    for name in EXPORTS["holdfast"] - {"HoldfastError", "asgi"}:
        assert getattr(holdfast, name).__module__ == "holdfast"
    for module in (holdfast.agent, holdfast.client):
        for name in EXPORTS[module.__name__] - EXPORTS["holdfast"]:
            assert getattr(module, name).__module__ == module.__name__


def test_every_exception_is_public_and_in_the_tree() -> None:
    known = {name for name, value in vars(errors).items() if inspect.isclass(value) and issubclass(value, Exception)}
    drawn = set(re.findall(r"[├└]── (\w+)", errors.__doc__ or "")) | {"HoldfastError"}
    assert known == drawn


@pytest.mark.parametrize("name", MEMBERS)
async def test_a_public_class_has_no_inner_methods(name: str) -> None:
    agent = holdfast.Agent("any")

    @agent.prompt
    async def answer(turn: holdfast.Turn) -> None:
        await turn.say("Hello")

    async with holdfast.connect(agent) as connection:
        session = await connection.new_session()
        objects = {"Connection": connection, "ClientSession": session, "ClientTurn": session.prompt("Hi")}
        public = {member for member in dir(objects[name]) if not member.startswith("_")}
    assert public == MEMBERS[name]
