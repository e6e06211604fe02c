"""The one place where an exception becomes a JSON-RPC error (P6)."""

from __future__ import annotations

import logging
import os
from asyncio import CancelledError

import msgspec
from msgspec import UNSET, Raw

from holdfast.errors import InternalError, RequestCancelled, RequestError
from holdfast.jsonrpc import ErrorObject

log: logging.Logger = logging.getLogger(__name__)

CANCELLED = ErrorObject(RequestCancelled.code, "Request cancelled")
ENDED = ErrorObject(
    RequestCancelled.code,
    "The connection ends before this is answered; connect again, and see what became of it before you repeat it",
)


def error_for(exception: BaseException, doing: str) -> ErrorObject:
    """Return the error that tells the other side what went wrong, and nothing it should not know.

    Any exception but a `RequestError` is logged whole, as what failed while `doing`; the other side gets only the
    reference under which it is logged. The error can always be encoded: the names of files are not always text.
    """
    if isinstance(exception, CancelledError):
        return CANCELLED
    if isinstance(exception, RequestError):
        try:
            data = UNSET if exception.data is None else Raw(msgspec.json.encode(exception.data))
        except Exception:
            log.exception("The data of a %s cannot be encoded; it is left out", type(exception).__name__)
            data = UNSET
        return ErrorObject(exception.code, exception.message.encode(errors="replace").decode(), data)
    reference = f"ref_{os.urandom(8).hex()}"
    log.error("%s failed (reference %s)", doing, reference, exc_info=exception, extra={"reference": reference})
    data = Raw(b'{"reference":"%s"}' % reference.encode())
    return ErrorObject(InternalError.code, f"Internal error (reference {reference})", data)
