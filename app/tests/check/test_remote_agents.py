"""Remote agents: ours passes over its WebSocket, and each server with one fault fails that."""

from __future__ import annotations

import asyncio
import socket
import sys
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from app.tests.support.broken_agents import REMOTE_BREAKS
from app.tests.support.checked_agent import good_agent
from core.tests.support.web_links import serving
from holdfast.agent.port import AuthorAgent
from holdfast.errors import UsageError
from holdfast.server import Host
from holdfast.server.remote import Everybody, Names, RemoteServer, Workspaces
from holdfast_app.check import CheckSettings, Outcome, Prompts, run_checks
from holdfast_app.check.remote import UrlTarget

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from holdfast.server.remote import RemoteRequest

pytestmark = pytest.mark.timeout(300)

PROMPTS = Prompts(talk="Pebbles are small", tool="/tool", ask="/ask", long="/long", think="/think")
TOKEN = "hf_right"


class OneToken:
    """Lets in whoever has the one token."""

    async def principal(self, request: RemoteRequest) -> str | None:
        return "ada" if request.bearer == TOKEN else None


@asynccontextmanager
async def served(folder: Path, broken: str = "") -> AsyncGenerator[UrlTarget]:
    from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

    authenticator: Any = Everybody() if broken == "remote-token" else OneToken()
    host = Host(AuthorAgent(good_agent()), store=str(folder / "sessions.db"))
    work = Workspaces([str(folder)])
    server = RemoteServer(host, names=Names([]), authenticator=authenticator, workspaces=work)
    app: Any = server
    if broken:
        app = REMOTE_BREAKS[broken](server)
    protocol: dict[str, Any] = {"ws": WebSocketsSansIOProtocol} if broken else {}
    async with serving(app, **protocol) as port:
        server.names = Names([f"127.0.0.1:{port}"])
        yield UrlTarget(f"ws://127.0.0.1:{port}/acp", TOKEN)
        await server.close(1.0)


def settings(*profiles: str, cwd: Path | None = None) -> CheckSettings:
    where = None if cwd is None else str(cwd)
    return CheckSettings(profiles, prompts=PROMPTS, cwd=where, deadline=30.0, quiet=0.05, jobs=4)


async def test_our_server_passes(tmp_path: Path) -> None:
    async with served(tmp_path) as target:
        report = await run_checks(target, settings("remote", "sessions", cwd=tmp_path))
    assert not [row for row in report.results if row.outcome is not Outcome.PASSED]
    assert {row.version for row in report.results} == {1, 2}


@pytest.mark.parametrize("broken", REMOTE_BREAKS)
async def test_a_server_with_one_fault_fails_one_requirement(broken: str, tmp_path: Path) -> None:
    async with served(tmp_path, broken) as target:
        report = await run_checks(target, settings("remote", cwd=tmp_path))
    assert {row.id for row in report.results if row.outcome is not Outcome.PASSED} == {broken}


async def test_an_address_where_nobody_is_cannot_be_checked() -> None:
    with pytest.raises(UsageError, match="cannot be reached"):
        await run_checks(UrlTarget("ws://127.0.0.1:9/acp", None), settings("remote"))


async def test_a_server_that_never_answers_the_handshake_cannot_be_checked() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:  # whoever connects waits to be accepted
        url = f"ws://127.0.0.1:{listening.getsockname()[1]}/acp"
        with pytest.raises(UsageError, match="nothing came within 1 s"):
            await run_checks(UrlTarget(url, None), replace(settings("remote"), deadline=1.0))


async def test_a_token_that_is_wrong_is_told_before_the_check(tmp_path: Path) -> None:
    async with served(tmp_path) as target:
        with pytest.raises(UsageError, match=r"401.*this token was not taken"):
            await run_checks(UrlTarget(target.name, "hf_wrong"), settings("remote", cwd=tmp_path))
        with pytest.raises(UsageError, match=r"401.*give its token by --token-file"):
            await run_checks(UrlTarget(target.name, None), settings("remote", cwd=tmp_path))


async def test_a_server_of_the_same_user_on_this_machine_is_checked_without_a_token(tmp_path: Path) -> None:
    (tmp_path / "local.token").write_text(f"{TOKEN}\n")
    env = {"HOLDFAST_STORE": str(tmp_path / "s.db"), "PATH": "/usr/bin:/bin"}
    async with served(tmp_path) as target:
        url = target.name.replace("ws:", "http:")
        rules = ("--only", "initialize", "--protocol", "1", "--cwd", str(tmp_path))
        checking = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "holdfast", "check", "--url", url, *rules, env=env, stderr=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        printed = await checking.communicate()
    assert checking.returncode == 0, printed
