"""What an agent asks of its client: files and terminals."""

from __future__ import annotations

from pathlib import PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING

from holdfast_app.check.checks.prompts import ALLOWING
from holdfast_app.check.checks.registry import check
from holdfast_app.check.outcomes import Refused
from holdfast_app.check.trial import fail, not_done
from holdfast_app.check.wire import objects

if TYPE_CHECKING:
    from holdfast_app.check.trial import Trial
    from holdfast_app.check.wire import Answerer, Json

SERVICES = ("fs/", "terminal/")


@check("services-not-offered")
async def services_not_offered(trial: Trial) -> None:
    """Offer nothing, and look what is asked for."""
    session = await (await trial.connect(ALLOWING)).new()
    for prompt in (trial.prompts.talk, trial.prompts.tool):
        await session.prompt(prompt)
    asked = [method for method, _ in session.wire.asked if method.startswith(SERVICES)]
    if asked:
        fail("no request for what the client does not offer", asked[0])


@check("paths-absolute")
async def paths_absolute(trial: Trial) -> None:
    """Offer everything, and look at the paths: in requests, locations and diffs."""
    files: dict[str, Answerer] = {"fs/read_text_file": _reads, "fs/write_text_file": _writes}
    session = await (await trial.connect({**ALLOWING, **files}, offers=("read", "write", "terminal"))).new()
    await session.prompt(trial.prompts.tool)
    named = [params.get("path") for method, params in session.wire.asked if method.startswith("fs/")]
    for update in session.updates():
        named += [location.get("path") for location in objects(update.body.get("locations"))]
    relative = [path for path in named if isinstance(path, str) and not _is_absolute(path)]
    if relative:
        fail("absolute paths", relative[0])


@check("client-refuses")
async def client_refuses(trial: Trial) -> None:
    """Offer everything and refuse it."""

    def refuse(params: dict[str, Json]) -> Json:
        del params
        raise Refused("", -32603, "the client cannot do this now")

    methods = ("fs/read_text_file", "fs/write_text_file", "terminal/create")
    answerers = {**ALLOWING, **dict.fromkeys(methods, refuse)}
    session = await (await trial.connect(answerers, offers=("read", "write", "terminal"))).new()
    turn = await session.prompt(trial.prompts.tool)
    if turn.stop_reason is None:
        fail("a stop reason", "none")
    told = session.told()
    if not told.calls:
        raise not_done("used no tool", "--prompt-tool", told.agent)


def _reads(params: dict[str, Json]) -> Json:
    del params
    return {"content": "pebble"}


def _writes(params: dict[str, Json]) -> Json:
    del params
    return {}


def _is_absolute(path: str) -> bool:
    return PurePosixPath(path).is_absolute() or PureWindowsPath(path).is_absolute()
