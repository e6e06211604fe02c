"""`Agent`: a declaration. What it offers, and the functions that do the work."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar, cast, get_args

from holdfast.agent.decorators import called_as, unknown_name, written_as
from holdfast.errors import UsageError
from holdfast.model import Choice, ChoiceGroup, Option, choice_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection

    from holdfast.agent.session import Session
    from holdfast.agent.turn import Turn
    from holdfast.engine import ConnectedClient

    Handler: TypeAlias = Callable[[Turn], Awaitable[None] | AsyncIterator[str]]
    Hook: TypeAlias = Callable[[Session], Awaitable[None]]
    RequestHandler: TypeAlias = Callable[[Any, ConnectedClient], Awaitable[object]]
    NotificationHandler: TypeAlias = Callable[[Any, ConnectedClient], Awaitable[None]]

OPTION = 'agent.option("tone", name="Tone", values={"warm": "Warm", "dry": "Dry"}, default="warm")'
MODES = 'agent.modes({"ask": "Ask first", "act": "Act"}, default="ask")'
MODELS = 'agent.models({"small": "Small", "large": "Large"}, default="small")'
"""How what can be set is declared, for an author who has written something else."""

H = TypeVar("H", bound="Callable[..., Any]")

Accepts: TypeAlias = Literal["image", "audio", "resource", "system_prompt", "system_prompt_override"]

Labels: TypeAlias = "Mapping[str, str | tuple[str, str]]"
"""Value to name, or to name and description."""

Values: TypeAlias = "Mapping[str, str | tuple[str, str] | Labels] | Mapping[tuple[str, str], Labels]"
"""`Labels`; or, for groups, the group's name, or its id and name, to its labels.

