"""On a server, the files and commands that an agent asks of its client are the server's own (H10, H11)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from app.tests.support.tenants import told
from app.tests.support.wrapping import wrapping
from core.tests.support.remote import served
from holdfast.errors import InvalidParams
from holdfast.server.audit import REFUSALS, AuditLog
from holdfast.workspace import Workspace
from holdfast.workspace.allowed import AllowedDirectories
from holdfast_app.sandbox import Hosting

if TYPE_CHECKING:
    from pathlib import Path

    from core.tests.support.acp import Client

pytestmark = pytest.mark.requirement("H11")


def reading(path: object) -> str:
    return f"request fs/read_text_file {json.dumps({'path': str(path)})}"


@pytest.mark.requirement("H10")
@pytest.mark.parametrize("version", [1, 2])
async def test_files_and_commands_are_served_in_the_sessions_directories_alone(version: int, tmp_path: Path) -> None:
    work, other = tmp_path / "work", tmp_path / "other"
    for directory in (work / "project", other):
        directory.mkdir(parents=True)
    (work / "project" / "a.txt").write_text("one\ntwo\n")
    (work / "beside.txt").write_text("beside")
    (work / "project" / "out").symlink_to(work / "beside.txt")
    used: list[tuple[str, ...]] = []

    def on_use(principal: str, session: str, method: str, what: str) -> None:
        used.append((principal, session, method, what))

    hosting = Hosting(lambda _: AllowedDirectories([str(work)]), on_use=on_use)
    async with wrapping(tmp_path, hosting=hosting) as wrapped:
        client: Client = await wrapped.client(version)  # which offers neither files nor terminals
        session = await client.new(cwd=str(work / "project"))
        assert "one\\ntwo" in await told(client, session, reading(work / "project" / "a.txt"))
        for path in (work / "beside.txt", work / "project" / "out", "/etc/passwd", other, "../beside.txt"):
            assert '"code"' in await told(client, session, reading(path))
        writing = {"path": str(work / "project" / "new" / "b.txt"), "content": "three"}
        await told(client, session, f"request fs/write_text_file {json.dumps(writing)}")
        assert (work / "project" / "new" / "b.txt").read_text() == "three"
        assert str(work / "project") in await told(client, session, "run pwd; echo $HOLDFAST_SECRET")
        assert "terminal_update" in str(client.updates()) or version == 1
        assert ("terminal/create", "/bin/sh") in {use[2:] for use in used}
        assert wrapped.starts == 1


async def test_a_root_that_was_led_elsewhere_after_it_was_allowed_is_not_served(tmp_path: Path) -> None:
    work, other = tmp_path / "work", tmp_path / "other"
    (work / "project").mkdir(parents=True)
    other.mkdir()
    (other / "a.txt").write_text("not yours")
    hosting = Hosting(lambda _: AllowedDirectories([str(work)]))
    (work / "project").rmdir()
    (work / "project").symlink_to(other)
    with pytest.raises(InvalidParams, match="not where it was"):
        hosting.open("ada", "s").work_in([str(work / "project")])
    assert not Workspace.resolve(str(work / "project")).lies_in(AllowedDirectories([str(work)]))
    assert Workspace.resolve(str(work / "not there yet")).lies_in(AllowedDirectories([str(work)]))


async def test_the_principals_of_a_server_have_agents_of_their_own(tmp_path: Path) -> None:
    hosting = Hosting(lambda _: AllowedDirectories([str(tmp_path)]))
    async with wrapping(tmp_path, hosting=hosting) as wrapped:
        for principal in ("ada", "bob", "ada"):
            client = await wrapped.client(principal=principal)
            await client.prompt(await client.new(cwd=str(tmp_path)), "say hello")
        assert wrapped.starts == 2


async def test_it_is_noted_who_opened_asked_answered_and_deleted(tmp_path: Path) -> None:
    audit = AuditLog(tmp_path / "audit.jsonl")
    async with served(audit=audit) as remote:
        client = await remote.client(version=1)
        session = await client.new(cwd="/tmp")
        client.answers["session/request_permission"] = lambda params: {
            "outcome": {"outcome": "selected", "optionId": params["options"][0]["optionId"]}
        }
        await client.prompt(session, "/ask very private words")
        await client.ask("session/load", {"sessionId": session, "cwd": "/tmp", "mcpServers": []})
        await client.refusal("session/load", {"sessionId": "sess_none", "cwd": "/tmp", "mcpServers": []})
        await client.ask("session/delete", {"sessionId": session})
        assert (await remote.ask("GET", token=None)).status == 401
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    did = [(line["who"], line["did"]) for line in lines]
    for expected in ("connect", "session/new", "session/prompt", "permission", "session/load", "session/delete"):
        assert ("ada", expected) in did, did
    assert (None, "refused") in did
    answered = next(line for line in lines if line["did"] == "permission")
    assert answered["session"] == session and answered["answer"].startswith("allow")
    assert next(line for line in lines if line.get("error"))["error"] == -32002
    assert "private" not in (tmp_path / "audit.jsonl").read_text()


@pytest.mark.requirement("P10", "H11")
async def test_no_secret_of_a_link_and_no_control_character_is_noted(tmp_path: Path) -> None:
    secret = "Zk3-_9" + "a1B2c3D4e5F6g7H8i9J0a1B2c3D4e5F6g7H8i"
    audit = AuditLog(tmp_path / "audit.jsonl")
    async with served(audit=audit, pages=nothing_here) as remote:
        for method, path in (
            *(("POST", f"/share/{secret}"), ("PUT", f"/link/{secret}"), ("DELETE", f"//share/{secret}/x")),
            *(
                ("POST", "/share/short"),
                ("POST", f"/any/where/link/{secret}"),
                ("POST", "/a%1b%5b2J%c2%9b31m%e2%80%ae"),
            ),
        ):
            assert (await remote.ask(method, path)).status == 404
    written = (tmp_path / "audit.jsonl").read_text()
    assert secret not in written and "short" not in written
    paths = [json.loads(line)["path"] for line in written.splitlines()]
    assert paths[:2] == ["/share/…", "/link/…"] and paths[-1].startswith("/a\x1b[2J")
    assert not {"\x1b", "\x9b", "\u202e"} & set(written)


async def nothing_here(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 404, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def test_the_audit_log_is_rotated_by_moving_it_and_strangers_cannot_fill_it(tmp_path: Path) -> None:
    now = 0.0
    audit = AuditLog(tmp_path / "audit.jsonl", clock=lambda: now)
    audit.record("connect", "ada")
    (tmp_path / "audit.jsonl").rename(tmp_path / "audit.1")
    audit.record("connect", "bob", session="x" * 9_999)
    assert "bob" not in (tmp_path / "audit.1").read_text()
    line = json.loads((tmp_path / "audit.jsonl").read_text())
    assert line["who"] == "bob" and len(line["session"]) == 1_000
    assert (tmp_path / "audit.jsonl").stat().st_mode & 0o077 == 0
    for _ in range(1_000):
        audit.refuse("token", address="192.0.2.1")
    now = 61.0
    audit.refuse("token")
    lines = (tmp_path / "audit.jsonl").read_text().splitlines()
    assert len(lines) == 1 + REFUSALS + 2
    assert json.loads(lines[-2])["more"] == 1_000 - REFUSALS
    audit.close()
