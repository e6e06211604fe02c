"""The agents that the check knows: what to say to each, and the options that make it ask.

Any other agent is told the default prompts: a person's words for an agent with a model, and behind them a directive for
the scripted model server.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast_app.check.settings import Prompts
from holdfast_app.known_agents import one_name

if TYPE_CHECKING:
    from holdfast_app.check.settings import CheckSettings

DEFAULT_PROMPTS: Final = Prompts(
    talk="Say one sentence about pebbles, without a tool. model:say Pebbles are small stones.",
    tool="Run this shell command: echo pebble. model:run echo pebble",
    ask="Run this shell command: touch pebble.txt; echo done. model:run touch pebble.txt; echo done",
    long="Count from 1 to 400 in words, one number a line, without a tool. model:count 400 50",
    think="Think about pebbles, then answer. model:think Pebbles are small stones.",
)


class Familiar(NamedTuple):
    """What the check knows of an agent."""

    prompts: Prompts = DEFAULT_PROMPTS
    options: tuple[tuple[str, str], ...] = ()
    """Set in every new session that offers them."""


FAMILIAR: Final = {
    "holdfast-demo": Familiar(Prompts("Pebbles are small", "/tool", "/ask", "/count 400", "/think")),
    "weather": Familiar(Prompts(*["How warm is it?"] * 5), (("mode", "act"),)),
    "codex": Familiar(options=(("mode", "read-only"),)),
}
"""By the names that agents call themselves, or the one name of a known agent."""


def suited(settings: CheckSettings, agent: str) -> CheckSettings:
    """Return settings for an agent by its name: what they leave open is filled in."""
    known = FAMILIAR.get(one_name(agent), Familiar())
    given = {field.name: getattr(settings.prompts, field.name) for field in fields(Prompts)}
    prompts = replace(known.prompts, **{name: text for name, text in given.items() if text})
    chosen = {option_id for option_id, _ in settings.options}
    offered = tuple(pair for pair in known.options if pair[0] not in chosen)
    return replace(settings, prompts=prompts, options_if_offered=offered)
