"""Answering a turn with an agent of Pydantic AI."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

from pydantic_ai import capture_run_messages
from pydantic_ai.capabilities import ReinjectSystemPrompt

from holdfast.agent import Agent
from holdfast.integrations.pydantic_ai.failures import failure_of, stop_of
from holdfast.integrations.pydantic_ai.mcp import McpTools, ask_unless_read_only
from holdfast.integrations.pydantic_ai.memory import Memory
from holdfast.integrations.pydantic_ai.narrator import Narrator
from holdfast.integrations.pydantic_ai.prompts import user_content
from holdfast.integrations.thinking import offer_thinking

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from pydantic_ai import ModelSettings, UsageLimits
    from pydantic_ai.agent import AbstractAgent
    from pydantic_ai.models import Model
    from pydantic_ai.settings import ThinkingEffort

    from holdfast.agent import Turn
    from holdfast.agent.agent import Accepts
    from holdfast.integrations.pydantic_ai.mcp import McpChoice
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
    mcp: Callable[[Tool], McpChoice] = ask_unless_read_only,
    accepts: Collection[Accepts] = ("image", "resource"),
) -> Agent:
    """Make an agent that any editor can use of one written with Pydantic AI.

    With `models` (a name to show, and what Pydantic AI calls the model) the user may choose one, the first being the
    default; with `thinking`, how much it thinks. `deps` makes the agent's dependencies, anew for each turn. `limits`
    are those of one turn. `mcp` says what is done with a tool of a server that the client has given to the session.

    Modes, options, commands and hooks can be added to what is returned, as to any other agent.
    """
    made = Agent(name or agent.name or "agent", version=version, title=title, accepts=accepts)
    if models:
        made.models({it: it for it in models}, default=next(iter(models)))
    if thinking:
        offer_thinking(made)

    @made.prompt
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

    return made


async def respond(
    turn: Turn,
    agent: AbstractAgent[Any, Any],
    *,
    model: Model | str | None = None,
    settings: ModelSettings | None = None,
    deps: Any = None,
    limits: UsageLimits | None = None,
    mcp: Callable[[Tool], McpChoice] = ask_unless_read_only,
) -> None:
    """Answer a turn. Whatever happens to it, the model remembers as much of it as the user sees."""
    memory = Memory(turn)
    past = await memory.recall()
    narrator = Narrator(turn, memory)
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
        capabilities=[narrator, ReinjectSystemPrompt[Any]()],
    )
    with capture_run_messages() as messages:
        try:
            result = await run()
        except Exception as e:
            if (reason := stop_of(e, narrator.finish_reason)) is not None:
                turn.stop(reason)
            elif (failure := failure_of(e)) is not None:
                raise failure from e
            else:
                raise
        else:
            await narrator.conclude(result.output)
        finally:
            memory.keep(messages)


def thinking_settings(turn: Turn) -> ModelSettings | None:
    """Say to a model how much to think."""
    level = turn.session.options["thinking"]
    if level == "default":
        return None
    return {"thinking": False if level == "off" else cast("ThinkingEffort", level)}
