"""What the failure of a provider means for the user. No message holds a key (P10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from pydantic_ai import exceptions as e

from holdfast.diagnostics.masking import without_environment_keys
from holdfast.errors import ModelFailed

if TYPE_CHECKING:
    from holdfast.model import StopReason

ADVICE: tuple[tuple[type[e.ModelAPIError], str], ...] = (
    (e.ModelAuthenticationError, "refused our credentials; check the API key, and that it may use this model"),
    (e.ModelQuotaExceededError, "says that the account's credit is used up"),
    (e.ModelRateLimitError, "wants us to slow down; wait a while and try again"),
    (e.ModelContextWindowExceededError, "says that this conversation is longer than it can take; begin a new one"),
    (e.ModelNotFoundError, "does not know this model; check its name and the address of the provider"),
    (e.ModelOverloadedError, "is overloaded; try again later"),
    (e.ModelUnavailableError, "is not available now; try again later"),
    (e.ModelServerError, "failed; try again"),
    (e.ModelTimeoutError, "did not answer in time; try again"),
    (e.ModelRequestTimeout, "did not answer in time; try again"),
    (e.ModelConnectionError, "cannot be reached, or broke off; check the network and the address, then try again"),
    (e.ModelRequestRejectedError, "did not accept the request"),
)
"""What happened and what to do, by the kind of failure, the more special first."""

MAX_DETAIL = 300
"""How much of what a provider says is passed on."""


def failure_of(error: Exception) -> ModelFailed | None:
    """Return what the user is told of an error; None where it is no failure of a model or its provider."""
    if isinstance(error, e.FallbackExceptionGroup):
        found = [one for one in error.exceptions if isinstance(one, e.ModelAPIError)]
        return failure_of(found[-1]) if found else None
    if isinstance(error, e.ModelAPIError):
        what = next((advice for kind, advice in ADVICE if isinstance(error, kind)), "failed")
        detail = "" if isinstance(error, e.ModelAuthenticationError) else _detail(error)
        status = hint = ""
        if isinstance(error, e.ModelHTTPError):
            status = f" (HTTP {error.status_code})"
            hint = f" Did you mean {error.suggested_model_id}?" if error.suggested_model_id else ""
        said = f"The provider of {error.model_name} {what}{status}{detail}.{hint} The conversation is kept."
        return ModelFailed(said)
    if isinstance(error, e.UnexpectedModelBehavior):
        return ModelFailed(
            f"The model cannot go on: {without_environment_keys(error.message)[:MAX_DETAIL]}. The conversation is kept."
        )
    if isinstance(error, e.UserError | ImportError):
        return ModelFailed(f"The model cannot be used: {without_environment_keys(str(error))}")
    return None


def stop_reason_of(error: Exception, finish_reason: str | None) -> StopReason | None:
    """Return why a turn ends that was stopped on purpose; None where the error is a failure."""
    if isinstance(error, e.UsageLimitExceeded):
        return "max_tokens" if "token" in error.message.partition(".")[0] else "max_turn_requests"
    if isinstance(error, e.ContentFilterError) or finish_reason == "content_filter":
        return "refusal"
    if isinstance(error, e.IncompleteToolCall) or (
        finish_reason == "length" and isinstance(error, e.UnexpectedModelBehavior)
    ):
        return "max_tokens"
    if isinstance(error, e.RunCancelled):
        return "cancelled"
    return None


def _detail(error: e.ModelAPIError) -> str:
    body: Any = error.body
    while isinstance(body, dict) and "error" in body:
        body = cast("Any", body["error"])
    said = cast("dict[str, Any]", body).get("message") if isinstance(body, dict) else None
    return (
        f": {without_environment_keys(said.strip())[:MAX_DETAIL].rstrip('.')}"
        if isinstance(said, str) and said.strip()
        else ""
    )
