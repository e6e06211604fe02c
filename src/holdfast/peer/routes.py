"""Who answers which method: data, so that a protocol can list its methods and swap the list when it changes phase."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import msgspec
from msgspec import Raw

from holdfast.errors import InvalidParams

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from holdfast.jsonrpc import Notification, Request

T = TypeVar("T")

Fallback: TypeAlias = "Callable[[Request], Awaitable[object]]"


class RequestRoute(NamedTuple):
    """Answers one method. While an `ordered` one is at work nothing that came after it is looked at."""

    handle: Callable[[Any], Awaitable[object]]
    read: Callable[[Raw | None], Any]
    ordered: bool


class NotificationRoute(NamedTuple):
    """Is told of one notification."""

    handle: Callable[[Any], Awaitable[None]]
    read: Callable[[Raw | None], Any]


class UrgentRoute(NamedTuple):
    """Is told of one notification the moment it arrives, ahead of everything that waits."""

    handle: Callable[[Any], None]
    read: Callable[[Raw | None], Any]


class Routes:
    """The methods one end of a conversation understands.

    `params` is the type a handler wants its parameters in, anything `msgspec` can decode to; parameters that do not
    fit are refused before the handler sees them. `Raw` takes them as they are.
    """

    __slots__ = ("fallback", "notification_fallback", "notifications", "requests", "urgent")

    def __init__(self, fallback: Fallback | None = None) -> None:
        self.requests: dict[str, RequestRoute] = {}
        self.notifications: dict[str, NotificationRoute] = {}
        self.urgent: dict[str, UrgentRoute] = {}
        self.fallback = fallback
        """Answers the requests that have no route; without it they get `MethodNotFound`."""
        self.notification_fallback: Callable[[Notification], Awaitable[None]] | None = None
        """Is told of the notifications that have no route; without it they are ignored."""

    def request(
        self,
        method: str,
        handle: Callable[[T], Awaitable[object]],
        params: type[T] = Raw,
        *,
        ordered: bool = False,
    ) -> None:
        """Answer a method. Requests run concurrently, except that nothing overtakes an `ordered` one."""
        self.requests[method] = RequestRoute(handle, _reader(params), ordered)

    def notification(self, method: str, handle: Callable[[T], Awaitable[None]], params: type[T] = Raw) -> None:
        """Be told of a notification, each in its turn: the next message waits until the handler is done."""
        self.notifications[method] = NotificationRoute(handle, _reader(params))

    def urgent_notification(self, method: str, handle: Callable[[T], None], params: type[T] = Raw) -> None:
        """Be told of a notification at once, and once more in its place among the others.

        At once, because what it must stop may be what blocks the way; in its place, because what it is about may be
        still on the way. So the handler must be one that can be called twice.
        """
        self.urgent[method] = UrgentRoute(handle, _reader(params))


def _reader(type_: type[Any]) -> Callable[[Raw | None], Any]:
    if type_ is Raw:
        return _as_it_is
    decode = msgspec.json.Decoder(type_).decode

    def read(params: Raw | None) -> object:
        try:
            return decode(b"{}" if params is None else params)
        except msgspec.ValidationError as e:
            raise InvalidParams(str(e)) from None

    return read


def _as_it_is(params: Raw | None) -> Raw:
    return _NO_PARAMS if params is None else params


_NO_PARAMS = Raw(b"{}")
