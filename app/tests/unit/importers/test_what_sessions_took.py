"""What an agent's own files say of changed files, models, tokens and cost is imported too (G9)."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

from holdfast.model import History, event_from
from holdfast_app.importers import open_agent_store

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast_app.importers import FoundSession

CWD = "/work/garden"
FILE = "/work/garden/bed.txt"
NEW = "/work/garden/new.txt"
NO_NEWLINE = "\\ No newline at end of file"


def write_lines(file: Path, *lines: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))


def read_one(agent: str, home: Path) -> FoundSession:
    store = open_agent_store(agent, home)
    (session,) = [found for place in store.locate() if (found := store.read(place)) is not None]
    return session


def changes(session: FoundSession) -> list[tuple[str, str | None, str]]:
    """The changes that the session's tool calls show: path, text before, text after."""
    history = History()
    for update in session.updates:
        history.apply(event_from(update))
    diffs = [item for entry in history for item in entry.content() if item.get("type") == "diff"]
    assert all(diff["patch"]["text"].startswith(f"diff --git {diff['path']} ") for diff in diffs)
    return [(diff["path"], diff["oldText"], diff["newText"]) for diff in diffs]


# Claude Code


def claude(uuid: str, parent: str | None, kind: str, content: Any, **members: Any) -> dict[str, Any]:
    said = {"role": kind, "content": content, **members.pop("message", {})}
    about = {"uuid": uuid, "parentUuid": parent, "type": kind, "message": said, "cwd": CWD, "isSidechain": False}
    return {**about, "timestamp": "2026-11-16T14:38:37.638Z", **members}


def claude_call(uuid: str, parent: str, call: str, name: str, message: str, **given: Any) -> dict[str, Any]:
    usage = {"input_tokens": 10, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 300, "output_tokens": 4}
    about = {"id": message, "model": "claude-opus-5", "usage": {**usage, "service_tier": "standard"}}
    return claude(
        uuid, parent, "assistant", [{"type": "tool_use", "id": call, "name": name, "input": given}], message=about
    )


def claude_result(uuid: str, parent: str, call: str, result: Any, **members: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call, "content": "The file has been updated", **members}
    return claude(uuid, parent, "user", [block], toolUseResult=result)


