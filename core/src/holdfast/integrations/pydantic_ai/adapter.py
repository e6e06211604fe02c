"""An agent of Pydantic AI as an agent of ours, and one turn that it answers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

from pydantic_ai import capture_run_messages
from pydantic_ai.capabilities import ReinjectSystemPrompt

from holdfast.agent import Agent
from holdfast.integrations.pydantic_ai.mcp_tools import McpTools, ask_unless_read_only
from holdfast.integrations.pydantic_ai.memory import Memory
from holdfast.integrations.pydantic_ai.provider_errors import failure_of, stop_reason_of
from holdfast.integrations.pydantic_ai.run_display import RunDisplay
from holdfast.integrations.pydantic_ai.user_content import user_content
from holdfast.integrations.thinking import offer_thinking

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from pydantic_ai import ModelSettings, UsageLimits
    from pydantic_ai.agent import AbstractAgent
    from pydantic_ai.models import Model
    from pydantic_ai.settings import ThinkingEffort

    from holdfast.agent import Turn
    from holdfast.agent.agent import Accepts
    from holdfast.integrations.pydantic_ai.mcp_tools import McpPolicy
    from holdfast.mcp import Tool


def acp_agent(
    agent: AbstractAgent[Any, Any],
    *,
    name: str | None = None,
    version: str = "0",
    title: str | None = None,
    models: Mapping[str, Model | str] | None = None,
    thinking: bool = False,
    deps: Callable[[Turn], Any] | None = None,
    limits: UsageLimits | None = None,
    mcp: Callable[[Tool], McpPolicy] = ask_unless_read_only,
    accepts: Collection[Accepts] = ("image", "resource"),
) -> Agent:
    """Create an agent that any editor can use from one that is written with Pydantic AI.

    Modes, options, commands and hooks can be added to what is returned, as to any other agent.

    Args:
        agent: The agent of Pydantic AI.
        name: Its name for programs; that of `agent` if omitted.
        version: Its version.
        title: Its name for people.
        models: Models by the names that the user sees, who may choose one; the first is the default.
        thinking: Whether the user may choose how much the model thinks.
        deps: Creates the dependencies of `agent`, anew for each turn.
        limits: The limits of one turn.
        mcp: Returns what is done with a tool of a server that the client has given to the session.
        accepts: What a prompt may hold besides text and links.

    Returns:
        The agent, for `holdfast run` or to add to.

    """
    served = Agent(name or agent.name or "agent", version=version, title=title, accepts=accepts)
    if models:
        served.models({model: model for model in models}, default=next(iter(models)))
    if thinking:
        offer_thinking(served)

    @served.prompt
    async def answer(turn: Turn) -> None:
        await respond(
            turn,
            agent,
            model=models[turn.session.model] if models else None,
            settings=thinking_settings(turn) if thinking else None,
            deps=deps(turn) if deps is not None else None,
            limits=limits,
            mcp=mcp,
        )

    return served


async def respond(
    turn: Turn,
    agent: AbstractAgent[Any, Any],
    *,
    model: Model | str | None = None,
    settings: ModelSettings | None = None,
    deps: Any = None,
    limits: UsageLimits | None = None,
    mcp: Callable[[Tool], McpPolicy] = ask_unless_read_only,
) -> None:
    """Answer a turn with an agent. However the turn ends, the model remembers what the user sees of it.

    Args:
        turn: the turn.
        agent: the agent of Pydantic AI.
        model: the model to use, whatever the agent says.
        settings: the settings of the model.
        deps: the dependencies of `agent`.
        limits: the limits of this turn.
        mcp: returns what is done with a tool of a server that the client has given to the session.

    Raises:
        ModelFailed: the model or its provider failed; the message says what to do.

    """
    memory = Memory(turn)
    past = await memory.recall()
    display = RunDisplay(turn, memory)
    run = partial(
        agent.run,
        user_content(turn.prompt),
        message_history=past,
        run_id=memory.turn_id,
        conversation_id=turn.session.id,
        model=model,
        model_settings=settings,
        deps=deps,
        usage_limits=limits,
        toolsets=[McpTools(turn, mcp)],
        capabilities=[display, ReinjectSystemPrompt[Any]()] if memory.lacks_system_prompt(agent) else [display],
    )
    with capture_run_messages() as messages:
        try:
            result = await run()
        except Exception as e:
            if (reason := stop_reason_of(e, display.finish_reason)) is not None:
                turn.stop(reason)
            elif (failure := failure_of(e)) is not None:
                raise failure from e
            else:
                raise
        else:
            memory.note_run(agent, messages)
            await display.conclude(result.output)
        finally:
            await memory.keep(messages)


def thinking_settings(turn: Turn) -> ModelSettings | None:
    """Return the settings of a model for how much the user wants it to think.

    Args:
        turn: a turn of an agent that was made with ``thinking=True``.

    Returns:
        The settings, None where the model decides.

    """
    level = turn.session.options["thinking"]
    if level == "default":
        return None
    return {"thinking": False if level == "off" else cast("ThinkingEffort", level)}