The id of a group that has only a name is its name.
"""


class Command(NamedTuple):
    """A slash command."""

    name: str
    description: str
    hint: str | None
    handle: Handler

    def described(self) -> dict[str, Any]:
        """Return what a client is told of it."""
        about: dict[str, Any] = {"type": "command", "name": self.name, "description": self.description}
        if self.hint is not None:
            about["input"] = {"type": "text", "hint": self.hint}
        return about


class Login(NamedTuple):
    """A way to log in, and the function that does it."""

    id: str
    name: str
    description: str | None
    log_in: Callable[[], Awaitable[None]]
    terminal: bool = False
    """Whether it talks to the user in a terminal."""


class Agent:
    """An agent, as its author declares it.

    ::

        agent = Agent("weather", version="1.0")

        @agent.prompt
        async def forecast(turn: Turn) -> None:
            await turn.say("It is 21 °C.")

    Args:
        name: its name for programs. Its sessions belong to this name.
        version: its version.
        title: its name for people.
        accepts: what a prompt may hold besides text and links: ``"image"``, ``"audio"``, ``"resource"``; and with
            ``"system_prompt"`` that a client may add to the model's instructions (`session.system_prompt`), with
            ``"system_prompt_override"`` besides that it may replace them.

    """

    __module__ = "holdfast"  # where everybody imports it from

    @called_as('Agent("weather", version="1.0")')
    def __init__(
        self, name: str, *, version: str = "0", title: str | None = None, accepts: Collection[Accepts] = ()
    ) -> None:
        self.name = name
        self.version = version
        self.title = title
        self.accepts: frozenset[Accepts] = checked_accepts(accepts)
        self.options: tuple[Option, ...] = ()
        self.commands: dict[str, Command] = {}
        self.logins: tuple[Login, ...] = ()
        self.auth_required = False
        self.log_out: Callable[[], Awaitable[None]] | None = None
        self.login_check: Callable[[], Awaitable[bool]] | None = None
        self.handler: Handler | None = None
        self.open_hooks: list[Hook] = []
        self.close_hooks: list[Hook] = []
        self.option_hooks: list[Callable[[Session, str, str | bool], Awaitable[None]]] = []
        self.request_handlers: dict[str, RequestHandler] = {}
        self.notification_handlers: dict[str, NotificationHandler] = {}

    if not TYPE_CHECKING:  # type checkers say it too

        def __getattr__(self, name: str) -> object:
            from holdfast.agent.turn import Turn  # noqa: PLC0415  (a mistake)

            decorators = (
                "prompt",
                "command",
                "on_open",
                "on_close",
                "on_option",
                "on_request",
                "on_notification",
                "auth",
            )
            known = f"the decorators are {', '.join(f'@agent.{decorator}' for decorator in decorators)}"
            raise unknown_name("agent", self, name, {"turn.{}": Turn}, known)

    # What it does

    @written_as("@agent.prompt")
    def prompt(self, handler: H) -> H:
        """Answer prompts with a function.

        Args:
            handler: ``async def (turn)``, or an async generator of text to say.

        Returns:
            The function as it is, as all decorators here do.

        Raises:
            UsageError: there is one already, or it is no async function of one argument.

        """
        checked_function(handler, "a prompt handler", "turn")
        if self.handler is not None:
            raise UsageError(
                f"the agent {self.name!r} has two prompt handlers, {_name(self.handler)} and {_name(handler)}; "
                "keep one, and make the other a command: @agent.command(…)"
            )
        self.handler = handler
        return handler

    @written_as('@agent.command("name", "what it does")')
    def command(self, name: str, description: str, *, hint: str | None = None) -> Callable[[H], H]:
        """Answer prompts that begin with ``/name`` with a function; `turn.text` is then what follows it.

        Args:
            name: the name of the command, without slash and spaces.
            description: what it does, for people to read.
            hint: what to type behind it; without one the command takes nothing.

        Returns:
            A decorator for the function: ``async def (turn)``, or an async generator of text to say.

        Raises:
            UsageError: there is a command of this name already, it cannot be a name, or the function is no async
                function of one argument.

        """
        is_command_name(name)

        def register(handler: H) -> H:
            checked_function(handler, f"the command /{name}", "turn")
            if (other := self.commands.get(name)) is not None:
                raise UsageError(
                    f"there is a command /{name} already, {_name(other.handle)}; give {_name(handler)} another name"
                )
            self.commands[name] = Command(name, description, hint, handler)
            return handler

        return register

    @written_as("@agent.on_open")
    def on_open(self, hook: H) -> H:
        """Call a function when a session is created, or comes back to life.

        Args:
            hook: ``async def (session)``.

        Returns:
            The function as it is.

        Raises:
            UsageError: it is no async function of one argument.

        """
        self.open_hooks.append(checked_function(hook, "on_open", "session"))
        return hook

    @written_as("@agent.on_close")
    def on_close(self, hook: H) -> H:
        """Call a function when a session is closed or leaves memory.

        Args:
            hook: ``async def (session)``.

        Returns:
            The function as it is.

        Raises:
            UsageError: it is no async function of one argument.

        """
        self.close_hooks.append(checked_function(hook, "on_close", "session"))
        return hook

    @written_as("@agent.on_option")
    def on_option(self, hook: H) -> H:
        """Call a function when the user has set an option.

        Args:
            hook: ``async def (session, option_id, value)``.

        Returns:
            The function as it is.

        Raises:
            UsageError: it is no async function of three arguments.

        """
        self.option_hooks.append(checked_function(hook, "on_option", "session", "option_id", "value"))
        return hook

    @written_as('@agent.on_request("_mine/method")')
    def on_request(self, method: str) -> Callable[[H], H]:
        """Answer a request that the protocol does not define, as ``_mine/refresh``.

        An agent that answers the unstable ``providers/list``, ``providers/set`` and ``providers/disable`` says so to
        its clients.

        Args:
            method: the name of the request.

        Returns:
            A decorator for the function: ``async def (params, client)``. What it returns is the result; a
            `RequestError` it raises is the error the client gets.

        Raises:
            UsageError: the method has a function already, or this is no async function of two arguments.

        """

        def register(handler: H) -> H:
            _check_new(method, self.request_handlers)
            self.request_handlers[method] = checked_function(handler, f"the method {method}", "params", "client")
            return handler

        return register

    @written_as('@agent.on_notification("_mine/method")')
    def on_notification(self, method: str) -> Callable[[H], H]:
        """Call a function when a notification comes that the protocol does not define.

        Args:
            method: the name of the notification.

        Returns:
            A decorator for the function: ``async def (params, client)``.

        Raises:
            UsageError: the method has a function already, or this is no async function of two arguments.

        """

        def register(handler: H) -> H:
            _check_new(method, self.notification_handlers)
            checked_function(handler, f"the notification {method}", "params", "client")
            self.notification_handlers[method] = handler
            return handler

        return register

    # What can be set

    @called_as(OPTION)
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
        """Offer an option: the user chooses among `values`, or, without values, switches something on and off.

        Args:
            id: its name for programs: ``session.options[id]``.
            name: its name for people.
            values: each value with its name, or with its name and description; in groups, the name of each group with
                its values.
            default: the value that holds until the user sets another.
            category: what it is about, where editors have a place for it: ``mode``, ``model``, ``thought_level``.
            description: what it does, for people to read.

        Raises:
            UsageError: the default is none of the values, or there is an option with this id.

        """
        self._offer("agent.option", id, name, values, default, category, description)

    @called_as(MODES)
    def modes(self, values: Values, *, default: str) -> None:
        """Offer modes, ways in which the agent works: the option of category ``mode``.

        Args:
            values: each mode with its name, or with its name and description.
            default: the mode of new sessions.

        Raises:
            UsageError: the default is none of the values, or there are modes already.

        """
        self._offer("agent.modes", "mode", "Mode", values, default, "mode", None)

    @called_as(MODELS)
    def models(self, values: Values, *, default: str) -> None:
        """Offer models: the option of category ``model``.

        Args:
            values: each model with its name, or with its name and description.
            default: the model of new sessions.

        Raises:
            UsageError: the default is none of the values, or there are models already.

        """
        self._offer("agent.models", "model", "Model", values, default, "model", None)

    def _offer(self, verb: str, id_: str, name: str, *given: Any) -> None:
        if any(option.id == id_ for option in self.options):
            is_option = verb == "agent.option"
            there_is = f"there is an option {id_!r} already" if is_option else f"the agent has {id_}s already"
            raise UsageError(f"{verb}: {there_is}; declare {'it' if is_option else 'all of them'} once")
        self.options = (*self.options, checked_option(verb, id_, name, *given))

    @written_as('@agent.auth("id", name="what people read")')
    def auth(
        self,
        id: str,
        *,
        name: str,
        description: str | None = None,
        required: bool = True,
        terminal: bool = False,
    ) -> Callable[[H], H]:
        """Offer a way to log in.

        One that asks the user in a terminal is offered to clients that can start the agent's command in one, with
        ``--login ID`` behind it: ``holdfast run`` then calls the function and exits. Declare with `logged_in` how the
        agent that serves finds out.

        Args:
            id: its name for programs.
            name: its name for people.
            description: what it does, for people to read.
            required: whether there is no session before somebody has logged in.
            terminal: whether it asks the user in a terminal.

        Returns:
            A decorator for the function: ``async def ()``, which logs in, or raises.

        Raises:
            UsageError: there is a login with this id already, or the function takes arguments.

        """

        def register(login: H) -> H:
            checked_function(login, f"the login {id!r}")
            _check_new(id, {login.id: login.log_in for login in self.logins})
            self.logins = (*self.logins, Login(id, name, description, login, terminal))
            self.auth_required = self.auth_required or required
            return login

        return register

    @written_as("@agent.logged_in")
    def logged_in(self, check: H) -> H:
        """Ask a function whether the user is logged in, as by a key in a file.

        It is asked before a session is refused for want of a login, and by a client's ``auth/status``.

        Args:
            check: ``async def () -> bool``.

        Returns:
            The function as it is.

        Raises:
            UsageError: it is no async function without arguments.

        """
        self.login_check = checked_function(check, "logged_in")
        return check

    @written_as("@agent.logout")
    def logout(self, forget: H) -> H:
        """Call a function when the user logs out, as to forget a key. The connection is logged out in any case.

        Args:
            forget: ``async def ()``.

        Returns:
            The function as it is.

        Raises:
            UsageError: it is no async function without arguments.

        """
        self.log_out = checked_function(forget, "logout")
        return forget


def checked_function(function: H, what: str, *arguments: str) -> H:
    """Return an async function as it is; raise `UsageError` for any other, and for one that takes other arguments."""
    if not (inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)):
        raise UsageError(f"{what} must be an async function; write `async def {_name(function)}(…)`")
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError as e:
        wanted = f"async def {_name(function)}({', '.join(arguments)})"
        raise UsageError(f"{what} is called with other arguments ({e}); write `{wanted}`") from None
    return function


def _check_new(name: str, known: Mapping[str, object]) -> None:
    """Raise `UsageError` where something has this name already."""
    if name in known:
        raise UsageError(f"there is a function for {name!r} already, {_name(known[name])}")


def _name(function: object) -> str:
    return str(getattr(function, "__name__", repr(function)))


def checked_accepts(accepts: Collection[Accepts]) -> frozenset[Accepts]:
    """Return what an agent accepts; raise `UsageError` for what there is not."""
    if isinstance(accepts, str):
        raise UsageError(f"`accepts` is a list; write `accepts=[{accepts!r}]`")
    known = get_args(Accepts)
    if (wrong := next((word for word in accepts if word not in known), None)) is not None:
        raise UsageError(f"an agent cannot accept {wrong!r}{choice_of(wrong, known, are='it can accept')}")
    return frozenset(accepts)


def checked_option(
    verb: str,
    id_: str,
    name: str,
    values: Values | None,
    default: str | bool,  # noqa: FBT001
    category: str | None,
    description: str | None,
) -> Option:
    """Return an option; raise `UsageError`, which names the author's verb, where its default is none of its values."""
    choices = _choices(verb, values) if values is not None else ()
    option = Option(id_, name, default, choices, category, description)
    if option.is_switch != (values is None) or not option.accepts(option.default):
        wanted = " or ".join(map(repr, option.values())) if choices else "True or False, as it has no values"
        option_named = f" of option {id_!r}" if verb.endswith("option") else ""
        raise UsageError(f"{verb}: the default{option_named} must be {wanted}, not {default!r}")
    return option