def test_claude(tmp_path: Path) -> None:
    hunks = [
        {"oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 2, "lines": [" soil", "-weeds", "+beans"]},
        {"oldStart": 40, "oldLines": 1, "newStart": 40, "newLines": 2, "lines": [" hedge", "+gate", NO_NEWLINE]},
    ]
    edited = {
        "filePath": FILE,
        "oldString": "weeds",
        "newString": "beans",
        "originalFile": "…",
        "structuredPatch": hunks,
    }
    created: dict[str, Any] = {"type": "create", "filePath": NEW, "content": "spade\n", "structuredPatch": []}
    synthetic = {"id": "m9", "model": "<synthetic>", "usage": {"input_tokens": 0, "output_tokens": 0}}
    subagent = {"id": "m8", "model": "claude-haiku-5", "usage": {"input_tokens": 1, "output_tokens": 1}}
    write_lines(
        tmp_path / "projects" / "p" / "id.jsonl",
        claude("u1", None, "user", "Dig"),
        claude_call("a1", "u1", "t1", "Edit", "m1", file_path=FILE, old_string="weeds", new_string="beans"),
        claude_call("a2", "a1", "t2", "Write", "m1", file_path=NEW, content="spade\n"),
        claude_result("r1", "a1", "t1", edited),
        claude_result("r2", "a2", "t2", created),
        claude("s1", "r2", "assistant", [{"type": "text", "text": "found"}], isSidechain=True, message=subagent),
        claude_call("a3", "r2", "t3", "Edit", "m2", file_path=FILE, old_string="soil", new_string="sand"),
        claude_result("r3", "a3", "t3", "Error: not read yet", is_error=True),
        claude_call("a4", "r3", "t4", "Edit", "m3", file_path=FILE, old_string="hedge", new_string="wall"),
        claude_result("r4", "a4", "t4", None),
        claude("a5", "r4", "assistant", [{"type": "text", "text": "No response requested."}], message=synthetic),
    )
    session = read_one("claude", tmp_path)
    assert changes(session) == [
        (FILE, "soil\nweeds\n", "soil\nbeans\n"),
        (FILE, "hedge\n", "hedge\ngate"),
        (NEW, None, "spade\n"),
        (FILE, "hedge", "wall"),
    ]
    assert session.spent.model == "claude-opus-5"
    assert session.spent.tokens == {
        "inputTokens": 31,
        "cachedReadTokens": 900,
        "cachedWriteTokens": 60,
        "outputTokens": 13,
        "totalTokens": 1004,
    }
    assert session.spent.usage == {"sessionUpdate": "usage_update", "used": 334}


# Codex


def codex(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-11-16T14:41:28.005Z", "type": kind, "payload": payload}


PATCH = """*** Begin Patch
*** Update File: bed.txt
@@ def bed
 soil
-weeds
+beans
@@
 hedge
+gate
*** Add File: new.txt
+spade
+rake
*** Delete File: old.txt
*** End Patch"""


def test_codex(tmp_path: Path) -> None:
    total = {"input_tokens": 900, "cached_input_tokens": 600, "output_tokens": 50, "reasoning_output_tokens": 20}
    last = {"input_tokens": 400, "cached_input_tokens": 300, "output_tokens": 10, "total_tokens": 410}
    info = {
        "total_token_usage": {**total, "total_tokens": 950},
        "last_token_usage": last,
        "model_context_window": 272_000,
    }
    noted = {FILE: {"type": "update", "unified_diff": "@@ -1,2 +1,2 @@\n soil\n-roots\n+carrots\n", "move_path": None}}
    user = [{"type": "input_text", "text": "Dig"}]
    heredoc = {"cmd": f"apply_patch <<'EOF'\n{PATCH}\nEOF", "workdir": "/work/garden"}
    write_lines(
        tmp_path / "sessions" / "2026" / "rollout-1.jsonl",
        codex("session_meta", id="the-id", cwd=CWD, source="cli"),
        codex("turn_context", cwd=CWD, model="gpt-5.1", approval_policy="on-request"),
        codex("response_item", type="message", role="user", content=user),
        codex("event_msg", type="token_count", info=None, rate_limits={}),
        codex("response_item", type="custom_tool_call", name="apply_patch", call_id="c1", input=PATCH),
        codex("response_item", type="custom_tool_call_output", call_id="c1", output="Exit code: 0\nSuccess."),
        codex("turn_context", cwd=CWD, model="gpt-6"),
        codex("response_item", type="custom_tool_call", name="apply_patch", call_id="c2", input="*** Begin Patch\n…"),
        codex("event_msg", type="patch_apply_end", call_id="c2", success=True, changes=noted),
        codex("response_item", type="custom_tool_call_output", call_id="c2", output="Exit code: 0\nSuccess."),
        codex("response_item", type="function_call", name="exec_command", call_id="c3", arguments=json.dumps(heredoc)),
        codex("response_item", type="function_call_output", call_id="c3", output="Process exited with code 1"),
        codex("response_item", type="custom_tool_call", name="apply_patch", call_id="c4", input=PATCH),
        codex("event_msg", type="patch_apply_end", call_id="c4", success=False, changes=noted, status="declined"),
        codex("response_item", type="custom_tool_call_output", call_id="c4", output="patch rejected by user"),
        codex("event_msg", type="token_count", info=info),
        codex("event_msg", type="token_count", info=None),
    )
    session = read_one("codex", tmp_path)
    assert changes(session) == [
        (FILE, "soil\nweeds\n", "soil\nbeans\n"),
        (FILE, "hedge\n", "hedge\ngate\n"),
        (NEW, None, "spade\nrake\n"),
        (FILE, "soil\nroots\n", "soil\ncarrots\n"),
    ]
    ended = [update["status"] for update in session.updates if update.get("toolCallId") == "c4"]
    assert ended[-1] == "failed"
    located = next(update for update in session.updates if update.get("toolCallId") == "c1")
    assert located["locations"] == [{"path": FILE}, {"path": NEW}]
    assert session.spent.model == "gpt-6"
    assert session.spent.tokens == {
        "inputTokens": 300,
        "cachedReadTokens": 600,
        "outputTokens": 30,
        "thoughtTokens": 20,
        "totalTokens": 950,
    }
    assert session.spent.usage == {"sessionUpdate": "usage_update", "used": 410, "size": 272_000}


# Gemini


def test_gemini(tmp_path: Path) -> None:
    diff = (
        "Index: bed.txt\n====\n--- bed.txt\tCurrent\n+++ bed.txt\tProposed\n@@ -1,2 +1,2 @@\n soil\n-roots\n+carrots\n"
    )
    shown = {"fileDiff": diff, "fileName": "bed.txt", "originalContent": "weeds\n", "newContent": "beans\n"}
    new = {"fileDiff": diff, "fileName": "new.txt", "originalContent": None, "newContent": "spade\n"}
    tokens = {"input": 100, "output": 10, "cached": 60, "thoughts": 5, "tool": 0, "total": 115}

    def call(id_: str, name: str, result: Any, status: str = "success", **given: Any) -> dict[str, Any]:
        return {"id": id_, "name": name, "args": given, "status": status, "resultDisplay": result}

    calls = [
        call("c1", "replace", shown, file_path=FILE, old_string="weeds", new_string="beans"),
        call("c2", "write_file", new, file_path=NEW, content="spade\n"),
        call("c3", "replace", {"fileDiff": diff, "fileName": "bed.txt"}, file_path=FILE),
        call("c4", "replace", "plain words", file_path=FILE, old_string="hedge", new_string="wall"),
        call("c5", "replace", shown, "cancelled", file_path=FILE),
    ]
    answer = {"id": "2", "type": "gemini", "content": "Done.", "model": "gemini-2.5-flash", "tokens": tokens}
    write_lines(
        tmp_path / "tmp" / "garden" / "chats" / "session-1.jsonl",
        {"sessionId": "the-id", "projectHash": "h", "startTime": "2026-11-16T14:39:06.959Z"},
        {"id": "1", "type": "user", "content": [{"text": "Dig"}]},
        answer,
        {**answer, "toolCalls": calls},
        {**answer, "id": "3", "model": "gemini-3-pro"},
        {"id": "4", "type": "gemini", "content": "Cut off", "tokens": None},
    )
    (tmp_path / "projects.json").write_text(json.dumps({"projects": {CWD: "garden"}}))
    session = read_one("gemini", tmp_path)
    assert changes(session) == [
        (FILE, "weeds\n", "beans\n"),
        (NEW, None, "spade\n"),
        (FILE, "soil\nroots\n", "soil\ncarrots\n"),
        (FILE, "hedge", "wall"),
    ]
    assert session.spent.model == "gemini-3-pro"
    assert session.spent.tokens == {
        "inputTokens": 80,
        "cachedReadTokens": 120,
        "outputTokens": 20,
        "thoughtTokens": 10,
        "totalTokens": 230,
    }
    assert session.spent.usage == {"sessionUpdate": "usage_update", "used": 115}


# opencode


def test_opencode(tmp_path: Path) -> None:
    tokens = {"input": 100, "output": 10, "reasoning": 5, "cache": {"read": 60, "write": 7}}
    answer = {"role": "assistant", "modelID": "big-pickle", "providerID": "opencode", "cost": 0.25, "tokens": tokens}
    file = {"file": FILE, "before": "weeds\n", "after": "beans\n", "additions": 1, "deletions": 1}
    patched = {"filePath": NEW, "type": "add", "before": "", "after": "spade\n"}
    given = {"filePath": FILE, "oldString": "hedge", "newString": "wall"}
    diff = "--- bed.txt\n+++ bed.txt\n@@ -1 +1 @@\n-soil\n+sand\n"
    unread = {"file": "bed.txt", "patch": diff, "additions": 1, "deletions": 1}
    tools: list[dict[str, Any]] = [
        {"tool": "edit", "state": {"status": "completed", "input": {}, "metadata": {"filediff": unread}}},
        {"tool": "edit", "state": {"status": "completed", "input": {}, "metadata": {"filediff": file}}},
        {"tool": "apply_patch", "state": {"status": "completed", "input": {}, "metadata": {"files": [patched]}}},
        {"tool": "edit", "state": {"status": "completed", "input": given, "output": "ok"}},
        {"tool": "edit", "state": {"status": "error", "input": given, "error": "no"}},
    ]
    with closing(sqlite3.connect(tmp_path / "opencode.db")) as db, db:
        db.executescript(
            """
            CREATE TABLE session (id, parent_id, directory, title, time_created, time_updated);
            CREATE TABLE message (id, session_id, time_created, data);
            CREATE TABLE part (id, message_id, session_id, data);
            INSERT INTO session VALUES ('ses_1', NULL, '/work/garden', 'A garden', 1000, 2000);
            INSERT INTO message VALUES ('m1', 'ses_1', 1, '{"role":"user"}');
            """
        )
        for at, id_ in enumerate(("m2", "m3")):
            db.execute("INSERT INTO message VALUES (?, 'ses_1', ?, ?)", (id_, at + 2, json.dumps(answer)))
        parts = [("m1", {"type": "text", "text": "Dig"})]
        parts += [("m2", {"type": "tool", "callID": f"c{at}", **tool}) for at, tool in enumerate(tools)]
        parts += [("m3", {"type": "text", "text": "Done."}), ("m3", {"type": "step-finish", "cost": 0.25})]
        db.executemany(
            "INSERT INTO part VALUES (?, ?, 'ses_1', ?)",
            [(f"p{at:02}", message, json.dumps(part)) for at, (message, part) in enumerate(parts)],
        )
    session = read_one("opencode", tmp_path)
    assert changes(session) == [
        (FILE, "soil\n", "sand\n"),
        (FILE, "weeds\n", "beans\n"),
        (NEW, None, "spade\n"),
        (FILE, "hedge", "wall"),
    ]
    assert session.spent.model == "big-pickle"
    assert session.spent.tokens == {
        "inputTokens": 200,
        "cachedReadTokens": 120,
        "cachedWriteTokens": 14,
        "outputTokens": 20,
        "thoughtTokens": 10,
        "totalTokens": 364,
    }
    cost = {"amount": 0.5, "currency": "USD"}
    assert session.spent.usage == {"sessionUpdate": "usage_update", "used": 182, "cost": cost}


def test_files_without_any_of_it_are_read_as_before(tmp_path: Path) -> None:
    write_lines(
        tmp_path / "projects" / "p" / "id.jsonl",
        claude("u1", None, "user", "Dig"),
        claude("a1", "u1", "assistant", [{"type": "text", "text": "Yes."}], message={"usage": "much", "model": None}),
    )
    session = read_one("claude", tmp_path)
    assert (changes(session), session.spent.tokens, session.spent.usage) == ([], {}, None)
