"""`holdfast sessions export` and `import`: what is written, and that it makes the same session again."""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from app.tests.support.commands import HERE, TOOLS, a_store, live_at, sessions
from core.tests.support.acp import serving
from core.tests.support.engines import engine_process
from core.tests.support.sessions import ScriptedAgent, begin, engine_at, run
from holdfast import Agent, Turn
from holdfast.format import Line
from holdfast.model import SessionInfo, SessionState, new_session_id
from holdfast.store import open_store
from holdfast_app.cli.sessions.export_import import FORMATS

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    live_at(tmp_path / "s.db", monkeypatch, tmp_path)
    return tmp_path / "s.db"


def make(place: Path, *turns: tuple[str, ...]) -> list[str]:
    return asyncio.run(a_store(place, *((HERE, turn) for turn in turns)))


async def rich_session(place: Path) -> str:
    """Make a session that has everything a file must keep."""
    async with engine_at(place, ScriptedAgent()) as engine:
        session = await engine.create(HERE, ["/other"])
        await run(engine, session, *TOOLS, "usage 12", "remember count 3", "fail on purpose")
        await session.set_option("units", "f")
        await session.rename("A title é 日本\u202e")
        session.state.permissions["rocket"] = True
        await session.save()
        await engine.archive(session.id, archived=True)
        return session.id


def raw(session: str, *arguments: str) -> list[Any]:
    return [json.loads(line) for line in sessions("show", session, "--raw", *arguments).out.splitlines()]


# export


def test_a_session_is_written_to_stdout_as_markdown(place: Path) -> None:
    (only,) = make(place, ("\n".join(TOOLS), f"say my token is {SECRET}"))
    done = sessions("export", only)
    assert done.status == 0
    assert done.out.startswith("# say I will look.\n\n- Directory: /project\n")
    assert "## Tool: Read thermometer (read, completed)" in done.out and "> It is 21 degrees." in done.out
    assert SECRET not in done.out and "[redacted: GitHub token]" in done.out
    assert "2 secrets were taken out; --no-redact leaves them in." in done.err
    assert SECRET in sessions("export", only, "--no-redact").out


@pytest.mark.requirement("P10")
@pytest.mark.parametrize("as_format", FORMATS)
@pytest.mark.parametrize("title", ["given", "from the prompt"])
def test_secrets_are_taken_out_of_every_format_unless_they_are_wanted(as_format: str, title: str, place: Path) -> None:
    (only,) = make(place, (f"say PASSWORD=hunter22 {SECRET}\nusage 3", f"title {SECRET}"))
    if title == "given":
        sessions("rename", only, f"see {SECRET}")
    done = sessions("export", only, "--format", as_format)
    assert "hunter22" not in done.out and SECRET not in done.out
    assert "[redacted: " in done.out
    assert "secrets were taken out" in done.err
    kept = sessions("export", only, "--format", as_format, "--no-redact")
    assert "hunter22" in kept.out and SECRET in kept.out and kept.err == ""


def test_a_file_is_written_whole_or_not_at_all_and_never_over_another(place: Path, tmp_path: Path) -> None:
    (only,) = make(place, ("say hello",))
    file = tmp_path / "talk.html"
    done = sessions("export", only, "-o", str(file))
    assert (done.status, done.out) == (0, "")
    assert str(file) in done.err
    assert file.read_text().startswith("<!doctype html>")
    again = sessions("export", only, "-o", str(file))
    assert again.status == 1 and "--force" in again.err
    assert sessions("export", only, "-o", str(file), "--force", "--format", "markdown").status == 0
    assert file.read_text().startswith("# say hello")
    missing = sessions("export", only, "-o", str(tmp_path / "no" / "where.md"))
    assert missing.status == 1 and missing.err.startswith("holdfast: ") and missing.err.count("\n") == 1
    assert sorted(file.name for file in tmp_path.iterdir() if file.name.startswith((".", "talk"))) == ["talk.html"]


