"""Who answers which method: data, so that a protocol can list its methods and swap the list when it changes phase."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import msgspec
from msgspec import Raw

from holdfast.peer.incoming import IncomingRequest

if TYPE_CHECKING:
    from holdfast.jsonrpc import Notification, Request

T = TypeVar("T")

Decode: TypeAlias = "Callable[[bytes | Raw], Any] | None"
"""Decodes parameters to the type a handler wants; `None` hands them over as they are."""

Fallback: TypeAlias = "Callable[[Request], Awaitable[object]]"
NotificationFallback: TypeAlias = "Callable[[str, Raw], Awaitable[None]]"


class RequestRoute(msgspec.Struct, frozen=True):
    """Answers one method. While the handler of an `ordered` one runs nothing that came after it is handled."""

    handle: Callable[[Any], Awaitable[object]]
    decode: Decode
    ordered: bool
    at_once: Callable[[Any, IncomingRequest], bool] | None = None
    """Takes a request that needs no task of its own; see `Routes.request`."""


class NotificationRoute(msgspec.Struct, frozen=True):
    """Handles one notification."""

    handle: Callable[[Any], Awaitable[None]]
    decode: Decode


class UrgentRoute(msgspec.Struct, frozen=True):
    """Handles one notification twice: the moment it arrives, ahead of everything that waits, and in its place."""

    at_once: Callable[[Any], None]
    in_place: Callable[[Any], None]
    decode: Decode


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
        self.fallback: Fallback | None = fallback
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
        at_once: Callable[[T, IncomingRequest], bool] | None = None,
    ) -> None:
        """Answer a method. Requests run concurrently, except that nothing overtakes an `ordered` one.

        `at_once`, where it is given, is tried first, without a task. It returns whether it takes the request: then it
        answers it some time, by `IncomingRequest.succeed` or `fail`, and has set `on_cancel`.
        """
        self.requests[method] = RequestRoute(handle, _decoder(params), ordered, at_once)

    def notification(self, method: str, handle: Callable[[T], Awaitable[None]], params: type[T] = Raw) -> None:
        """Handle a notification in its turn: the next message waits until the handler is done."""
        self.notifications[method] = NotificationRoute(handle, _decoder(params))

    def urgent_notification(
        self,
        method: str,
        at_once: Callable[[T], None],
        params: type[T] = Raw,
        *,
        in_place: Callable[[T], None] | None = None,
    ) -> None:
        """Handle a notification at once, and once more in its place among the others.

        At once, because what it must stop may be what blocks the way; in its place, because what it is about may be
        still on the way. Without `in_place` the same function is called twice.
        """
        self.urgent[method] = UrgentRoute(at_once, in_place or at_once, _decoder(params))


def _decoder(type_: type[Any]) -> Decode:
    return None if type_ is Raw else partial(_decode, type_)


def _decode(type_: type[Any], raw: bytes | Raw) -> Any:
    return _decode_to(type_)(raw)


@cache
def _decode_to(type_: type[Any]) -> Callable[[bytes | Raw], Any]:
    """Make what decodes to a type when it is first needed, for all connections: to make them all takes 3 ms."""
    return msgspec.json.Decoder(type_).decode
