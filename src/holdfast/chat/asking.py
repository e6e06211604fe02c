"""Questions of the agent's, put to the user: permissions by single keys, forms field by field, addresses as text.

Nothing but a key that means it allows anything; whatever else happens is a refusal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.chat.forms import form_fields
from holdfast.chat.screen import Ask, Choice
from holdfast.model import ElicitationAnswer
from holdfast.view.blocks import Note
from holdfast.view.safe_text import safe_line

if TYPE_CHECKING:
    from holdfast.chat.screen import Screen
    from holdfast.model import Elicitation, Permission, PermissionOption
    from holdfast.view.blocks import Call

MAX_OPTIONS = 9
"""So many have a key of their own."""
_KEYS = {"allow_once": "y", "allow_always": "a", "reject_once": "n", "reject_always": "N"}


async def ask_permission(screen: Screen, permission: Permission, call: Call) -> str | None:
    """Ask whether the agent may do something; give the id of the option that was chosen."""
    options = permission.options
    refusing = [it for it in options if not it.kind.startswith("allow")]
    default = next((it.id for it in refusing if it.kind == "reject_once"), refusing[0].id if refusing else None)
    if call.parts:
        screen.show(call)
    chosen = await screen.choose(Ask(permission.title, tuple(_choices(options)), default))
    option = permission.chosen(chosen)
    allowed = option is not None and option.kind.startswith("allow")
    answer = option.name if option is not None else "not answered"
    screen.show(Note(f"{permission.title} {answer}", tone="good" if allowed else "warning"))
    return chosen


def _choices(options: tuple[PermissionOption, ...]) -> list[Choice]:
    choices: list[Choice] = []
    taken: set[str] = set()
    for n, it in enumerate(options[:MAX_OPTIONS], 1):
        key = _KEYS.get(it.kind, "")
        key = str(n) if not key or key in taken else key
        taken.add(key)
        choices.append(Choice(key, it.name, it.id, "good" if it.kind.startswith("allow") else "error"))
    return choices


async def ask_question(screen: Screen, question: Elicitation) -> ElicitationAnswer:
    """Ask for a form to be filled in, or for an address to be visited. Addresses are shown and never opened."""
    message = str(question.params.get("message") or "The agent asks:")
    if question.mode == "url":
        screen.show(Note(message, str(question.params.get("url", "")), "ask"))
        choices = (Choice("y", "I have been there", "accept", "good"), Choice("n", "No", "decline", "error"))
        answer = await screen.choose(Ask("The agent wants you to open the address above.", choices, "decline"))
        return ElicitationAnswer("accept") if answer == "accept" else ElicitationAnswer("decline")
    screen.show(Note(message, tone="ask"))
    content: dict[str, object] = {}
    for field in form_fields(question.params):
        if field.choices:
            screen.show(Note(f"{safe_line(field.label)}:", field.listed()))
        text = await screen.fill(field.question())
        if text is None:
            screen.show(Note("Declined."))
            return ElicitationAnswer("decline")
        value = field.read(text)
        if value is not None:
            content[field.name] = value
    said = ", ".join(f"{name}: {value}" for name, value in content.items())
    screen.show(Note(f"You answered: {said or 'nothing'}"))
    return ElicitationAnswer("accept", content)
