"""What agents keep of their sessions, in files of the form they have: read as a history, and never written."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.model import History, event_from
from holdfast_app.importers import AGENTS, open_agent_store

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast_app.importers import FoundSession

CWD = "/work/garden"


def write_lines(file: Path, *lines: dict[str, Any] | str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return file


def read_all(agent: str, home: Path) -> list[FoundSession]:
    """Read all sessions of an agent; nothing in its home may change by that."""
    before = {file: file.read_bytes() for file in home.rglob("*") if file.is_file()}
    store = open_agent_store(agent, home)
    found = [session for place in store.locate() if (session := store.read(place)) is not None]
    assert {file: file.read_bytes() for file in before} == before
    return found


def told(session: FoundSession) -> list[tuple[str, str]]:
    """Fold a session as it is stored: kinds and texts; of tool calls title and status."""
    history = History()
    for update in session.updates:
        history.apply(event_from(update))
    return [
        (entry.entity, entry.text())
        if entry.entity != "tool_call_update"
        else (entry.members["kind"], f"{entry.members['title']}: {entry.members['status']}")
        for entry in history
    ]


def claude_line(uuid: str, parent: str | None, kind: str, content: Any, **members: Any) -> dict[str, Any]:
    role = {"role": kind, "content": content, **({"id": f"msg-{uuid}"} if kind == "assistant" else {})}
    about = {"uuid": uuid, "parentUuid": parent, "type": kind, "message": role, "cwd": CWD}
    return {**about, "timestamp": "2026-11-16T14:38:37.638Z", "isSidechain": False, **members}


def text(words: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": words}]


def test_claude_without_what_it_says_to_itself_and_without_branches_that_were_left(tmp_path: Path) -> None:
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
    other = {"type": "tool_use", "id": "t2", "name": "Read", "input": {"file_path": "/work/garden/a"}}
    write_lines(
        tmp_path / "projects" / "-work-garden" / "the-id.jsonl",
        {"type": "queue-operation", "operation": "enqueue"},
        claude_line("u1", None, "user", "<system-reminder>Be kind</system-reminder>\nDig"),
        {"type": "attachment", "uuid": "x", "parentUuid": "u1"},
        claude_line("a1", "x", "assistant", [{"type": "thinking", "thinking": "Where?"}, *text("I dig.")]),
        claude_line("u2", "a1", "user", text("A question that was taken back")),
        claude_line("a2", "u2", "assistant", text("An answer nobody wants")),
        claude_line("s1", "a1", "user", text("what a subagent is told"), isSidechain=True),
        claude_line("u3", "a1", "user", text("List and read")),
        claude_line("a3", "u3", "assistant", [call], message={"role": "assistant", "id": "m3", "content": [call]}),
        claude_line("a4", "a3", "assistant", [other], message={"role": "assistant", "id": "m3", "content": [other]}),
        claude_line("r1", "a3", "user", [{"type": "tool_result", "tool_use_id": "t1", "content": "a b"}]),
        claude_line("r2", "a4", "user", [{"type": "tool_result", "tool_use_id": "t2", "is_error": True}]),
        claude_line("m1", "r2", "user", "Caveat: …", isMeta=True),
        claude_line("a5", "m1", "assistant", text("Done.")),
        claude_line("u4", "a5", "user", text("[Request interrupted by user]")),
        {"type": "ai-title", "aiTitle": "A garden"},
        '{"torn": ',
    )
    (session,) = read_all("claude", tmp_path)
    assert (session.id, session.cwd, session.title) == ("the-id", CWD, "A garden")
    assert told(session) == [
        ("user_message", "Dig"),
        ("agent_thought", "Where?"),
        ("agent_message", "I dig."),
        ("user_message", "List and read"),
        ("execute", "ls: completed"),
        ("read", "/work/garden/a: failed"),
        ("agent_message", "Done."),
    ]
    assert session.prompts == ["u1", "u3"]


def test_claude_goes_back_beyond_a_compaction(tmp_path: Path) -> None:
    write_lines(
        tmp_path / "projects" / "p" / "id.jsonl",
        claude_line("u1", None, "user", text("Before")),
        claude_line("a1", "u1", "assistant", text("Yes.")),
        {"type": "system", "subtype": "compact_boundary", "uuid": "c", "parentUuid": None, "logicalParentUuid": "a1"},
        claude_line("u2", "c", "user", "This session is continued…", isCompactSummary=True),
        claude_line("u3", "u2", "user", text("After")),
    )
    (session,) = read_all("claude", tmp_path)
    assert told(session) == [("user_message", "Before"), ("agent_message", "Yes."), ("user_message", "After")]


def codex_item(**payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-11-16T14:41:28.005Z", "type": "response_item", "payload": payload}


def codex_message(role: str, *parts: str, **members: Any) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return codex_item(type="message", role=role, content=[{"type": kind, "text": part} for part in parts], **members)


def codex_meta(**members: Any) -> dict[str, Any]:
    payload = {"id": "the-id", "cwd": CWD, "source": "cli", **members}
    return {"timestamp": "2026-11-16T14:41:27.864Z", "type": "session_meta", "payload": payload}


def test_codex_without_what_it_puts_into_the_users_mouth(tmp_path: Path) -> None:
    write_lines(
        tmp_path / "sessions" / "2026" / "11" / "16" / "rollout-1.jsonl",
        codex_meta(),
        codex_message("developer", "<permissions>"),
        codex_message("user", "# AGENTS.md instructions", "<environment_context>\n…"),
        codex_message("user", "Dig", id="m1"),
        codex_item(type="reasoning", summary=[{"type": "summary_text", "text": "Where?"}]),
        codex_item(type="function_call", name="exec_command", call_id="c1", arguments='{"cmd": "ls"}'),
        codex_item(type="function_call_output", call_id="c1", output="Process exited with code 0\nOutput:\na"),
        codex_item(type="function_call", name="exec_command", call_id="c2", arguments="{torn"),
        codex_item(type="function_call_output", call_id="c2", output="Process exited with code 2"),
        codex_message("assistant", "Done."),
        {"type": "event_msg", "payload": {"type": "agent_message", "message": "Done."}},
    )
    write_lines(
        tmp_path / "sessions" / "2026" / "rollout-2.jsonl",
        codex_meta(id="sub", source={"subagent": {}}),
        codex_message("user", "What a subagent is told"),
    )
    write_lines(tmp_path / "session_index.jsonl", {"id": "the-id", "thread_name": "A garden"})
    (session,) = read_all("codex", tmp_path)
    assert (session.id, session.cwd, session.title) == ("the-id", CWD, "A garden")
    assert told(session) == [
        ("user_message", "Dig"),
        ("agent_thought", "Where?"),
        ("execute", "ls: completed"),
        ("execute", "exec_command: failed"),
        ("agent_message", "Done."),
    ]


def test_gemini_takes_the_last_of_a_message_that_was_written_twice(tmp_path: Path) -> None:
    call = {"id": "c1", "name": "run_shell_command", "args": {"command": "ls"}, "status": "success"}
    result = [{"functionResponse": {"response": {"output": "a"}}}]
    context = {"id": "0", "type": "user", "content": [{"text": "<session_context>…"}]}
    write_lines(
        tmp_path / "tmp" / "garden" / "chats" / "session-1.jsonl",
        {"sessionId": "the-id", "projectHash": "h", "startTime": "2026-11-16T14:39:06.959Z"},
        {"$set": {"messages": [context]}},
        {"id": "1", "type": "user", "content": [{"text": "Dig"}]},
        {"id": "2", "type": "gemini", "content": "", "toolCalls": []},
        {"$set": {"lastUpdated": "2026-11-16T14:40:06.959Z"}},
        {"id": "2", "type": "gemini", "content": "I dig.", "toolCalls": [{**call, "result": result}]},
        {"id": "3", "type": "user", "content": [{"functionResponse": {}}]},
        {"id": "4", "type": "gemini", "content": "Done.", "thoughts": [{"subject": "Hm", "description": "well"}]},
        {"id": "5", "type": "error", "content": "a note of its own"},
    )
    (tmp_path / "projects.json").write_text(json.dumps({"projects": {CWD: "garden"}}))
    (session,) = read_all("gemini", tmp_path)
    assert (session.id, session.cwd, session.title) == ("the-id", CWD, None)
    assert session.updated_at - session.created_at == 60_000_000
    assert told(session) == [
        ("user_message", "Dig"),
        ("agent_message", "I dig."),
        ("execute", "ls: completed"),
        ("agent_thought", "Hm\nwell"),
        ("agent_message", "Done."),
    ]


def test_gemini_files_of_older_versions_and_of_unknown_directories(tmp_path: Path) -> None:
    project = hashlib.sha256(CWD.encode()).hexdigest()
    chats = tmp_path / "tmp" / project / "chats"
    chats.mkdir(parents=True)
    about = {"sessionId": "old", "projectHash": project, "messages": [{"id": "1", "type": "user", "content": "Dig"}]}
    (chats / "session-1.json").write_text(json.dumps(about))
    assert read_all("gemini", tmp_path) == []  # whose directory it is cannot be known from a hash
    (tmp_path / "projects.json").write_text(json.dumps({"projects": {CWD: "garden"}}))
    (session,) = read_all("gemini", tmp_path)
    assert (session.id, session.cwd) == ("old", CWD)


def test_opencode_in_the_order_of_its_messages(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "opencode.db")) as db, db:
        db.executescript(
            """
            CREATE TABLE session (id, parent_id, directory, title, time_created, time_updated);
            CREATE TABLE message (id, session_id, time_created, data);
            CREATE TABLE part (id, message_id, session_id, data);
            INSERT INTO session VALUES ('ses_1', NULL, '/work/garden', 'A garden', 1000, 2000);
            INSERT INTO session VALUES ('ses_2', 'ses_1', '/work/garden', 'of a subagent', 1000, 2000);
            INSERT INTO session VALUES ('ses_3', NULL, '/work/garden', 'empty', 1000, 2000);
            INSERT INTO message VALUES ('m2', 'ses_1', 2, '{"role":"assistant"}');
            INSERT INTO message VALUES ('m1', 'ses_1', 1, '{"role":"user"}');
            """
        )
        tool = {"status": "completed", "input": {"command": "ls"}, "output": "a", "title": "List it"}
        parts: list[tuple[str, str, dict[str, Any]]] = [
            ("p1", "m1", {"type": "text", "text": "Dig"}),
            ("p2", "m1", {"type": "text", "text": "here"}),
            ("p3", "m1", {"type": "text", "text": "what it adds", "synthetic": True}),
            ("p4", "m2", {"type": "step-start"}),
            ("p5", "m2", {"type": "reasoning", "text": "Where?"}),
            ("p6", "m2", {"type": "tool", "callID": "c1", "tool": "bash", "state": tool}),
            ("p7", "m2", {"type": "text", "text": "Done."}),
        ]
        db.executemany(
            "INSERT INTO part VALUES (?, ?, 'ses_1', ?)",
            [(id_, message, json.dumps(part)) for id_, message, part in parts],
        )
    (session,) = read_all("opencode", tmp_path)
    assert (session.id, session.title, session.created_at, session.updated_at) == (
        "ses_1",
        "A garden",
        10**6,
        2 * 10**6,
    )
    assert told(session) == [
        ("user_message", "Dighere"),
        ("agent_thought", "Where?"),
        ("execute", "List it: completed"),
        ("agent_message", "Done."),
    ]


@pytest.mark.parametrize("agent", list(AGENTS))
def test_an_agent_that_was_never_here_has_no_sessions(agent: str, tmp_path: Path) -> None:
    assert open_agent_store(agent, tmp_path / "nowhere").locate() == []
