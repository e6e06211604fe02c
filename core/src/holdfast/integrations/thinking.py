"""How much a model thinks, as an option of an agent; no library is needed to offer it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.agent import Agent

LEVELS = {
    "default": ("Default", "As the model does by itself"),
    "off": "Off",
    "minimal": "Minimal",
    "low": "Low",
    "medium": "Medium",
    "high": "High",
    "xhigh": "Very high",
}
"""What can be asked of a model; one that does not have a level takes the next."""


def offer_thinking(agent: Agent) -> None:
    """Let the user choose how much the model thinks: the option `thinking`."""
    agent.option("thinking", name="Thinking", values=LEVELS, default="default", category="thought_level")
