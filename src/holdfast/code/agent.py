"""The coding agent as it is declared. Nothing here needs Pydantic AI."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING

from holdfast.agent import Agent
from holdfast.code.choice import NO_MODEL, NOT_INSTALLED, chosen
from holdfast.errors import ModelFailed
from holdfast.integrations.thinking import offer_thinking

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from pydantic_ai.models import Model

    from holdfast.agent import Turn
    from holdfast.code.choice import Choice

MODES = {
    "ask": ("Ask", "Reads and answers, changes nothing"),
    "code": ("Code", "Asks before each change and each command"),
    "auto": ("Auto", "Changes files and runs commands without asking"),
}


def coding_agent(choice: Choice | None = None, *, models: Mapping[str, Model] | None = None) -> Agent:
    """Make the coding agent, for the models that the environment names or for those given here."""
    choice = chosen() if choice is None else choice
    names = tuple(models) if models else choice.models
    agent = Agent("holdfast-code", title="Holdfast code", version="1", accepts={"image", "resource"})
    agent.modes(MODES, default="code")
    if names:
        agent.models({it: it for it in names}, default=names[0])
        offer_thinking(agent)

    @agent.prompt
    async def answer(turn: Turn) -> None:
        if not names:
            await turn.say(NO_MODEL)
            return
        answering = await asyncio.to_thread(_load)  # it takes a second, and others need not wait for it
        name = turn.session.model
        model = models[name] if models else answering.model_for(name, choice.base_url)
        await answering.answer(turn, model)

    return agent


def _load() -> ModuleType:
    try:
        return import_module("holdfast.code.answering")
    except ModuleNotFoundError as e:
        if (e.name or "").partition(".")[0].startswith("pydantic"):
            raise ModelFailed(NOT_INSTALLED) from None
        raise
