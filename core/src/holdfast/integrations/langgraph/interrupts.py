"""The questions of a graph to its user: interrupts, and what they are answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from holdfast.errors import UsageError
from holdfast.integrations.visible_calls import NOT_ALLOWED
from holdfast.model import new_id

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from langgraph.types import Interrupt

    from holdfast.agent import Turn
    from holdfast.integrations.visible_calls import VisibleCalls


async def ask_user(turn: Turn, value: Any) -> Any:
    """Answer an interrupt by asking the user.

    A text is a permission question. A dict with `message` and `fields` is a form, as `turn.ask` takes them (and
    `required`).

    Args:
        turn: the turn.
        value: the value of the interrupt.

    Returns:
        True or False for a permission question; for a form what was filled in, or None.

    Raises:
        UsageError: the value is something else; give `acp_agent` an `answer` of your own.

    """
    kind = type(value).__name__
    if isinstance(value, str):
        return await turn.allow(value)
    if isinstance(value, dict):
        form = cast("dict[str, Any]", value)
        if isinstance(form.get("message"), str) and isinstance(form.get("fields"), dict):
            return await turn.ask(form["message"], form["fields"], required=form.get("required", ()))
    raise UsageError(
        f"nobody knows how to ask the user about an interrupt with a {kind}: interrupt with a text, with "
        '{"message": …, "fields": …}, or give `acp_agent` an `answer`'
    )


async def answers_to(
    interrupts: Sequence[Interrupt], turn: Turn, calls: VisibleCalls, answer: Callable[[Turn, Any], Awaitable[Any]]
) -> dict[str, Any]:
    """Return what a graph goes on with, by the ids of its interrupts, which are answered one after the other."""
    answers: dict[str, Any] = {}
    for interrupt in interrupts:
        value = interrupt.value
        actions = cast("dict[str, Any]", value).get("action_requests") if isinstance(value, dict) else None
        if isinstance(actions, list):
            answers[interrupt.id] = {"decisions": await _decisions(cast("list[dict[str, Any]]", actions), calls)}
        else:
            answers[interrupt.id] = await answer(turn, value)
    return answers


async def _decisions(actions: list[dict[str, Any]], calls: VisibleCalls) -> list[dict[str, Any]]:
    """Return what the user decides about the calls that LangChain's `HumanInTheLoopMiddleware` asks for."""
    decisions: list[dict[str, Any]] = []
    taken: set[str] = set()
    for action in actions:
        tool, arguments = str(action["name"]), cast("dict[str, Any]", action.get("args") or {})
        call_id = _call_of(tool, arguments, calls, taken)
        if call_id is None:  # what a person allows, a person sees
            call_id = new_id("call")
            await calls.describe(call_id, tool, arguments)
        taken.add(call_id)
        if await calls.allowed(call_id, tool, arguments):
            decisions.append({"type": "approve"})
        else:
            decisions.append({"type": "reject", "message": NOT_ALLOWED})
    return decisions


def _call_of(tool: str, arguments: dict[str, Any], calls: VisibleCalls, taken: set[str]) -> str | None:
    """Return the id of the call that an action is about: the middleware tells its name and arguments alone."""
    for call_id, name, given in calls:
        if call_id not in taken and name == tool and given == arguments:
            return call_id
    return None
