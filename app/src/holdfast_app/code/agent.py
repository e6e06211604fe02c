"""The coding agent as it is declared. Nothing here needs Pydantic AI."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING

from holdfast.agent import Agent
from holdfast.errors import ModelFailed
from holdfast.integrations.thinking import offer_thinking
from holdfast_app.code.settings import NO_MODEL, NOT_INSTALLED, read_settings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from pydantic_ai.models import Model

    from holdfast.agent import Turn
    from holdfast_app.code.settings import CodeSettings

MODES = {
    "ask": ("Ask", "Reads and answers, changes nothing"),
    "code": ("Code", "Asks before each change and each command"),
    "auto": ("Auto", "Changes files and runs commands without asking"),
}


def coding_agent(settings: CodeSettings | None = None, *, models: Mapping[str, Model] | None = None) -> Agent:
    """Create the coding agent.

    Args:
        settings: Its settings; those of the environment if omitted.
        models: Models by the names that the user sees, instead of those of the settings.

    """
    settings = read_settings() if settings is None else settings
    names = tuple(models) if models else settings.models
    agent = Agent("holdfast-code", title="Holdfast code", version="1", accepts={"image", "resource"})
    agent.modes(MODES, default="code")
    if names:
        agent.models({name: name for name in names}, default=names[0])
        offer_thinking(agent)

    @agent.prompt
    async def answer(turn: Turn) -> None:
        if not names:
            await turn.say(NO_MODEL)
            return
        coder = await asyncio.to_thread(_load_coder)  # it takes a second, and others need not wait for it
        name = turn.session.model
        model = models[name] if models else coder.find_model(name, settings.base_url)
        await coder.answer(turn, model, settings.pass_env)

    return agent


def _load_coder() -> ModuleType:
    try:
        return import_module("holdfast_app.code.coder")
    except ModuleNotFoundError as e:
        if (e.name or "").partition(".")[0].startswith("pydantic"):
            raise ModelFailed(NOT_INSTALLED) from None
        raise