def test_several_sessions_go_into_a_directory_one_file_each(place: Path, tmp_path: Path) -> None:
    one, two = make(place, ("say ../../Evil: é/.. name",), ("say two",))
    sessions("rename", two, "")
    assert "-o DIR" in sessions("export", one, two).err
    (tmp_path / "out").mkdir()
    assert sessions("export", one, two, "-o", str(tmp_path / "out"), "--json").status == 0
    names = sorted(file.name for file in (tmp_path / "out").iterdir())
    assert names == [f"say-evil-é-name-{one[5:15]}.json", f"session-{two[5:15]}.json"]


@pytest.mark.requirement("P10")
def test_a_secret_in_a_title_gets_neither_into_a_file_nor_into_its_name(place: Path, tmp_path: Path) -> None:
    (only,) = make(place, (f"say {SECRET} please",))
    assert SECRET in sessions("list", "--all", "--json").json["sessions"][0]["title"], "as it was written"
    (tmp_path / "out").mkdir()
    for as_format in FORMATS:
        assert sessions("export", only, "-o", str(tmp_path / "out"), "--format", as_format).status == 0
    files = list((tmp_path / "out").iterdir())
    assert len(files) == 3
    for file in files:
        assert "redacted-github-token-please" in file.name and SECRET not in file.read_text()
        assert SECRET[4:].lower() not in file.name.lower()
    page = next(file for file in files if file.suffix == ".html").read_text()
    assert "<title>say [redacted: GitHub token] please</title>" in page


@pytest.mark.requirement("P10")
@pytest.mark.skipif(os.name != "posix", reason="about the rights of POSIX systems")
def test_a_file_can_be_read_by_nobody_else_and_that_is_said(place: Path, tmp_path: Path) -> None:
    (only,) = make(place, ("say hello",))
    file = tmp_path / "talk.md"
    for force in ((), ("--force",)):
        assert "nobody but you can read it" in sessions("export", only, "-o", str(file), *force).err
        assert file.stat().st_mode & 0o777 == 0o600
        file.chmod(0o644)


def test_a_markdown_file_loads_no_images(place: Path) -> None:
    (only,) = make(place, ("say see ![x](https://evil.example/pixel.png) and `![code](y)`",))
    written = sessions("export", only).out
    assert "> see \\![x](https://evil.example/pixel.png) and `![code](y)`" in written


async def test_what_a_running_turn_has_said_so_far_is_written_too(place: Path) -> None:
    agent = ScriptedAgent()
    async with engine_at(place, agent) as engine:
        session = await engine.create(HERE)
        begin(engine, session, "say half", "wait gate")
        await agent.at("gate")
        assert "> half\n" in (await asyncio.to_thread(sessions, "export", session.id)).out


# import


def test_a_session_comes_back_as_it_was(place: Path, tmp_path: Path) -> None:
    only = asyncio.run(rich_session(place))
    file, other = str(tmp_path / "s.json"), str(tmp_path / "other.db")
    sessions("export", only, "-o", file, "--no-redact")
    done = sessions("import", file, "--store", other, "--cwd", HERE)
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines()[0] == f"{only} was imported from {file}"
    again = sessions("export", only, "--json", "--no-redact", "--store", other).json
    before = json.loads((tmp_path / "s.json").read_text())
    for gives_rights in ("permissions", "options", "memory"):
        del before["state"][gives_rights]
    before["session"]["additionalDirectories"] = []
    assert again == before
    assert raw(only, "--store", other) == raw(only)
    assert sessions("search", "21", "--all", "--archived", "--json", "--store", other).json["hits"]


async def test_a_session_that_was_imported_can_be_gone_on_with(place: Path, tmp_path: Path) -> None:
    only = await rich_session(place)
    file, other = str(tmp_path / "s.json"), tmp_path / "other.db"
    await asyncio.to_thread(sessions, "export", only, "-o", file)
    moved = str(tmp_path)
    await asyncio.to_thread(sessions, "import", file, "--store", str(other), "--cwd", ".")
    async with engine_at(other) as engine:
        session = await engine.restore(only, moved)
        assert (session.state.options, session.state.permissions, session.state.memory) == ({}, {}, {})
        await run(engine, session, "say more")
        assert (await engine.store.get(only)).info.messages == 5


