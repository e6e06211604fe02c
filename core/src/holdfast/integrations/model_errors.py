"""What the failure of a model's provider means for the user, told by what clients' exceptions have in common.

The clients of OpenAI, Anthropic and others raise exceptions with a `status_code`, and with names like
`APIConnectionError`; no client is imported for it. No message holds a key (P10).
"""

from __future__ import annotations

from typing import Any, cast

from holdfast.diagnostics.masking import without_environment_keys
from holdfast.errors import ModelFailed

_BY_STATUS = {
    401: "refused our credentials; check the API key, and that it may use this model",
    402: "says that the account's credit is used up",
    403: "refused our credentials; check the API key, and that it may use this model",
    404: "does not know this model; check its name and the address of the provider",
    408: "did not answer in time; try again",
    413: "says that this conversation is longer than it can take; begin a new one",
    429: "wants us to slow down, or the account's credit is used up; wait a while and try again",
    503: "is not available now; try again later",
    529: "is overloaded; try again later",
}
_BY_NAME = {
    "APITimeoutError": "did not answer in time; try again",
    "APIConnectionError": "cannot be reached, or broke off; check the network and the address, then try again",
    "APIError": "failed while it answered; try again",
}
_SECRETIVE = {401, 403}
"""What a provider says then may repeat the key."""

_MAX_DETAIL = 300
_MAX_CAUSES = 8


def model_failure(error: BaseException) -> ModelFailed | None:
    """Return what the user is told of an error; None where it is no failure of a model's provider."""
    cause: BaseException | None = error
    for _ in range(_MAX_CAUSES):
        if cause is None:
            return None
        if (advice := _advice(cause)) is not None:
            return ModelFailed(f"The provider of the model {advice}. The conversation is kept.")
        cause = cause.__cause__
    return None


def _advice(error: BaseException) -> str | None:
    status: object = getattr(error, "status_code", None)
    names = [kind.__name__ for kind in type(error).__mro__]
    if isinstance(status, int) and not isinstance(status, bool) and "Exception" in names:
        what = _BY_STATUS.get(status, "failed; try again" if status >= 500 else "did not accept the request")
        return f"{what} (HTTP {status}){'' if status in _SECRETIVE else _detail(error)}"
    return next((_BY_NAME[name] for name in names if name in _BY_NAME), None)


def _detail(error: BaseException) -> str:
    body: object = getattr(error, "body", None)
    if isinstance(body, dict) and "error" in body:
        body = cast("Any", body)["error"]
    said = cast("dict[str, Any]", body).get("message") if isinstance(body, dict) else None
    if not isinstance(said, str) or not said.strip():
        return ""
    return f": {without_environment_keys(said.strip())[:_MAX_DETAIL].rstrip('.')}"
