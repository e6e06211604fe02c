"""JSON-RPC 2.0 as values: bytes become a frame, a message becomes bytes.

`decode` accepts any bytes whatever and never raises: what it cannot read comes back as `Malformed` or `Invalid`,
carrying the error to answer with. Parameters and results stay undecoded (`msgspec.Raw`) until somebody who knows
their type asks. Nothing here does input or output, or knows any method.
"""

from holdfast.jsonrpc.messages import (
    MAX_BATCH_BYTES,
    MAX_BATCH_ENTRIES,
    MAX_DEPTH,
    Batch,
    ErrorObject,
    Frame,
    Id,
    Invalid,
    Malformed,
    Message,
    Notification,
    Request,
    Response,
    decode,
    encode_batch,
    encode_error,
    encode_notification,
    encode_request,
    encode_result,
    oversized,
    salvaged,
)

__all__ = [
    "MAX_BATCH_BYTES",
    "MAX_BATCH_ENTRIES",
    "MAX_DEPTH",
    "Batch",
    "ErrorObject",
    "Frame",
    "Id",
    "Invalid",
    "Malformed",
    "Message",
    "Notification",
    "Request",
    "Response",
    "decode",
    "encode_batch",
    "encode_error",
    "encode_notification",
    "encode_request",
    "encode_result",
    "oversized",
    "salvaged",
]
