"""What a line of JSON-RPC can be.

A frame is a `Batch` or a single message; a message is one of four things. `Invalid` and `Malformed` are frames too,
not exceptions: the other side's mistakes are ordinary input, and each is owed an answer.
"""

from __future__ import annotations

from typing import TypeAlias, final

import msgspec
from msgspec import UNSET, Raw, UnsetType

MAX_DEPTH = 128
"""Containers may nest this deep; deeper is refused as malformed (A2)."""

MAX_BATCH_ENTRIES = 1_024
"""A batch may have this many entries."""

MAX_BATCH_BYTES = 1 << 20
"""A batch may be this long: a small entry costs twenty times its bytes to hold, so the line limit is no bound."""

Id: TypeAlias = int | str


@final
class ErrorObject(msgspec.Struct, frozen=True, omit_defaults=True):
    """The `error` member of a response."""

    code: int
    message: str
    data: Raw | UnsetType = UNSET


@final
class Request(msgspec.Struct, frozen=True, gc=False):
    """Asks for an answer. `params` is `None` where there were none."""

    id: Id
    method: str
    params: Raw | None


@final
class Notification(msgspec.Struct, frozen=True, gc=False):
    """Tells, and expects nothing back."""

    method: str
    params: Raw | None


@final
class Response(msgspec.Struct, frozen=True, gc=False):
    """Answers a request of ours: a `Raw` result or an error. An error whose request was unreadable has no id."""

    id: Id | None
    outcome: Raw | ErrorObject


@final
class Invalid(msgspec.Struct, frozen=True):
    """JSON that is no message: answer `error` to `id` (A3).

    A broken *response* (`to_us`) is not answered, that could go back and forth for ever; the request of ours that
    it was meant for, if `id` says, fails with the error.
    """

    id: Id | None
    error: ErrorObject
    to_us: bool = False


@final
class Malformed(msgspec.Struct, frozen=True):
    """No JSON at all: answer `error` with a null id (A2)."""

    error: ErrorObject


Message: TypeAlias = Request | Notification | Response | Invalid


@final
class Batch(msgspec.Struct, frozen=True):
    """A JSON array of messages, at least one; their answers go back in one array (A3)."""

    messages: tuple[Message, ...]


Frame: TypeAlias = Message | Batch | Malformed
