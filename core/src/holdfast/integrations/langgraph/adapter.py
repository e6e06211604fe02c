"""A graph of LangGraph as an agent of ours, and one turn that it answers."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Protocol, cast

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.types import Command

from holdfast.agent import Agent
from holdfast.integrations.langgraph.interrupts import answers_to, ask_user
from holdfast.integrations.langgraph.memory import GraphMemory
from holdfast.integrations.langgraph.run_display import RunDisplay
from holdfast.integrations.model_errors import model_failure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping

    from langchain_core.runnables import RunnableConfig

    from holdfast.agent import Turn
    from holdfast.agent.agent import Accepts
    from holdfast.integrations.tool_display import ToolDisplay


class Graph(Protocol):
    """A compiled graph of LangGraph, as far as it is used."""

    name: str

    def copy(self, update: dict[str, Any]) -> Any:
        """Return the graph with other attributes."""
        ...

    @property
    def astream(self) -> Any:
        """Run the graph, and yield what it does."""
        ...


def acp_agent(
    graph: Graph | Callable[[Turn], Graph | Awaitable[Graph]],
    *,
    name: str | None = None,
    version: str = "0",
    title: str | None = None,
    tools: Mapping[str, ToolDisplay] | None = None,
    config: Callable[[Turn], RunnableConfig] | None = None,
    context: Callable[[Turn], Any] | None = None,
    answer: Callable[[Turn, Any], Awaitable[Any]] = ask_user,
    context_window: int | None = None,
    accepts: Collection[Accepts] = ("image", "resource"),
) -> Agent:
    """Create an agent that any editor can use from a graph.

    Modes, models, options, commands and hooks can be added to what is returned, as to any other agent.

    Args:
        graph: A compiled graph whose state has `messages`, or a function that returns one for a turn.
        name: Its name for programs; that of `graph` if omitted.
        version: Its version.
        title: Its name for people.
        tools: How tools are shown, by their names.
        config: Returns the configuration of a run, as ``{"configurable": {"model": turn.session.model}}``.
        context: Returns the `context` of a run, anew for each turn.
        answer: Answers an interrupt of the graph's own: is given the turn and the interrupt's value, and returns what
            the graph goes on with. The questions of `HumanInTheLoopMiddleware` are not among them: they are permission
            questions always.
        context_window: How many tokens the model's context has, where the user shall see how full it is.
        accepts: What a prompt may hold besides text and links.

    Returns:
        The agent, for `holdfast run` or to add to.

    """
    named = name or (None if _is_function(graph) else cast("Graph", graph).name) or "agent"
    served = Agent(named, version=version, title=title, accepts=accepts)

    @served.prompt
    async def answer_prompt(turn: Turn) -> None:
        await respond(
            turn,
            await _graph_for(turn, graph),
            tools=tools,
            config=config(turn) if config is not None else None,
            context=context(turn) if context is not None else None,
            answer=answer,
            context_window=context_window,
        )

    return served


async def respond(
    turn: Turn,
    graph: Graph,
    *,
    tools: Mapping[str, ToolDisplay] | None = None,
    config: RunnableConfig | None = None,
    context: Any = None,
    answer: Callable[[Turn, Any], Awaitable[Any]] = ask_user,
    context_window: int | None = None,
) -> None:
    """Answer a turn with a graph. However the turn ends, the model remembers what the user sees of it.

    Args:
        turn: the turn.
        graph: the compiled graph.
        tools: how tools are shown, by their names.
        config: the configuration of the run.
        context: the `context` of the run.
        answer: answers the interrupts of the graph: ``async def (turn, value)``.
        context_window: how many tokens the model's context has, where the user shall see how full it is.

    Raises:
        ModelFailed: the provider of the model failed; the message says what to do.

    """
    memory = GraphMemory(turn)
    display = RunDisplay(turn, tools or {}, context_window)
    # The graph's own steps are kept only while the turn runs, so that it can be interrupted and go on.
    run = graph.copy({"checkpointer": InMemorySaver()})
    settings = display.added_to(config or {}, thread=memory.turn_id)
    step: Any = await memory.input()
    try:
        while True:
            async for _, (message, about) in run.astream(
                step, settings, context=context, stream_mode="messages", subgraphs=True, durability="exit"
            ):
                await display.show(message, about)
            await display.settle()
            state = await run.aget_state(settings)
            if not state.interrupts:
                break
            step = Command(resume=await answers_to(state.interrupts, turn, display.calls, answer))
    except GraphRecursionError:
        turn.stop("max_turn_requests")
    except Exception as e:
        if (failure := model_failure(e)) is not None:
            raise failure from e
        raise
    else:
        await display.conclude(state.values)
        await memory.keep(state.values)


def _is_function(graph: object) -> bool:
    return inspect.isroutine(graph) or not hasattr(graph, "astream")


async def _graph_for(turn: Turn, graph: Any) -> Graph:
    if not _is_function(graph):
        return graph
    made = graph(turn)
    return await made if inspect.isawaitable(made) else made
