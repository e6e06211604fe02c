"""The endpoint of a remote agent, over plain HTTP requests; the other profiles run over its WebSocket."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast_app.check.checks.registry import check
from holdfast_app.check.outcomes import NotTested
from holdfast_app.check.trial import fail, initialize_params

if TYPE_CHECKING:
    from holdfast_app.check.remote import Endpoint
    from holdfast_app.check.trial import Trial


def _endpoint(trial: Trial) -> Endpoint:
    endpoint = getattr(trial.target, "endpoint", None)
    if endpoint is None:
        raise NotTested("the agent is not remote; see --url")
    return endpoint


@check("remote-token")
async def remote_token(trial: Trial) -> None:
    """Knock without a token, and with a wrong one."""
    endpoint = _endpoint(trial)
    if not endpoint.has_token:
        raise NotTested("no token was given; see --token-file")
    for headers in (None, {"Authorization": "Bearer holdfast-check-wrong"}):
        status = (await endpoint.post(initialize_params(trial.version), token=False, headers=headers)).status
        if status not in (401, 403):
            fail("401 or 403", status)


@check("remote-connection-id")
async def remote_connection_id(trial: Trial) -> None:
    """Say hello by HTTP."""
    answer = await _endpoint(trial).post(initialize_params(trial.version))
    if answer.status != 200 or "acp-connection-id" not in answer.headers:
        fail("200 with Acp-Connection-Id", f"{answer.status} with {sorted(answer.headers)}")


@check("remote-origin")
async def remote_origin(trial: Trial) -> None:
    """Knock as a page of another site would."""
    evil = {"Origin": "https://evil.example"}
    status = (await _endpoint(trial).post(initialize_params(trial.version), headers=evil)).status
    if status not in (401, 403):
        fail("403", status)


@check("remote-unknown-connection")
async def remote_unknown_connection(trial: Trial) -> None:
    """Name a connection that does not exist."""
    headers = {"Acp-Connection-Id": "holdfast-check-no-such-connection"}
    status = (await _endpoint(trial).post({}, method="session/list", headers=headers)).status
    if status != 404:
        fail("404", status)


@check("remote-load")
async def remote_load(trial: Trial) -> None:
    """Talk over one connection, and load over another."""
    from holdfast_app.check.checks.restoring import twice  # noqa: PLC0415  (they are scripts of another profile)

    _endpoint(trial)
    both = await twice(trial, trial.prompts.talk)
    if both.live.agent.strip() != both.replayed.agent.strip():
        fail(f"{both.live.agent!r}", repr(both.replayed.agent))
