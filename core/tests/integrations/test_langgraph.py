"""What only graphs of LangGraph do: interrupts of their own, state beside the messages, summaries, subgraphs."""

# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import asyncio
from datetime import date
from operator import add
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from langchain_core.messages import AIMessage, RemoveMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import interrupt

from core.tests.support.acp import Refused, patiently, serving
from holdfast.integrations.langgraph import acp_agent, current_turn

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

VERSIONS = pytest.mark.parametrize("version", [1, 2])


class State(MessagesState):
    """Messages, and two things more."""

    count: int
    places: Annotated[list[str], add]


def graph(*nodes: Callable[[Any], Any]) -> Any:
    built: Any = StateGraph(State)
    before = START
    for node in nodes:
        built.add_node(node.__name__, node)
        built.add_edge(before, node.__name__)
        before = node.__name__
    return built.compile()


def says(text: str) -> dict[str, Any]:
    return {"messages": [AIMessage(text)]}


@VERSIONS
@pytest.mark.parametrize("answer", ["allow_once", "reject_once"])
async def test_an_interrupt_with_a_text_is_a_permission_question(version: int, answer: str) -> None:
    def ask(_: Any) -> Any:
        return says("Went." if interrupt("Go to the moon?") else "Stayed.")

    async with serving(acp_agent(graph(ask), name="pilot")) as host:
        client = await host.client(version)
        prompted = asyncio.ensure_future(client.prompt(await client.new(), "go"))
        (await client.question()).select(answer)
        assert await patiently(prompted) == "end_turn"
        assert client.said() == ("Went." if answer == "allow_once" else "Stayed.")


async def test_an_interrupt_with_fields_is_a_form() -> None:
    def ask(_: Any) -> Any:
        form = {"message": "Where to?", "fields": {"place": {"type": "string"}}, "required": ["place"]}
        return says(f"To {interrupt(form)['place']}.")

    async with serving(acp_agent(graph(ask), name="pilot")) as host:
        client = await host.client(1, elicitation={"form": {}})
        client.answers["elicitation/create"] = lambda _: {"action": "accept", "content": {"place": "Mars"}}
        assert await client.prompt(await client.new(), "go") == "end_turn"
        assert client.said() == "To Mars."


async def test_an_interrupt_nobody_understands_says_what_to_do_and_one_may_answer_it_oneself() -> None:
    def ask(_: Any) -> Any:
        return says(f"{interrupt(42) + 1}")

    async def answer(turn: Any, value: int) -> int:
        assert turn.text == "go"
        return value * 2

    async with serving(acp_agent(graph(ask), name="pilot")) as host:
        client = await host.client(1)
        with pytest.raises(Refused):
            await client.prompt(await client.new(), "go")
    async with serving(acp_agent(graph(ask), name="pilot", answer=answer)) as host:
        client = await host.client(1)
        assert await client.prompt(await client.new(), "go") == "end_turn"
        assert client.said() == "85"


async def test_what_else_is_in_the_state_comes_back_with_the_session(tmp_path: Path) -> None:
    def count(state: Any) -> Any:
        number = state.get("count", 0) + 1
        places = [*state.get("places", []), f"p{number}"]
        return {"count": number, "places": [f"p{number}"], **says(" ".join(places))}

    session = ""
    for prompts, answers in ((["a", "b"], "p1p1 p2"), (["c"], "p1 p2 p3")):
        async with serving(acp_agent(graph(count), name="pilot"), tmp_path / "s.db") as host:
            client = await host.client(1)
            if session:
                await client.load(session)
                client.forget()
            session = session or await client.new()
            for prompt in prompts:
                await client.prompt(session, prompt)
            assert client.said() == answers


async def test_messages_with_more_in_them_than_json_has_are_remembered(tmp_path: Path) -> None:
    seen: list[list[Any]] = []

    def look(state: Any) -> Any:
        seen.append([message.additional_kwargs for message in state["messages"] if isinstance(message, AIMessage)])
        return {"messages": [AIMessage("seen", additional_kwargs={"pair": (1, 2), "at": date(2026, 1, 1)})]}

    session = ""
    for _ in range(2):
        async with serving(acp_agent(graph(look), name="pilot"), tmp_path / "s.db") as host:
            client = await host.client(1)
            if session:
                await client.load(session)
            session = session or await client.new()
            for prompt in ("a", "b"):
                assert await client.prompt(session, prompt) == "end_turn"
    assert [len(each) for each in seen] == [0, 1, 2, 3]
    assert all(kept == {"pair": [1, 2], "at": "2026-01-01"} for kept in seen[2])  # as in every later process


async def test_a_graph_that_makes_a_summary_goes_on_with_that_alone(tmp_path: Path) -> None:
    seen: list[list[Any]] = []

    def answer(state: Any) -> Any:
        seen.append([message.content for message in state["messages"]])
        if state["messages"][-1].content == "sum up":
            new = [RemoveMessage(REMOVE_ALL_MESSAGES), AIMessage("All before."), AIMessage("Summed up.")]
            return {"messages": new}
        return says("Yes.")

    session = ""
    for prompts in (["a", "sum up", "b"], ["c"]):
        async with serving(acp_agent(graph(answer), name="pilot"), tmp_path / "s.db") as host:
            client = await host.client(1)
            if session:
                await client.load(session)
            session = session or await client.new()
            for prompt in prompts:
                await client.prompt(session, prompt)
    assert seen[1] == ["a", "Yes.", "sum up"]
    assert seen[2] == ["All before.", "Summed up.", "b"]
    assert seen[3] == ["All before.", "Summed up.", "b", "Yes.", "c"]


async def test_a_graph_that_runs_in_circles_is_stopped() -> None:
    built: Any = StateGraph(State)
    built.add_node("turn", lambda _: {"count": 1})  # pyright: ignore[reportUnknownLambdaType]
    built.add_edge(START, "turn")
    built.add_edge("turn", "turn")
    async with serving(acp_agent(built.compile(), name="pilot", config=lambda _: {"recursion_limit": 5})) as host:
        client = await host.client(1)
        assert await client.prompt(await client.new(), "go") == "max_turn_requests"


async def test_a_graph_may_be_made_for_each_turn_and_its_nodes_know_the_turn() -> None:
    async def make(turn: Any) -> Any:
        async def answer(_: Any) -> Any:
            await current_turn().plan(["one"])
            return says(f"{turn.session.options['size']} {turn.text}")

        return graph(answer)

    made = acp_agent(make, name="pilot", version="2", title="Pilot")
    made.option("size", name="Size", values={"s": "S", "m": "M"}, default="m")
    async with serving(made) as host:
        client = await host.client(1)
        assert await client.prompt(await client.new(), "go") == "end_turn"
        assert client.said() == "m go"
        assert client.updates("plan")