def is_command_name(name: str) -> str:
    """Return the name of a command as it is; raise `UsageError` where it cannot be one."""
    if not name or name.startswith("/") or any(character.isspace() for character in name):
        raise UsageError(f"a command is named without slash and spaces, not {name!r}")
    return name


def _choices(verb: str, values: Values) -> tuple[Choice, ...] | tuple[ChoiceGroup, ...]:
    if not isinstance(values, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  (agent code may give anything)
        raise UsageError(f"{verb}: values are given with their names; write `{_with_names(verb, values)}`")
    labels = {key: label for key, label in values.items() if isinstance(label, str | tuple)}
    if len(labels) == len(values):
        return _flat({value: label for value, label in labels.items() if isinstance(value, str)})
    if labels:
        raise UsageError(f"{verb}: the values are all in groups, or none of them is")
    groups = tuple(_group(verb, key, group) for key, group in values.items() if not isinstance(group, str | tuple))
    if len({group.id for group in groups}) < len(groups):
        raise UsageError(f"{verb}: each group of values needs an id of its own")
    return groups


def _with_names(verb: str, values: object) -> str:
    """Return how values that were given without names are written with them."""
    listed = (
        cast("list[object]", values) if isinstance(values, list | tuple | set | frozenset) else ("fast", "thorough")
    )
    named = ", ".join(f'"{value}": "{str(value).capitalize()}"' for value in listed)
    return f"values={{{named}}}" if verb.endswith("option") else f"{verb}({{{named}}}, …)"


def _group(verb: str, key: str | tuple[str, str], values: Labels) -> ChoiceGroup:
    """Create a group of values. It is named by its key, or has an id besides its name: ``("eu", "Europe")``."""
    id_, name = (key, key) if isinstance(key, str) else key
    if not isinstance(values, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  (agent code may give anything)
        raise UsageError(f"{verb}: the name of the value {name!r} must be a string, or a name and a description")
    if not values:
        raise UsageError(f"{verb}: the group {name!r} has no values")
    return ChoiceGroup(id_, name, _flat(values))


def _flat(values: Labels) -> tuple[Choice, ...]:
    return tuple(
        Choice(value, label) if isinstance(label, str) else Choice(value, *label) for value, label in values.items()
    )
