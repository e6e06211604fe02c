"""An agent of the OpenAI Agents SDK as an agent of ours, and one turn that it answers."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agents import (
    InputGuardrailTripwireTriggered,
    MaxTurnsExceeded,
    ModelBehaviorError,
    OutputGuardrailTripwireTriggered,
    RunConfig,
    Runner,
)

from holdfast.agent import Agent
from holdfast.errors import ModelFailed
from holdfast.integrations.model_errors import model_failure
from holdfast.integrations.openai_agents.memory import RunMemory
from holdfast.integrations.openai_agents.run_display import RunDisplay

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from agents import Agent as OpenAIAgent
    from agents import Model, RunResultStreaming

    from holdfast.agent import Turn
    from holdfast.agent.agent import Accepts
    from holdfast.integrations.tool_display import ToolDisplay

DEFAULT_MAX_TURNS = 50
CANCEL_SECONDS = 5.0
"""A run that is cancelled and goes on is not waited for after this time."""


def acp_agent(
    agent: OpenAIAgent[Any],
    *,
    name: str | None = None,
    version: str = "0",
    title: str | None = None,
    models: Mapping[str, Model | str] | None = None,
    tools: Mapping[str, ToolDisplay] | None = None,
    context: Callable[[Turn], Any] | None = None,
    run_config: RunConfig | None = None,
    max_turns: int | None = DEFAULT_MAX_TURNS,
    context_window: int | None = None,
    accepts: Collection[Accepts] = ("image", "resource"),
) -> Agent:
    """Create an agent that any editor can use from one that is written with the OpenAI Agents SDK.

    Modes, options, commands and hooks can be added to what is returned, as to any other agent.

    Args:
        agent: The agent that answers; others it hands over to answer until they hand over again.
        name: Its name for programs; that of `agent` if omitted.
        version: Its version.
        title: Its name for people.
        models: Models by the names that the user sees, who may choose one; the first is the default.
        tools: How tools are shown, by their names.
        context: Creates the `context` of a run, anew for each turn.
        run_config: The settings of all runs.
        max_turns: How often the model may be asked in one turn; None for as often as it likes.
        context_window: How many tokens the model's context has, where the user shall see how full it is.
        accepts: What a prompt may hold besides text and links.

    Returns:
        The agent, for `holdfast run` or to add to.

    """
    served = Agent(name or agent.name, version=version, title=title, accepts=accepts)
    if models:
        served.models({model: model for model in models}, default=next(iter(models)))

    @served.prompt
    async def answer(turn: Turn) -> None:
        await respond(
            turn,
            agent,
            model=models[turn.session.model] if models else None,
            tools=tools,
            context=context(turn) if context is not None else None,
            run_config=run_config,
            max_turns=max_turns,
            context_window=context_window,
        )

    return served


async def respond(
    turn: Turn,
    agent: OpenAIAgent[Any],
    *,
    model: Model | str | None = None,
    tools: Mapping[str, ToolDisplay] | None = None,
    context: Any = None,
    run_config: RunConfig | None = None,
    max_turns: int | None = DEFAULT_MAX_TURNS,
    context_window: int | None = None,
) -> None:
    """Answer a turn with an agent. However the turn ends, the model remembers what the user sees of it.

    Args:
        turn: the turn.
        agent: the agent that answers; others it hands over to answer until they hand over again.
        model: the model to use, whatever the agent says.
        tools: how tools are shown, by their names.
        context: the `context` of the run.
        run_config: the settings of the run.
        max_turns: how often the model may be asked; None for as often as it likes.
        context_window: how many tokens the model's context has, where the user shall see how full it is.

    Raises:
        ModelFailed: the model or its provider failed; the message says what to do.

    """
    memory = RunMemory(turn)
    display = RunDisplay(turn, tools or {}, context_window)
    config = run_config or RunConfig()
    config = config if model is None else replace(config, model=model)
    step: Any = await memory.input()
    speaker = memory.agent_in(agent)
    try:
        while True:
            run = Runner.run_streamed(
                speaker, step, context=context, hooks=display.hooks, run_config=config, max_turns=max_turns
            )
            await _show(run, display)
            if not run.interruptions:
                break
            step = run.to_state()
            await display.decide(run.interruptions, step)
    except MaxTurnsExceeded:
        turn.stop("max_turn_requests")
    except (InputGuardrailTripwireTriggered, OutputGuardrailTripwireTriggered):
        turn.stop("refusal")
    except ModelBehaviorError as e:
        raise ModelFailed(f"The model cannot go on: {e.message}. The conversation is kept.") from e
    except Exception as e:
        if (failure := model_failure(e)) is not None:
            raise failure from e
        raise
    else:
        await display.conclude(run.final_output)
        await memory.keep(run)


async def _show(run: RunResultStreaming, display: RunDisplay) -> None:
    """Show what a run does, until it ends or wants to know something. A turn that is cancelled cancels it."""
    try:
        async for event in run.stream_events():
            await display.show(event)
    except BaseException:
        run.cancel()
        if run.run_loop_task is not None and not run.run_loop_task.done():
            await asyncio.wait({run.run_loop_task}, timeout=CANCEL_SECONDS)
        raise
