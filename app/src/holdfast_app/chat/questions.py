"""The agent's questions, put to the user: permissions by single keys, forms field by field, addresses as text.

Only a key that means it allows anything; whatever else happens is a refusal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.model import ElicitationAnswer
from holdfast.view.blocks import Note
from holdfast.view.safe_text import safe_line
from holdfast_app.chat.forms import form_fields
from holdfast_app.chat.screen import Choice, KeyQuestion

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.client import ClientSession
    from holdfast.client.services import Permissions
    from holdfast.model import Elicitation, Permission, PermissionOption
    from holdfast.view.blocks import Call
    from holdfast_app.chat.screen import Screen
    from holdfast_app.chat.settings import PermissionChoice

MAX_OPTIONS = 9
"""So many options have a key of their own."""
MAX_QUESTION = 300
"""A question with more characters is printed whole before it is asked: the lower part of a screen has little room."""
_KEYS = {"allow_once": "y", "allow_always": "a", "reject_once": "n", "reject_always": "N"}


READING = frozenset({"read", "search"})
"""The kinds of tool calls that change nothing. One that does not say its kind is none of them, whatever its title."""


def allowed_reading(permission: Permission) -> str | None:
    """Return the option that allows a tool call once, if it only reads or searches; None for any other."""
    if permission.call.get("kind") not in READING:
        return None
    return next((option.id for option in permission.options if option.kind == "allow_once"), None)


def answer_alone(choice: PermissionChoice | None, refused: Callable[[str], object]) -> Permissions:
    """Return what answers permission requests where nobody can be asked.

    `refused` is called with the title of what somebody might have allowed. Who wants "deny" knows of it.
    """
    if choice in ("allow", "deny"):
        return "allow" if choice == "allow" else "deny"

    async def answer(_session: ClientSession, permission: Permission) -> str | bool:
        if choice == "reads" and (allowed := allowed_reading(permission)) is not None:
            return allowed
        refused(permission.title)
        return False

    return answer


def refused_alone(titles: Sequence[str], choice: PermissionChoice | None) -> str:
    """Return what to tell of questions that were refused because nobody could be asked, and what would allow them."""
    asked = "; ".join(_shortened(title) for title in dict.fromkeys(titles))
    reads = "" if choice == "reads" else ", or with --approve-reads what only reads"
    return f"Nobody can be asked here, so this was refused: {asked} Allow everything with --permissions allow{reads}."


def declined_alone(questions: Sequence[Elicitation]) -> str:
    """Return what to tell of forms and addresses that were declined because nobody could be asked."""
    asked = "; ".join(dict.fromkeys(_asked_of(question) for question in questions))
    return f"Nobody can be asked here, so this was declined: {asked} Answer it in `holdfast chat` in a terminal."


def _asked_of(question: Elicitation) -> str:
    message = _shortened(str(question.params.get("message") or "The agent asks for something."))
    return f"{message} {safe_line(str(question.params.get('url', '')))}" if question.mode == "url" else message


async def ask_permission(screen: Screen, permission: Permission, call: Call) -> str | None:
    """Ask whether the agent may do something; return the id of the option that was chosen.

    All there is to know of the call is shown first, to its last line (P13).
    """
    options = permission.options
    refusing = [option for option in options if not option.kind.startswith("allow")]
    default = next((option.id for option in refusing if option.kind == "reject_once"), None)
    if default is None and refusing:
        default = refusing[0].id
    if call.parts or call.locations or call.title not in ("", permission.title):
        screen.show(call)
    if permission.description:
        screen.show(Note(permission.description, tone="ask"))
    chosen = await screen.ask_key(KeyQuestion(_shown(screen, permission.title), tuple(_choices(options)), default))
    option = permission.chosen(chosen)
    allowed = option is not None and option.kind.startswith("allow")
    answer = option.name if option is not None else "not answered"
    screen.show(Note(f"{_shortened(permission.title)} {answer}", tone="good" if allowed else "warning"))
    return chosen


def _shown(screen: Screen, question: str) -> str:
    """Print a long question whole; return it as it is asked."""
    if len(safe_line(question)) > MAX_QUESTION:
        screen.show(Note(question, tone="ask"))
        return f"{_shortened(question)} (all of it stands above)"
    return question


def _shortened(question: str) -> str:
    line = safe_line(question)
    return line if len(line) <= MAX_QUESTION else f"{line[:MAX_QUESTION]}…"


def _choices(options: tuple[PermissionOption, ...]) -> list[Choice]:
    choices: list[Choice] = []
    taken: set[str] = set()
    for number, option in enumerate(options[:MAX_OPTIONS], 1):
        key = _KEYS.get(option.kind, "")
        key = str(number) if not key or key in taken else key
        taken.add(key)
        choices.append(Choice(key, option.name, option.id, "good" if option.kind.startswith("allow") else "error"))
    return choices


async def ask_elicitation(screen: Screen, question: Elicitation) -> ElicitationAnswer:
    """Ask the user to fill in a form, or to visit an address, which is shown and never opened."""
    message = str(question.params.get("message") or "The agent asks:")
    if question.mode == "url":
        screen.show(Note(message, str(question.params.get("url", "")), "ask"))
        choices = (Choice("y", "I have been there", "accept", "good"), Choice("n", "No", "decline", "error"))
        visit = KeyQuestion("The agent wants you to open the address above.", choices, "decline")
        return ElicitationAnswer("accept") if await screen.ask_key(visit) == "accept" else ElicitationAnswer("decline")
    screen.show(Note(message, tone="ask"))
    content: dict[str, object] = {}
    for field in form_fields(question.params):
        if field.choices:
            screen.show(Note(f"{safe_line(field.label)}:", field.listed()))
        text = await screen.ask_line(field.question())
        if text is None:
            screen.show(Note("Declined."))
            return ElicitationAnswer("decline")
        value = field.read(text)
        if value is not None:
            content[field.name] = value
    given = ", ".join(f"{name}: {value}" for name, value in content.items())
    screen.show(Note(f"You answered: {given or 'nothing'}"))
    return ElicitationAnswer("accept", content)
