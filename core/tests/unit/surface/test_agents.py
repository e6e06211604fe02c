"""What agents say of themselves, and how they are asked, in the words of each version."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.model.agents import AgentDescription, AuthMethod
from holdfast.surface.v1 import initialize as initialize1
from holdfast.surface.v1.agent import RemoteAgent as Agent1
from holdfast.surface.v2 import initialize as initialize2
from holdfast.surface.v2.agent import RemoteAgent as Agent2

SERVERS: list[dict[str, Any]] = [
    {"name": "plain", "command": "x"},
    {"type": "stdio", "name": "typed", "command": "x", "args": ["-y"]},
    {"type": "http", "name": "far", "url": "http://x", "headers": []},
]
ROOTS: dict[str, Any] = {"cwd": "/w", "mcpServers": SERVERS}


@pytest.mark.requirement("B2", "E1")
def test_servers_have_a_type_in_version_2_and_in_version_1_those_that_need_one() -> None:
    assert Agent1({}).new(ROOTS)[1]["mcpServers"] == [
        {"name": "plain", "command": "x", "args": [], "env": []},
        {"name": "typed", "command": "x", "args": ["-y"], "env": []},
        SERVERS[2],
    ]
    assert Agent2({}).new(ROOTS)[1]["mcpServers"] == [{"type": "stdio", **SERVERS[0]}, SERVERS[1], SERVERS[2]]


def test_what_an_agent_does_not_say_it_cannot_do() -> None:
    nonsense: dict[str, Any] = {"agentCapabilities": None, "capabilities": 7, "authMethods": "none", "agentInfo": []}
    for answer in ({}, nonsense):
        for agent in (Agent1(answer), Agent2(answer)):
            assert not any(map(agent.can, ("load", "resume", "list", "fork", "close", "delete", "image", "")))
            assert (agent.name, agent.release, agent.title, agent.auth_methods) == ("", "", None, ())


def test_what_it_says_it_can() -> None:
    session: dict[str, Any] = {"fork": {}, "delete": None, "list": False}
    agent: Agent1 | Agent2 = Agent1(
        {"agentCapabilities": {"sessionCapabilities": session, "promptCapabilities": {"image": True}}}
    )
    able = [it for it in ("load", "resume", "list", "fork", "close", "delete", "image", "audio") if agent.can(it)]
    assert able == ["fork", "image"]
    agent = Agent2({"capabilities": {"session": {"fork": {}, "delete": None, "prompt": {"image": {}}}}})
    able = [it for it in ("load", "resume", "list", "fork", "close", "delete", "image", "audio") if agent.can(it)]
    assert able == ["load", "resume", "list", "fork", "close", "image"]


def test_a_logout_is_offered_by_a_capability_or_with_the_logins() -> None:
    assert Agent1({"agentCapabilities": {"auth": {"logout": {}}}}).can("logout")
    assert not Agent1({"agentCapabilities": {"auth": {"logout": None}}, "authMethods": [{"id": "k"}]}).can("logout")
    assert Agent2({"authMethods": [{"methodId": "k"}]}).can("logout") and not Agent2({}).can("logout")


@pytest.mark.requirement("B8", "B9")
def test_a_session_is_loaded_as_its_agent_has_it() -> None:
    assert Agent1({}).load("s", ROOTS)[0] == "session/load"
    method, params = Agent2({"capabilities": {"session": {}}}).load("s", ROOTS)
    assert (method, params["replayFrom"]) == ("session/resume", {"type": "start"})
    assert "replayFrom" not in Agent2({"capabilities": {"session": {}}}).resume("s", ROOTS)[1]
    assert Agent2({"capabilities": {"session": {"load": {}}}}).load("s", ROOTS)[0] == "session/load"


@pytest.mark.requirement("C12")
def test_ways_to_log_in_have_an_id_in_both() -> None:
    assert Agent1({"authMethods": [{"id": "k", "name": "K"}, 7]}).auth_methods == ({"id": "k", "name": "K"},)
    (method,) = Agent2({"authMethods": [{"type": "agent", "methodId": "k", "name": "K"}]}).auth_methods
    assert method["id"] == "k"


@pytest.mark.requirement("C12", "G1")
def test_the_variables_of_a_login_in_a_terminal_are_a_list_in_version_2_and_a_map_in_version_1() -> None:
    way = {"name": "K", "type": "terminal", "args": ["--login"]}
    first, second = {"env": {"X": "1"}}, {"env": [{"name": "X", "value": "1"}]}
    (read,) = Agent2({"authMethods": [{"methodId": "k", **way, **second}]}).auth_methods
    assert read["env"] == first["env"]
    (odd,) = Agent2({"authMethods": [{"methodId": "k", "env": [7, {"name": "Y"}, *second["env"]]}]}).auth_methods
    assert odd["env"] == first["env"]
    agent = AgentDescription(name="a", auth_methods=(AuthMethod("k", "K", more={**way, **first}),))
    assert initialize1.result(agent)["authMethods"] == [{"id": "k", **way, **first}]
    assert initialize2.result(agent)["authMethods"] == [{"methodId": "k", **way, **second}]
