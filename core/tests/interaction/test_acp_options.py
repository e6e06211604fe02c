"""Modes, models and options, in both versions (D)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from core.tests.support.acp import CWD, Client, Gates, Update, patiently, serving
from holdfast import Agent, Session, Turn
from holdfast.errors import UsageError
from holdfast.testing.demo_agent import agent as demo

if TYPE_CHECKING:
    from pathlib import Path

VERSIONS = pytest.mark.parametrize("version", [1, 2])

SWITCHES: dict[str, Any] = {"session": {"configOptions": {"boolean": {}}}}
DEFAULTS = {"mode": "ask", "model": "small", "verbose": False, "tone": "plain"}


@pytest.mark.requirement("D1", "D5")
@VERSIONS
async def test_options_are_told_in_order_with_all_they_have(version: int) -> None:
    key, group = ("id", "group") if version == 1 else ("configId", "groupId")
    async with serving(demo) as host:
        client = await host.client(version, **SWITCHES)
        options = (await client.ask("session/new", {"cwd": CWD, "mcpServers": []}))["configOptions"]
    assert options == [
        {
            key: "mode",
            "name": "Mode",
            "type": "select",
            "category": "mode",
            "currentValue": "ask",
            "options": [
                {"value": "ask", "name": "Ask", "description": "Asks before it does anything"},
                {"value": "auto", "name": "Auto", "description": "Does what it likes"},
            ],
        },
        {
            key: "model",
            "name": "Model",
            "type": "select",
            "category": "model",
            "currentValue": "small",
            "options": [{"value": "small", "name": "Small"}, {"value": "large", "name": "Large"}],
        },
        {
            key: "verbose",
            "name": "Verbose",
            "type": "boolean",
            "currentValue": False,
            "description": "Say more than needed",
        },
        {
            key: "tone",
            "name": "Tone",
            "type": "select",
            "currentValue": "plain",
            "options": [
                {
                    group: "Serious",
                    "name": "Serious",
                    "options": [{"value": "plain", "name": "Plain"}, {"value": "formal", "name": "Formal"}],
                },
                {group: "Fun", "name": "Fun", "options": [{"value": "pirate", "name": "Pirate"}]},
            ],
        },
    ]


@pytest.mark.requirement("D1")
@VERSIONS
async def test_values_come_back_with_load_resume_and_fork_after_a_restart(version: int, place: Path) -> None:
    async with serving(demo, place) as host:
        client = await host.client(version, **SWITCHES)
        session = await client.new()
        for option, value in (("tone", "pirate"), ("verbose", True), ("mode", "auto")):
            await client.ask("session/set_config_option", setting(version, session, option, value))
    expected = {**DEFAULTS, "tone": "pirate", "verbose": True, "mode": "auto"}
    for method in ("session/load", "session/resume", "session/fork"):
        async with serving(demo, place) as host:
            client = await host.client(version, **SWITCHES)
            answer = await client.ask(method, {"sessionId": session, "cwd": CWD, "mcpServers": []})
            if method == "session/load":
                assert values(client.updates("config_option_update")[-1]["configOptions"]) == expected
            else:
                assert values(answer["configOptions"]) == expected


@pytest.mark.requirement("D2")
@VERSIONS
async def test_setting_an_option_answers_with_all_of_them_and_tells_everybody_who_watches(version: int) -> None:
    async with serving(demo) as host:
        client, watcher = await host.client(version, **SWITCHES), await host.client(2)
        session = await client.new()
        await watcher.resume(session)
        answer = await client.ask("session/set_config_option", setting(version, session, "tone", "formal"))
        expected = {**DEFAULTS, "tone": "formal"}
        assert answer.keys() == {"configOptions"}
        assert values(answer["configOptions"]) == expected
        await watcher.until(lambda: watcher.updates("config_option_update"))
        assert values(watcher.updates("config_option_update")[-1]["configOptions"]) == expected


@pytest.mark.requirement("D2")
@VERSIONS
@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("unheard of", "x"),
        ("tone", "shouting"),
        ("tone", "Serious"),
        ("tone", True),
        ("tone", None),
        ("tone", 3),
        ("verbose", "true"),
        ("verbose", "yes"),
        ("mode", ""),
    ],
)
async def test_what_was_not_offered_is_refused_and_changes_nothing(version: int, option: str, value: Any) -> None:
    async with serving(demo) as host:
        client = await host.client(version, **SWITCHES)
        session = await client.new()
        params = {"sessionId": session, "configId": option, "value": value}
        assert (await client.refusal("session/set_config_option", params)).code == -32602
        assert values((await client.resume(session))["configOptions"]) == DEFAULTS
        assert not client.updates("config_option_update")


@pytest.mark.requirement("D2")
@VERSIONS
async def test_the_agent_is_told_may_adjust_others_and_hears_nothing_of_what_stays_as_it_is(version: int) -> None:
    agent, told = Agent("adjusting"), list[tuple[str, Any]]()
    agent.option("speed", name="Speed", values={"fast": "Fast", "slow": "Slow"}, default="slow")
    agent.option("quality", name="Quality", values={"good": "Good", "bad": "Bad"}, default="good")

    @agent.prompt
    async def answer(turn: Turn) -> None: ...

    @agent.on_option
    async def changed(session: Session, option: str, value: str | bool) -> None:
        told.append((option, value))
        await session.set("quality", "bad" if value == "fast" else "good")

    async with serving(agent) as host:
        client = await host.client(version)
        session = await client.new()
        for value, quality in (("fast", "bad"), ("fast", "bad"), ("slow", "good")):
            answer_ = await client.ask("session/set_config_option", setting(version, session, "speed", value))
            assert values(answer_["configOptions"]) == {"speed": value, "quality": quality}
        assert told == [("speed", "fast"), ("speed", "slow")]
        assert len(client.updates("config_option_update")) == 4


@pytest.mark.requirement("D3")
@pytest.mark.parametrize(
    "capabilities",
    [
        {},
        {"session": {}},
        {"session": None},
        {"session": {"configOptions": None}},
        {"session": {"configOptions": {"boolean": None}}},
    ],
)
async def test_version_1_clients_that_do_not_know_switches_never_see_one(capabilities: Update) -> None:
    async with serving(demo) as host:
        client = await host.client(1, **capabilities)
        answer = await client.ask("session/new", {"cwd": CWD, "mcpServers": []})
        session = answer["sessionId"]
        seen = [answer, await client.load(session), await client.resume(session)]
        seen.append(await client.ask("session/set_config_option", setting(1, session, "tone", "formal")))
        seen += client.updates("config_option_update")
        assert len(seen) >= 6
        for it in seen:
            assert [option["id"] for option in it["configOptions"]] == ["mode", "model", "tone"]


@pytest.mark.requirement("D3")
async def test_version_1_is_told_of_no_options_where_there_are_none_for_it() -> None:
    bare, only_switch = Agent("bare"), Agent("switch")
    only_switch.option("loud", name="Loud", default=False)
    for agent in (bare, only_switch):

        @agent.prompt
        async def answer(turn: Turn) -> None: ...

        async with serving(agent) as host:
            client = await host.client(1)
            made = await client.ask("session/new", {"cwd": CWD, "mcpServers": []})
            assert made.keys() == {"sessionId"}
            assert await client.load(made["sessionId"]) == {}
            assert await client.resume(made["sessionId"]) == {}
            assert not client.updates("config_option_update", "current_mode_update")


@pytest.mark.requirement("D4")
async def test_modes_models_and_options_are_three_views_of_one_thing() -> None:
    async with serving(demo) as host:
        client = await host.client(1)
        made = await client.ask("session/new", {"cwd": CWD, "mcpServers": []})
        session = made["sessionId"]
        assert made["modes"] == {
            "currentModeId": "ask",
            "availableModes": [
                {"id": "ask", "name": "Ask", "description": "Asks before it does anything"},
                {"id": "auto", "name": "Auto", "description": "Does what it likes"},
            ],
        }
        assert made["models"]["availableModels"] == [
            {"modelId": "small", "name": "Small"},
            {"modelId": "large", "name": "Large"},
        ]
        assert await client.ask("session/set_mode", {"sessionId": session, "modeId": "auto"}) == {}
        assert await in_step(client, session) == ("auto", "small")
        assert client.updates("current_mode_update")[-1]["currentModeId"] == "auto"
        assert values(client.updates("config_option_update")[-1]["configOptions"])["mode"] == "auto"
        assert await client.ask("session/set_model", {"sessionId": session, "modelId": "large"}) == {}
        assert await in_step(client, session) == ("auto", "large")
        assert values(client.updates("config_option_update")[-1]["configOptions"])["model"] == "large"
        await client.ask("session/set_config_option", setting(1, session, "mode", "ask"))
        await client.ask("session/set_config_option", setting(1, session, "model", "small"))
        assert await in_step(client, session) == ("ask", "small")
        assert client.updates("current_mode_update")[-1]["currentModeId"] == "ask"


@pytest.mark.requirement("D4")
async def test_a_mode_or_model_that_is_not_offered_is_refused() -> None:
    bare = Agent("bare")

    @bare.prompt
    async def answer(turn: Turn) -> None: ...

    for agent in (demo, bare):
        async with serving(agent) as host:
            client = await host.client(1)
            session = await client.new()
            for method, name in (("session/set_mode", "modeId"), ("session/set_model", "modelId")):
                assert (await client.refusal(method, {"sessionId": session, name: "unheard of"})).code == -32602
                assert (await client.refusal(method, {"sessionId": session})).code == -32602
            assert (await client.refusal("session/set_mode", {"sessionId": "x", "modeId": "ask"})).code == -32002


@pytest.mark.requirement("D5")
@pytest.mark.parametrize(
    ("option", "value", "types"), [("tone", "pirate", ["id", None]), ("verbose", True, ["boolean", None])]
)
async def test_version_2_sets_options_with_their_type_and_as_the_early_draft_did_without(
    option: str, value: Any, types: list[str | None]
) -> None:
    for type_ in types:
        async with serving(demo) as host:
            client = await host.client(2)
            session = await client.new()
            params = {"sessionId": session, "configId": option, "value": value}
            if type_ is not None:
                params["type"] = type_
            answer = await client.ask("session/set_config_option", params)
            assert values(answer["configOptions"]) == {**DEFAULTS, option: value}


@pytest.mark.requirement("D6")
@VERSIONS
async def test_what_the_agent_sets_is_told_while_its_turn_runs_and_so_is_what_the_user_sets(version: int) -> None:
    agent, gates = Agent("switching"), Gates()
    agent.modes({"ask": "Ask", "auto": "Auto"}, default="ask")

    @agent.prompt
    async def answer(turn: Turn) -> None:
        await turn.say("one ")
        await turn.session.set("mode", "auto")
        await turn.say("two ")
        await gates.wait()
        await turn.say(turn.session.mode)

    async with serving(agent) as host:
        client = await host.client(version)
        session = await client.new()
        prompted = client.begin_prompt(session, "go")
        await gates.reached()
        await client.until(lambda: client.said() == "one two ")
        kinds = [it["sessionUpdate"] for it in client.updates() if it["sessionUpdate"] != "state_update"]
        between = ["config_option_update"] + (["current_mode_update"] if version == 1 else [])
        assert kinds[-len(between) - 2 :] == ["agent_message_chunk", *between, "agent_message_chunk"]
        assert values(client.updates("config_option_update")[-1]["configOptions"]) == {"mode": "auto"}
        await client.ask("session/set_config_option", setting(version, session, "mode", "ask"))
        gates.open()
        await patiently(prompted)
        await client.until(lambda: client.said() == "one two ask")


def setting(version: int, session: str, option: str, value: str | bool) -> Update:
    params: Update = {"sessionId": session, "configId": option, "value": value}
    if isinstance(value, bool):
        params["type"] = "boolean"
    elif version == 2:
        params["type"] = "id"
    return params


def values(options: list[Update]) -> dict[str, str | bool]:
    return {it.get("id") or it["configId"]: it["currentValue"] for it in options}


async def in_step(client: Client, session: str) -> tuple[str, str]:
    """The mode and the model, which all views agree on."""
    answer = await client.resume(session)
    mode, model = answer["modes"]["currentModeId"], answer["models"]["currentModelId"]
    options = values(answer["configOptions"])
    assert (options["mode"], options["model"]) == (mode, model)
    return mode, model


@pytest.mark.requirement("D1")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_group_of_values_has_an_id_besides_its_name(version: int) -> None:
    agent = Agent("grouped")
    near, far = {"de": "German"}, {"ja": "Japanese"}
    agent.option("tongue", name="Tongue", default="de", values={("near", "Languages"): near, ("far", "Languages"): far})

    @agent.prompt
    async def answer(turn: Turn) -> None:
        await turn.say(str(turn.session.options["tongue"]))

    async with serving(agent) as host:
        client = await host.client(version)
        created = await client.ask("session/new", {"cwd": "/project", "mcpServers": []})
        (option,) = created["configOptions"]
        groups = [(group["group" if version == 1 else "groupId"], group["name"]) for group in option["options"]]
        assert groups == [("near", "Languages"), ("far", "Languages")]


@pytest.mark.parametrize(
    "values",
    [{"a": "A", "More": {"b": "B"}}, {"Empty": {}, "More": {"a": "A"}}, {("x", "One"): {"a": "A"}, "x": {"b": "B"}}],
)
def test_groups_that_are_empty_mixed_or_equal_are_refused(values: Any) -> None:
    with pytest.raises(UsageError):
        Agent("grouped").option("odd", name="Odd", default="a", values=values)
