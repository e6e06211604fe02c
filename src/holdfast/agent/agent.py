"""`Agent`: a declaration. What it offers, and the functions that do the work."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar

from holdfast.errors import UsageError
from holdfast.model import Choice, ChoiceGroup, Option

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping

    from holdfast.agent.session import Session
    from holdfast.agent.turn import Turn

    Handler: TypeAlias = Callable[[Turn], Awaitable[None] | AsyncIterator[str]]
    Hook: TypeAlias = Callable[[Session], Awaitable[None]]
    Login: TypeAlias = Callable[[], Awaitable[None]]

H = TypeVar("H", bound="Callable[..., Any]")

Accepts: TypeAlias = Literal["image", "audio", "resource"]

Values: TypeAlias = "Mapping[str, str | tuple[str, str] | Mapping[str, str | tuple[str, str]]]"
"""Value to name, or to name and description; or, for groups, the group's name to such a mapping."""


class Command(NamedTuple):
    """A slash command."""

    name: str
    description: str
    hint: str | None
    handle: Handler


class AuthMethod(NamedTuple):
    """A way to log in."""

    id: str
    name: str
    description: str | None
    login: Login


class Agent:
    """An agent, as its author declares it.

    ::

        agent = Agent("weather", version="1.0")

        @agent.prompt
        async def forecast(turn: Turn) -> None:
            await turn.say("It is 21 °C.")

    `accepts` names what a prompt may hold besides text and links: ``"image"``, ``"audio"``, ``"resource"``.
    """

    def __init__(
        self, name: str, *, version: str = "0", title: str | None = None, accepts: Collection[Accepts] = ()
    ) -> None:
        self.name = name
        self.version = version
        self.title = title
        self.accepts = frozenset(accepts)
        self.options: tuple[Option, ...] = ()
        self.commands: dict[str, Command] = {}
        self.auth_methods: tuple[AuthMethod, ...] = ()
        self.auth_required = False
        self.logout: Login | None = None
        self.handler: Handler | None = None
        self.open_hooks: list[Hook] = []
        self.close_hooks: list[Hook] = []
        self.option_hooks: list[Callable[[Session, str, str | bool], Awaitable[None]]] = []

    # What it does

    def prompt(self, handler: H) -> H:
        """Answer prompts with this function: ``async def (turn)``, or an async generator of text to say."""
        self.handler = _checked(handler, "a prompt handler")
        return handler

    def command(self, name: str, description: str, *, hint: str | None = None) -> Callable[[H], H]:
        """Answer prompts that begin with ``/name``; `turn.text` is then what follows it."""
        if not name or name.startswith("/") or any(c.isspace() for c in name):
            raise UsageError(f"a command is named without slash and spaces, not {name!r}")

        def register(handler: H) -> H:
            self.commands[name] = Command(name, description, hint, _checked(handler, f"the command /{name}"))
            return handler

        return register

    def on_open(self, hook: H) -> H:
        """Call this function when a session is created, or comes back to life: ``async def (session)``."""
        self.open_hooks.append(_checked(hook, "on_open"))
        return hook

    def on_close(self, hook: H) -> H:
        """Call this function when a session is closed or leaves memory: ``async def (session)``."""
        self.close_hooks.append(_checked(hook, "on_close"))
        return hook

    def on_option(self, hook: H) -> H:
        """Call this function when the user has set an option: ``async def (session, option_id, value)``."""
        self.option_hooks.append(_checked(hook, "on_option"))
        return hook

    # What can be set

    def option(
        self,
        id: str,
        *,
        name: str,
        values: Values | None = None,
        default: str | bool,
        category: str | None = None,
        description: str | None = None,
    ) -> None:
        """Let the user choose among `values`, or, without values, switch something on and off."""
        choices = _choices(values) if values is not None else ()
        option = Option(id, name, default, choices, category, description)
        if any(it.id == id for it in self.options):
            raise UsageError(f"there is an option {id!r} already")
        if option.is_switch != (values is None) or not option.accepts(default):
            raise UsageError(f"the default of option {id!r} must be one of its values, or a bool if it has none")
        self.options = (*self.options, option)

    def modes(self, values: Values, *, default: str) -> None:
        """Let the user choose how it works: the option of category ``mode``."""
        self.option("mode", name="Mode", values=values, default=default, category="mode")

    def models(self, values: Values, *, default: str) -> None:
        """Let the user choose a model: the option of category ``model``."""
        self.option("model", name="Model", values=values, default=default, category="model")

    def auth(
        self,
        id: str,
        *,
        name: str,
        description: str | None = None,
        required: bool = True,
    ) -> Callable[[H], H]:
        """Offer a way to log in; the function does it, or raises. `required`: no session before."""

        def register(login: H) -> H:
            method = AuthMethod(id, name, description, _checked(login, f"the login {id!r}"))
            self.auth_methods = (*self.auth_methods, method)
            self.auth_required = self.auth_required or required
            return login

        return register


def _checked(function: H, what: str) -> H:
    if not (inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)):
        name = getattr(function, "__name__", repr(function))
        raise UsageError(f"{what} must be an async function; write `async def {name}(…)`")
    return function


def _choices(values: Values) -> tuple[Choice, ...] | tuple[ChoiceGroup, ...]:
    grouped = [it for it in values.items() if isinstance(it[1], str | tuple)] == []
    if grouped and values:
        return tuple(
            ChoiceGroup(name, name, _flat(it)) for name, it in values.items() if not isinstance(it, str | tuple)
        )
    return _flat({value: it for value, it in values.items() if isinstance(it, str | tuple)})


def _flat(values: Mapping[str, str | tuple[str, str]]) -> tuple[Choice, ...]:
    return tuple(Choice(value, it) if isinstance(it, str) else Choice(value, *it) for value, it in values.items())
