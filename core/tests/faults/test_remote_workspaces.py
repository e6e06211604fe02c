"""A principal works in its own directories, whatever its client asks for, over every transport (H10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from core.tests.support.remote import WAYS, served
from holdfast.model import LOCAL
from holdfast.server.remote import Everybody, TokenFile, Workspaces

if TYPE_CHECKING:
    from pathlib import Path

    from core.tests.support.acp import Client

pytestmark = pytest.mark.requirement("H10")


def opening(cwd: object, **more: Any) -> dict[str, Any]:
    return {"cwd": str(cwd), "mcpServers": [], **more}


async def refused(client: Client, method: str, params: dict[str, Any]) -> str:
    error = await client.refusal(method, params)
    assert error.code == -32602
    return error.message


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("way", WAYS)
async def test_a_directory_that_is_not_ones_own_is_refused_in_every_request_that_opens_a_session(
    way: str, version: int, tmp_path: Path
) -> None:
    ada, bob = tmp_path / "ada", tmp_path / "bob"
    for directory in (ada / "project", bob):
        directory.mkdir(parents=True)
    (ada / "door").symlink_to(bob)
    (ada / "inner").symlink_to(ada / "project")
    foreign: list[Any] = ["/", "/etc", bob, tmp_path, f"{ada}x", f"{ada}/../bob", f"{ada}/door", f"{ada}/door/..",
                          f"{ada}/project/../../bob", f"{ada}/none/../../bob", r"C:\\"]  # fmt: skip
    async with served(way=way, workspaces=Workspaces([f"{tmp_path}/{{principal}}"])) as remote:
        client = await remote.client(way, version)
        session = await client.new(cwd=str(ada / "project"))
        for directory in foreign:
            message = await refused(client, "session/new", opening(directory))
            assert str(ada) in message and "bob'" not in message
            for method in ("session/load", "session/resume", "session/fork"):
                await refused(client, method, opening(directory, sessionId=session))
                more = opening(ada / "project", sessionId=session, additionalDirectories=[str(directory)])
                await refused(client, method, more)
            await refused(client, "session/new", opening(ada, additionalDirectories=[str(ada), str(directory)]))
        assert await client.new(cwd=str(ada))
        assert await client.new(cwd=str(ada / "inner"))
        assert await client.new(cwd=str(ada / "not there yet"))
        await client.prompt(session, "hello")


async def test_whoever_was_given_nothing_has_one_directory_of_his_own_and_no_other(tmp_path: Path) -> None:
    async with served(workspaces=Workspaces(own=tmp_path / "workspaces")) as remote:
        client = await remote.client(token="ada")
        assert str(tmp_path / "workspaces" / "ada") in await refused(client, "session/new", opening("/"))
        assert await client.new(cwd=str(tmp_path / "workspaces" / "ada"))
        assert (tmp_path / "workspaces" / "ada").stat().st_mode & 0o077 == 0
        for name in ("..", ".", "a/b"):
            other = await remote.client(token=name)
            await refused(other, "session/new", opening(tmp_path))
        assert {path.name for path in (tmp_path / "workspaces").iterdir()} == {"ada"}


async def test_without_any_word_about_directories_the_user_of_this_machine_is_free_and_nobody_else(
    tmp_path: Path,
) -> None:
    async with served(workspaces=None, authenticator=Everybody()) as remote:
        assert await (await remote.client()).new(cwd=str(tmp_path))
    async with served(workspaces=None) as remote:
        assert "no directory for you" in await refused(await remote.client(), "session/new", opening(tmp_path))


async def test_the_file_of_tokens_says_where_each_may_work_and_is_heard_at_once(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.toml")
    ada = tokens.add("ada", [str(tmp_path / "a")])
    bob = tokens.add("bob")
    workspaces = Workspaces([str(tmp_path / "all")], named=tokens.workspaces)
    async with served(authenticator=tokens, workspaces=workspaces) as remote:
        client = await remote.client(token=ada)
        await client.new(cwd=str(tmp_path / "a"))
        await refused(client, "session/new", opening(tmp_path / "all"))
        client = await remote.client(token=bob)
        await client.new(cwd=str(tmp_path / "all"))
        await refused(client, "session/new", opening(tmp_path / "a"))
        tokens.add("bob", [str(tmp_path / "b")])
        await (await remote.client(token=bob)).new(cwd=str(tmp_path / "b"))
    tokens.remove("ada")
    assert tokens.workspaces("ada") == ()
    assert tokens.workspaces("bob") == (str(tmp_path / "b"),)
    assert Workspaces(named=tokens.workspaces).of(LOCAL) is None


@pytest.mark.requirement("P12")
async def test_no_program_that_a_client_names_is_started_for_those_who_may_not_work_anywhere(tmp_path: Path) -> None:
    """An MCP server is a program of the client's choice, and would run as the user of the server."""
    proof = tmp_path / "proof"
    server = {"name": "evil", "command": "/bin/sh", "args": ["-c", f"touch {proof}"], "env": []}

    async def story(*, programs: bool) -> None:
        async with served(workspaces=Workspaces([str(tmp_path)]), programs=programs) as remote:
            newer, older = await remote.client(version=2), await remote.client(version=1)
            session = await newer.new(cwd=str(tmp_path), mcpServers=[{"type": "stdio", **server}])
            if not programs:
                await newer.until(lambda: "evil" in str(newer.updates("notice")))
            await newer.prompt(session, "/mcp")
            await older.prompt(await older.new(cwd=str(tmp_path), mcpServers=[server]), "/mcp")

    await story(programs=False)
    assert not proof.exists()
    await story(programs=True)
    assert proof.exists()