def test_a_session_that_is_here_already_is_left_alone_and_another_one_gets_a_new_id(
    place: Path, tmp_path: Path
) -> None:
    (only,) = make(place, ("say one",))
    file = str(tmp_path / "s.json")
    sessions("export", only, "-o", file)
    same = sessions("import", file, "--json").json["sessions"]
    assert same == [{"file": file, "sessionId": only, "result": "present", "cwd": HERE, "reset": []}]
    sessions("rename", only, "Changed since")
    (other,) = sessions("import", file, "--json").json["sessions"]
    assert other["result"] == "renumbered" and other["sessionId"] != only
    assert "another session has the id it had" in sessions("import", file).out
    assert raw(other["sessionId"]) == raw(only)
    assert sessions("show", only).out.startswith("Changed since\n")


def test_a_session_is_imported_from_stdin(place: Path) -> None:
    (only,) = make(place, ("say one",))
    written = sessions("export", only, "--json").out.encode()
    sessions("delete", only, "--yes")
    assert sessions("import", "-", "--cwd", HERE, stdin=written).out == f"{only} was imported from -\n"
    assert len(raw(only)) == 2


def document(**changes: Any) -> dict[str, Any]:
    """Make up a file."""
    session = {
        "sessionId": new_session_id(),
        "cwd": "/x",
        "createdAt": "2026-01-01T00:00:00Z",
        "updatedAt": "2026-01-02T00:00:00Z",
        "title": None,
    }
    message = {"sessionUpdate": "user_message", "messageId": "m", "content": [{"type": "text", "text": "hi"}]}
    whole: dict[str, Any] = {
        "format": "holdfast-session",
        "version": 1,
        "session": session,
        "state": {},
        "history": [message],
    }
    for name, value in changes.items():
        if name in session:
            session[name] = value
        else:
            whole[name] = value
    return whole


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "no session that Holdfast wrote"),
        (b"\xff\xfe{}", "no session that Holdfast wrote"),
        (b"[" * 100_000, "no session that Holdfast wrote"),
        (b'{"format": "something-else", "version": 1}', "no session that Holdfast wrote"),
        (document(version=2), "newer Holdfast"),
        (document(history=None), "damaged"),
        (document(history=[1]), "damaged"),
        (document(history=[{}]), "update 1 of its history"),
        (document(history=[{"sessionUpdate": "agent_message", "messageId": 3}]), "update 1 of its history"),
        (document(history=[{"sessionUpdate": "plan_update", "plan": 3}]), "update 1 of its history"),
        (document(history=[{"sessionUpdate": "user_message", "messageId": "m", "content": [3]}]), "update 1"),
        (document(cwd="relative"), "absolute path"),
        (document(createdAt="yesterday"), "damaged"),
        (document(createdAt="9999-12-31T23:59:59-23:59"), "damaged"),
        (document(state={"options": 3}), "damaged"),
    ],
)
def test_a_file_that_is_damaged_is_refused_and_says_why(content: Any, says: str, place: Path, tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    file.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    done = sessions("import", str(file))
    assert (done.status, done.out) == (1, "")
    assert says in done.err and done.err.count("\n") == 1
    assert sessions("stats", "--json").json["sessions"] == 0
    assert sessions("import", str(file), "--json").json["refused"][0]["reason"]


def test_one_bad_file_does_not_keep_the_others_out(place: Path, tmp_path: Path) -> None:
    for name, content in (("a", document()), ("b", {}), ("c", document())):
        (tmp_path / name).write_text(json.dumps(content))
    done = sessions("import", *(str(tmp_path / name) for name in ("a", "b", "nowhere", "c")))
    assert done.status == 1
    assert done.out.count("was imported from") == 2 and len(done.err.splitlines()) == 2


def test_an_id_that_is_not_ours_and_a_time_to_come_are_not_taken_over(place: Path, tmp_path: Path) -> None:
    (mine,) = make(place, ("say mine",))
    (tmp_path / "f").write_text(json.dumps(document(sessionId="1", updatedAt="2999-01-01T00:00:00Z")))
    (got,) = sessions("import", str(tmp_path / "f"), "--json").json["sessions"]
    assert got["sessionId"].startswith("sess_") and got["result"] == "renumbered"
    make(place, ("say later",))
    listed = sessions("list", "--all", "--json").json["sessions"]
    assert [session["title"] for session in listed] == ["say later", None, "say mine"]
    assert listed[2]["sessionId"] == mine


def test_what_is_no_part_of_a_conversation_is_left_out(place: Path, tmp_path: Path) -> None:
    updates = [
        {"sessionUpdate": "state_update", "state": "running"},
        {"sessionUpdate": "usage_update", "used": 1, "size": 2},
        {"sessionUpdate": "_mine", "x": 1},
    ]
    (tmp_path / "f").write_text(json.dumps(document(history=updates)))
    (got,) = sessions("import", str(tmp_path / "f"), "--json").json["sessions"]
    assert raw(got["sessionId"]) == [updates[2]]


@pytest.mark.requirement("P13")
async def test_a_file_gives_no_rights_and_it_is_said_what_was_reset(place: Path, tmp_path: Path) -> None:
    given = {
        "options": {"units": "f", "mode": "auto"},
        "permissions": {"rocket": True},
        "memory": {"approved": ["rm -rf /"]},
        "latest": {"available_commands_update": {"sessionUpdate": "available_commands_update"}},
        "title_by": "user",
    }
    remembered = {"sessionUpdate": "_holdfast/permission", "subject": "rocket", "allow": True}
    message = {"sessionUpdate": "user_message", "messageId": "m", "content": [{"type": "text", "text": "hi"}]}
    written = document(state=given, history=[remembered, message], cwd="/", title="mine")
    written["session"]["additionalDirectories"] = ["/etc"]
    (tmp_path / "f").write_text(json.dumps(written))
    done = await asyncio.to_thread(sessions, "import", str(tmp_path / "f"))
    assert done.out.splitlines()[1] == (
        "  Reset, for a file gives no rights: the directory, mode and options, what was allowed for ever, "
        "the agent's memory, additional directories"
    )
    (listed,) = (await asyncio.to_thread(sessions, "list", "--json")).json["sessions"]
    assert (listed["cwd"], listed["additionalDirectories"], listed["title"]) == (str(tmp_path), [], "mine")
    async with engine_at(place) as engine:
        session = await engine.restore(listed["sessionId"], str(tmp_path))
        assert session.state == SessionState(title_by="user")
    assert await asyncio.to_thread(raw, listed["sessionId"]) == [message]


@pytest.mark.requirement("P11", "P13")
async def test_lines_of_our_logs_in_a_file_are_not_imported(place: Path, tmp_path: Path) -> None:
    private = {"sessionUpdate": "_holdfast/private", "data": {"approved": True}}
    message = {"sessionUpdate": "user_message", "messageId": "m", "content": [{"type": "text", "text": "hi"}]}
    (tmp_path / "f").write_text(json.dumps(document(history=[private, message])))
    done = await asyncio.to_thread(sessions, "import", str(tmp_path / "f"), "--json")
    (got,) = done.json["sessions"]
    assert await asyncio.to_thread(raw, got["sessionId"]) == [message]


@pytest.mark.requirement("P11")
@pytest.mark.parametrize("plan", [{"type": "items", "entries": 5}, {"type": "items", "entries": [5]}, {"type": 5}])
def test_a_file_with_a_plan_that_makes_no_sense_is_refused(place: Path, tmp_path: Path, plan: dict[str, Any]) -> None:
    update = {"sessionUpdate": "plan_update", "plan": {"planId": "plan", **plan}}
    (tmp_path / "f").write_text(json.dumps(document(history=[update])))
    done = sessions("import", str(tmp_path / "f"))
    assert done.status == 1 and "update 1 of its history: plan_update" in done.err
    assert sessions("list", "--json").json["sessions"] == []


async def silent(turn: Turn) -> None:
    """Answer nothing."""


@pytest.mark.requirement("P11")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_session_with_a_plan_that_makes_no_sense_can_be_loaded(place: Path, version: int) -> None:
    session = await stored_lines(
        place,
        b'\x04{"sessionUpdate":"plan_update","plan":{"planId":"plan","type":"items","entries":5}}',
        b'\x04{"sessionUpdate":"agent_message","messageId":"last","content":[{"type":"text","text":"still here"}]}',
    )
    agent = Agent("any")
    agent.prompt(silent)
    async with serving(agent, place) as host:
        client = await host.client(version)
        await client.load(session, HERE)
        assert "still here" in client.said()


async def test_a_turn_that_broke_is_written_and_comes_back(place: Path, tmp_path: Path) -> None:
    async with engine_process(place) as other:
        session = await other.do("create")
        await other.do("begin", session, "call c Read\nsay half\nwait gate")
        await other.kill()
    file = str(tmp_path / "s.json")
    await asyncio.to_thread(sessions, "export", session, "-o", file)
    await asyncio.to_thread(sessions, "import", file, "--store", str(tmp_path / "other.db"))
    theirs = await asyncio.to_thread(raw, session, "--store", str(tmp_path / "other.db"))
    assert [update["sessionUpdate"] for update in theirs] == ["user_message", "tool_call_update", "agent_message"]


# Damage


async def stored_lines(place: Path, *lines: bytes) -> str:
    """Put lines into a store as they are, whatever they hold."""
    info = SessionInfo(new_session_id(), HERE, (), "Damaged", 1, 1, archived=False, messages=1)
    store = await open_store(str(place))
    try:
        await store.add(info, SessionState(), [Line(line, "") for line in lines])
    finally:
        await store.close()
    return info.id


NONSENSE = (
    b'\x04{"sessionUpdate":"agent_message","messageId":"m","content":5}',
    b'\x04{"sessionUpdate":"agent_message_chunk","messageId":"n","content":5}',
    b'\x04{"sessionUpdate":"tool_call_update","toolCallId":"c","title":5,"kind":[],"content":"x","locations":5}',
    b'\x04{"sessionUpdate":"terminal_update","terminalId":"t","output":{"data":5},"exitStatus":"x"}',
    b'\x04{"sessionUpdate":"plan_update","plan":5}',
    b'\x04{"sessionUpdate":"plan_update","plan":{"entries":[5,{"content":5}]}}',
    b'\x04{"sessionUpdate":5}',
    b'\x04{"sessionUpdate":"agent_message","messageId":"cut","content":[{"ty',
    b"\x04[]",
    b'\x04{"sessionUpdate":"_holdfast/damaged","lines":3,"reason":"The checksum is wrong"}',
    b'\x04{"sessionUpdate":"_holdfast/hand_over","from":"weather","to":"code"}',
    b'\x04{"sessionUpdate":"agent_message","messageId":"last","content":[{"type":"text","text":"still here"}]}',
)


@pytest.mark.requirement("P11")
@pytest.mark.parametrize(
    "how", [("show",), ("show", "--json"), ("show", "--raw"), *(("export", "--format", name) for name in FORMATS)]
)
def test_what_is_damaged_is_shown_as_damaged_and_the_rest_as_it_is(how: tuple[str, ...], place: Path) -> None:
    session = asyncio.run(stored_lines(place, *NONSENSE))
    done = sessions(*how, session)
    assert (done.status, done.err) == (0, "")
    assert "still here" in done.out and "checksum is wrong" in done.out
    if not {"--json", "--raw", "json"} & set(how):
        assert "Damaged: 3 lines of the history cannot be read" in done.out
        assert done.out.count("Damaged: 1 line of the history cannot be read") == 3
        assert "handed over from weather to code" in done.out
