"""Questions to the user, services of the editor, logging in (C8, C9, C11, C12)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from core.tests.support.acp import CWD, Client, patiently, serving
from holdfast import Agent, Turn
from holdfast.errors import AuthRequired, OutsideRoots, UsageError
from holdfast.testing.demo_agent import agent as demo

if TYPE_CHECKING:
    from pathlib import Path

VERSIONS = pytest.mark.parametrize("version", [1, 2])

KINDS = ["allow_once", "allow_always", "reject_once", "reject_always"]
FORMS: dict[str, Any] = {"elicitation": {"form": {}}}
EVERYTHING = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True}


@pytest.mark.requirement("C8")
@VERSIONS
async def test_a_permission_question_offers_four_answers_about_a_tool_call(version: int) -> None:
    async with serving(demo) as host:
        client = await host.client(version)
        session = await client.new()
        client.begin_prompt(session, "/ask")
        asked = await client.question()
        assert asked.method == "session/request_permission"
        assert asked.params["sessionId"] == session
        assert [it["kind"] for it in asked.params["options"]] == KINDS
        call = asked.params["toolCall"] if version == 1 else asked.params["subject"]["toolCall"]
        (shown,) = {it["toolCallId"] for it in client.updates("tool_call", "tool_call_update")}
        assert call["toolCallId"] == shown
        assert call["title"] == "Launch the rocket"  # that of the call stays: clients merge it
        if version == 1:
            assert call["content"][0]["content"]["text"] == "May I launch the rocket?"
            assert asked.params["_meta"] == {"holdfast/question": "May I launch the rocket?"}
        else:
            assert asked.params["title"] == "May I launch the rocket?"
        assert call["kind"] == "execute" and call["status"]
        asked.select("allow_once")
        await client.until(lambda: client.said() == "That was that.")


@pytest.mark.requirement("C8")
@VERSIONS
@pytest.mark.parametrize(
    ("answer", "approved"),
    [
        ({"outcome": {"outcome": "selected", "optionId": "allow_once"}}, True),
        ({"outcome": {"outcome": "selected", "optionId": "allow_always"}}, True),
        ({"outcome": {"outcome": "selected", "optionId": "reject_once"}}, False),
        ({"outcome": {"outcome": "selected", "optionId": "reject_always"}}, False),
        ({"outcome": {"outcome": "selected", "optionId": "allow"}}, False),
        ({"outcome": {"outcome": "selected"}}, False),
        ({"outcome": {"outcome": "selected", "optionId": True}}, False),
        ({"outcome": {"outcome": "cancelled", "optionId": "allow_once"}}, False),
        ({"outcome": {"outcome": "allow_once"}}, False),
        ({"outcome": "allow_once"}, False),
        ({"optionId": "allow_once"}, False),
        ({}, False),
        (None, False),
        (True, False),
        ("allow_once", False),
        ([], False),
    ],
)
async def test_only_the_selection_of_an_offered_answer_that_allows_is_approval(
    version: int, answer: Any, approved: bool
) -> None:
    async with serving(demo) as host:
        client = await host.client(version)
        client.answers["session/request_permission"] = lambda _: answer
        assert await client.prompt(await client.new(), "/ask") == "end_turn"
        assert call_status(client) == ("completed" if approved else "failed")


@pytest.mark.requirement("C8")
@VERSIONS
async def test_an_error_a_departure_and_a_late_second_answer_are_no_approval(version: int) -> None:
    async with serving(demo) as host:
        client, watcher = await host.client(version), await host.client(version)
        session = await client.new()
        client.begin_prompt(session, "/ask")
        asked = await client.question()
        asked.refuse(-32601)
        asked.select("allow_once")  # nobody waits for it any more
        await client.until(lambda: client.said() == "That was that.")
        assert call_status(client) == "failed"
        await watcher.resume(session)
        client.begin_prompt(session, "/ask")
        await client.question(2)
        await watcher.question()
        await host.disconnect(client)
        await host.disconnect(watcher)
        last = await host.client(2)
        await last.resume(session, replayFrom={"type": "start"})
        assert last.states() == ["requires_action"]  # it waits for somebody who answers (F5)
        last.tell("session/cancel", {"sessionId": session})
        await last.until(lambda: last.states()[-1] == "cancelled")
        statuses = [it["status"] for it in last.updates("tool_call_update") if "status" in it]
        assert "completed" not in statuses


@pytest.mark.requirement("C8")
@VERSIONS
async def test_a_question_the_agent_waits_for_no_longer_is_withdrawn_and_not_approved(version: int) -> None:
    agent, patience = Agent("impatient"), asyncio.timeout(None)

    @agent.prompt
    async def answer(turn: Turn) -> None:
        try:
            async with patience:
                await turn.say(f"{await turn.allow('May I?')}")
        except TimeoutError:
            await turn.say("no answer")

    async with serving(agent) as host:
        client = await host.client(version)
        session = await client.new()
        prompted = client.begin_prompt(session, "go")
        await client.question()
        patience.reschedule(0)
        await patiently(prompted)
        await client.until(lambda: client.said() == "no answer")
        await client.until(lambda: client.asked[0].withdrawn)


@pytest.mark.requirement("C8")
@VERSIONS
@pytest.mark.parametrize(("option", "status"), [("allow_always", "completed"), ("reject_always", "failed")])
async def test_an_answer_for_ever_is_remembered_for_the_session_and_for_no_other(
    version: int, option: str, status: str, place: Path
) -> None:
    async with serving(demo, place) as host:
        client = await host.client(version)
        session = await client.new()
        client.answers["session/request_permission"] = lambda _: selected(option)
        await client.prompt(session, "/ask")
    async with serving(demo, place) as host:
        client = await host.client(version)
        await client.resume(session)
        await client.prompt(session, "/ask")
        assert client.asked == []
        assert call_status(client) == status
        client.begin_prompt(await client.new(), "/ask")
        (await client.question()).select("allow_once")


@pytest.mark.requirement("C8", "B12")
@pytest.mark.parametrize("other", [1, 2])
@VERSIONS
async def test_everybody_who_watches_is_asked_and_the_first_answer_counts(version: int, other: int) -> None:
    async with serving(demo) as host:
        one, two = await host.client(version), await host.client(other)
        session = await one.new()
        await two.resume(session)
        one.begin_prompt(session, "/ask")
        first, second = await one.question(), await two.question()
        second.select("allow_once")
        await one.until(lambda: one.said() == "That was that.")
        await one.until(lambda: first.withdrawn)
        first.select("reject_once")
        await one.settle()
        assert call_status(one) == call_status(two) == "completed"


@pytest.mark.requirement("C9")
@VERSIONS
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"action": "accept", "content": {"name": "Ann"}}, "Hello, Ann."),
        ({"action": "accept", "content": {"name": "Ann", "age": 30, "size": "M"}}, "Hello, Ann."),
        ({"action": "accept", "content": {"name": "Ann", "age": None}}, "Hello, Ann."),
        ({"action": "accept", "content": {"name": 5}}, "You did not say."),
        ({"action": "accept", "content": {"age": 30}}, "You did not say."),
        ({"action": "accept", "content": {"name": "Ann", "age": -1}}, "You did not say."),
        ({"action": "accept", "content": {"name": "Ann", "size": "XL"}}, "You did not say."),
        ({"action": "accept"}, "You did not say."),
        ({"action": "decline"}, "You did not say."),
        ({"action": "cancel"}, "You did not say."),
        ({"action": "maybe", "content": {"name": "Ann"}}, "You did not say."),
        ({}, "You did not say."),
        (None, "You did not say."),
    ],
)
async def test_a_form_is_accepted_declined_or_cancelled(version: int, answer: Any, said: str) -> None:
    forms: list[Any] = []
    async with serving(demo) as host:
        client = await host.client(version, **FORMS)
        client.answers["elicitation/create"] = lambda params: (forms.append(params), answer)[1]
        session = await client.new()
        assert await client.prompt(session, "/form") == "end_turn"
        assert client.said() == said
    (form,) = forms
    assert form["sessionId"] == session
    assert form["mode"] == "form"
    assert form["message"] == "Who are you?"
    assert form["requestedSchema"]["required"] == ["name"]


@pytest.mark.requirement("C9")
@VERSIONS
@pytest.mark.parametrize(
    ("capabilities", "modes"),
    [
        ({}, []),
        ({"elicitation": None}, []),
        ({"elicitation": {}}, []),
        ({"elicitation": {"form": None, "url": {}}}, ["url"]),
        ({"elicitation": {"form": {}}}, ["form"]),
        ({"elicitation": {"form": {}, "url": {}}}, ["form", "url"]),
    ],
)
async def test_a_client_is_asked_only_in_the_ways_it_said_it_knows(
    version: int, capabilities: dict[str, Any], modes: list[str]
) -> None:
    agent = Agent("asking")

    @agent.prompt
    async def answer(turn: Turn) -> None:
        filled = await turn.ask("Who?", {"name": {"type": "string"}})
        went = await turn.ask_url("Go there", "https://example.com")
        await turn.say(f"{filled} {went}")

    async with serving(agent) as host:
        client = await host.client(version, **capabilities)
        asked: list[str] = []
        accept = {"action": "accept", "content": {"name": "Ann"}}
        client.answers["elicitation/create"] = lambda params: (asked.append(params["mode"]), accept)[1]
        assert await client.prompt(await client.new(), "go") == "end_turn"
        assert asked == modes
        assert client.said() == f"{ {'name': 'Ann'} if 'form' in modes else None } {'url' in modes}"


@pytest.mark.requirement("C9")
async def test_a_form_is_shown_by_the_client_that_can_although_another_that_cannot_watches_too() -> None:
    async with serving(demo) as host:
        cannot, can = await host.client(1), await host.client(2, **FORMS)
        session = await cannot.new()
        await can.resume(session)
        answer = cannot.begin_prompt(session, "/form")
        (await can.question()).answer({"action": "accept", "content": {"name": "Ann"}})
        await patiently(answer)
        assert cannot.said() == "Hello, Ann."


# What an editor does for the agent

NOTHING: set[str] = set()


@pytest.mark.requirement("C11")
@pytest.mark.parametrize(
    ("version", "capabilities", "offers"),
    [
        (1, {}, NOTHING),
        (1, {"fs": {"readTextFile": False}, "terminal": False}, NOTHING),
        (1, {"fs": {"readTextFile": True}}, {"read"}),
        (1, {"fs": {"writeTextFile": True}}, {"write"}),
        (1, {"terminal": True}, {"terminal"}),
        (1, EVERYTHING, {"read", "write", "terminal"}),
        (2, EVERYTHING, NOTHING),
    ],
)
async def test_what_the_editor_does_is_offered_to_the_agent_as_the_editor_said(
    version: int, capabilities: dict[str, Any], offers: set[str]
) -> None:
    agent = Agent("looking")
    found: list[set[str] | None] = []

    @agent.prompt
    async def answer(turn: Turn) -> None:
        found.append(None if turn.client is None else set(turn.client.offers))

    async with serving(agent) as host:
        client = await host.client(version, **capabilities)
        await client.prompt(await client.new(), "go")
    assert found == [offers]


@pytest.mark.requirement("C11")
async def test_an_editor_is_never_asked_for_what_it_does_not_do() -> None:
    agent, refused = Agent("asking too much"), list[str]()

    @agent.prompt
    async def answer(turn: Turn) -> None:
        editor = turn.client
        assert editor is not None
        for attempt in (editor.write_text("a.txt", ""), editor.run("ls")):
            try:
                await attempt
            except UsageError as e:
                refused.append(str(e))

    async with serving(agent) as host:
        client = await host.client(1, fs={"readTextFile": True})
        assert await client.prompt(await client.new(), "go") == "end_turn"
        assert client.asked == []
    assert len(refused) == 2


@pytest.mark.requirement("C11")
async def test_files_and_terminals_of_the_editor_are_used_inside_the_roots_only(tmp_path: Path) -> None:
    agent = Agent("using")
    refused: list[str] = []

    @agent.prompt
    async def answer(turn: Turn) -> None:
        editor = turn.client
        assert editor is not None
        await turn.say(await editor.read_text("a.txt", line=2, limit=1))
        await editor.write_text(f"{turn.session.cwd}/b.txt", "new")
        await turn.say(str(await editor.run("make", "test")))
        for path in ("/etc/passwd", "../x", "a/../../x"):
            for attempt in (editor.read_text(path), editor.write_text(path, ""), editor.run("ls", cwd=path)):
                try:
                    await attempt
                except OutsideRoots:
                    refused.append(path)

    async with serving(agent) as host:
        client = await host.client(1, **EVERYTHING)
        calls: list[tuple[str, dict[str, Any]]] = []
        answers: dict[str, Any] = {
            "fs/read_text_file": {"content": "unsaved"},
            "fs/write_text_file": {},
            "terminal/create": {"terminalId": "t1"},
            "terminal/wait_for_exit": {"exitCode": 0, "signal": None},
            "terminal/output": {"output": "ok", "truncated": False},
            "terminal/release": {},
        }
        for method, result in answers.items():
            client.answers[method] = lambda params, m=method, r=result: (calls.append((m, params)), r)[1]
        cwd = str(tmp_path)
        session = await client.new(cwd)
        assert await client.prompt(session, "go") == "end_turn"
        assert client.said() == "unsaved(0, 'ok')"
    assert [method for method, _ in calls] == list(answers)
    assert all(params["sessionId"] == session for _, params in calls)
    assert calls[0][1] == {"sessionId": session, "path": f"{cwd}/a.txt", "line": 2, "limit": 1}
    assert calls[1][1] == {"sessionId": session, "path": f"{cwd}/b.txt", "content": "new"}
    assert calls[2][1]["command"] == "make" and calls[2][1]["args"] == ["test"] and calls[2][1]["cwd"] == cwd
    assert len(refused) == 9


@pytest.mark.requirement("C11")
async def test_what_was_said_before_the_editor_is_asked_for_a_file_is_shown_before(tmp_path: Path) -> None:
    agent = Agent("using")

    @agent.prompt
    async def answer(turn: Turn) -> None:
        assert turn.client is not None
        for n in range(3):
            await turn.say(f"{n}")
            await turn.client.read_text("a.txt")

    async with serving(agent) as host:
        client = await host.client(1, **EVERYTHING)
        shown: list[str] = []

        def note(_: dict[str, Any]) -> dict[str, Any]:
            shown.append(client.said())
            return {"content": ""}

        client.answers["fs/read_text_file"] = note
        assert await client.prompt(await client.new(str(tmp_path)), "go") == "end_turn"
        assert shown == ["0", "01", "012"]


# Logging in


@pytest.mark.requirement("C12")
@VERSIONS
async def test_an_agent_that_demands_it_does_nothing_before_one_has_logged_in(version: int) -> None:
    login, logout = ("authenticate", "logout") if version == 1 else ("auth/login", "auth/logout")
    async with serving(guarded_agent()) as host:
        client = host.connect(version)
        methods = (await client.initialize())["authMethods"]
        ids = [it["id" if version == 1 else "methodId"] for it in methods]
        assert ids == ["key", "broken"]
        assert methods[0]["name"] == "API key" and methods[0]["description"] == "From the shop"
        await demands_login(client, "session/new", {"cwd": CWD, "mcpServers": []})
        assert (await client.refusal(login, {"methodId": "unheard of"})).code == -32602
        broken = await client.refusal(login, {"methodId": "broken"})
        assert broken.code == -32000
        await demands_login(client, "session/new", {"cwd": CWD, "mcpServers": []})
        assert await client.ask(login, {"methodId": "key"}) == {}
        session = await client.new()
        assert await client.prompt(session, "hello") == "end_turn"
        assert await client.ask(logout, {}) == {}
        for method in ("session/load", "session/resume", "session/fork", "session/prompt"):
            params = {"sessionId": session, "cwd": CWD, "prompt": [{"type": "text", "text": "x"}]}
            await demands_login(client, method, params)


@pytest.mark.requirement("C12")
@VERSIONS
async def test_the_methods_of_the_other_version_are_unknown(version: int) -> None:
    other = ["auth/login", "auth/logout"] if version == 1 else ["authenticate", "logout", "session/set_mode"]
    async with serving(guarded_agent()) as host:
        client = await host.client(version)
        for method in other:
            assert (await client.refusal(method, {"methodId": "key"})).code == -32601


async def demands_login(client: Client, method: str, params: object) -> None:
    refused = await client.refusal(method, params)
    assert refused.code == -32000, (method, refused)


def guarded_agent() -> Agent:
    agent = Agent("guarded")

    @agent.auth("key", name="API key", description="From the shop")
    async def login() -> None: ...

    @agent.auth("broken", name="Broken")
    async def refuse() -> None:
        raise AuthRequired("The shop is closed")

    @agent.prompt
    async def answer(turn: Turn) -> None: ...

    return agent


def selected(option: str) -> dict[str, Any]:
    return {"outcome": {"outcome": "selected", "optionId": option}}


def call_status(client: Client) -> str:
    """What became of the last tool call."""
    return [it["status"] for it in client.updates("tool_call", "tool_call_update") if "status" in it][-1]
