"""`holdfast sessions import --from`: what an agent has kept itself is in our list, once, and goes on in the agent."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from app.tests.support.commands import sessions
from app.tests.support.wrapping import wrapping
from holdfast.model import Scope, new_session_id
from holdfast.store import open_store

if TYPE_CHECKING:
    from pathlib import Path

    from app.tests.support.commands import Ran


def write_session(home: Path, id_: str, *said: str, cwd: str = "/project") -> Path:
    """Write a session as Claude Code keeps it: user and assistant in turn."""
    file = home / "projects" / "p" / f"{id_}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    lines: list[dict[str, Any]] = []
    for at, words in enumerate(said):
        role = "user" if at % 2 == 0 else "assistant"
        message = {"role": role, "content": [{"type": "text", "text": words}]}
        parent = f"{id_}-{at - 1}" if at else None
        about = {"type": role, "uuid": f"{id_}-{at}", "parentUuid": parent, "cwd": cwd}
        lines.append({**about, "timestamp": f"2026-11-16T14:00:{at:02}Z", "message": message})
    file.write_text("\n".join(json.dumps(line) for line in lines))
    return file


class Importing:
    """An agent's home, and a store to import it into."""

    def __init__(self, directory: Path) -> None:
        self.home = directory / "claude"
        self.store = directory / "sessions.db"

    def run(self, *arguments: str) -> Ran:
        return sessions(*arguments, "--store", str(self.store))

    def import_(self, *arguments: str) -> Any:
        return self.run("import", "--from", "claude", "--home", str(self.home), "--json", *arguments).json


@pytest.fixture
def importing(tmp_path: Path) -> Importing:
    return Importing(tmp_path)


def test_what_was_imported_is_listed_searched_and_shown(importing: Importing) -> None:
    write_session(importing.home, "one", "Where is the spade?", "In the shed.")
    said = importing.import_()
    assert (said["agent"], said["present"], said["refused"]) == ("claude", 0, [])
    (imported,) = said["sessions"]
    assert (imported["agentSessionId"], imported["cwd"]) == ("one", "/project")
    (listed,) = importing.run("list", "--all", "--json").json["sessions"]
    assert (listed["sessionId"], listed["title"], listed["cwd"]) == (
        imported["sessionId"],
        "Where is the spade?",
        "/project",
    )
    assert listed["updatedAt"].startswith("2026-11-16T14:00:01")
    assert "In the shed." in importing.run("show", imported["sessionId"]).out
    assert "shed" in importing.run("search", "shed", "--all").out


@pytest.mark.timeout(120)
@pytest.mark.requirement("G9")
@pytest.mark.parametrize("version", [1, 2])
async def test_changes_model_and_tokens_are_imported_and_shown(tmp_path: Path, version: int) -> None:
    importing = Importing(tmp_path)
    file = write_session(importing.home, "one", "Dig", "Yes.", cwd=str(tmp_path))
    edit = {"type": "tool_use", "id": "t1", "name": "Edit", "input": {"file_path": "/bed.txt"}}
    usage = {"input_tokens": 1_000, "cache_read_input_tokens": 200, "output_tokens": 34}
    said = {"role": "assistant", "id": "m1", "model": "claude-opus-5", "usage": usage, "content": [edit]}
    hunk = {"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-weeds", "+beans"]}
    result = [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]
    about = {"cwd": str(tmp_path), "timestamp": "2026-11-16T14:00:09Z"}
    lines: list[dict[str, Any]] = [
        {**about, "type": "assistant", "uuid": "a", "parentUuid": "one-1", "message": said, "costUSD": 0.5},
        {
            **about,
            "type": "user",
            "uuid": "r",
            "parentUuid": "a",
            "message": {"role": "user", "content": result},
            "toolUseResult": {"filePath": "/bed.txt", "structuredPatch": [hunk]},
        },
    ]
    file.write_text("\n".join([file.read_text(), *map(json.dumps, lines)]))
    (imported,) = (await asyncio.to_thread(importing.import_))["sessions"]
    session = imported["sessionId"]
    (listed,) = (await asyncio.to_thread(importing.run, "list", "--all", "--json")).json["sessions"]
    assert (listed["model"], listed["usage"]["tokens"]["totalTokens"]) == ("claude-opus-5", 1_234)
    shown = (await asyncio.to_thread(importing.run, "show", session)).out
    assert "claude-opus-5" in shown and "1,234 tokens" in shown and "beans" in shown
    exported = tmp_path / "one.json"
    await asyncio.to_thread(importing.run, "export", session, "-o", str(exported))
    other = Importing(tmp_path)
    other.store = tmp_path / "other.db"
    again = (await asyncio.to_thread(other.run, "import", str(exported), "--cwd", str(tmp_path), "--json")).json
    assert again["refused"] == []
    async with wrapping(tmp_path, name="claude", store=importing.store) as wrapped:
        client = await wrapped.client(version)
        await client.load(session, str(tmp_path))
        calls = client.updates("tool_call", "tool_call_update")
        (diff,) = [item for call in calls for item in call.get("content") or () if item["type"] == "diff"]
        if version == 1:
            assert (diff["path"], diff["oldText"], diff["newText"]) == ("/bed.txt", "weeds\n", "beans\n")
        else:
            assert "-weeds\n+beans\n" in diff["patch"]["text"]
        assert client.updates("usage_update") == []  # which says how much the context holds: the file does not


def test_nothing_is_imported_twice_and_a_second_run_adds_what_is_new(importing: Importing) -> None:
    write_session(importing.home, "one", "First", "Yes.")
    assert len(importing.import_()["sessions"]) == 1
    write_session(importing.home, "two", "Second", "Yes.")
    again = importing.import_()
    assert ([row["agentSessionId"] for row in again["sessions"]], again["present"]) == (["two"], 1)
    assert importing.import_()["sessions"] == []


def test_what_was_deleted_is_not_imported_again(importing: Importing) -> None:
    write_session(importing.home, "one", "First", "Yes.")
    (imported,) = importing.import_()["sessions"]
    importing.run("delete", imported["sessionId"], "--yes")
    again = importing.import_()
    assert (again["sessions"], again["present"]) == ([], 1)


async def test_an_import_that_was_interrupted_goes_on_with_the_same_session(tmp_path: Path) -> None:
    importing = Importing(tmp_path)
    write_session(importing.home, "one", "First", "Yes.")
    session = new_session_id()
    store = await open_store(str(importing.store))
    await store.set_alias(Scope(agent="claude"), "one", session)  # and then the power went
    await store.close()
    (imported,) = (await asyncio.to_thread(importing.import_, "--agent", "claude"))["sessions"]
    assert imported["sessionId"] == session


def test_another_name_of_the_agent_is_another_agent(importing: Importing) -> None:
    write_session(importing.home, "one", "First", "Yes.")
    assert importing.import_("--agent", "claude")["agent"] == "claude"
    assert "First" in importing.run("list", "--all", "--agent", "claude").out


def test_a_file_that_makes_no_sense_is_named_and_the_others_are_imported(importing: Importing) -> None:
    write_session(importing.home, "one", "First", "Yes.")
    broken = write_session(importing.home, "bad", "Second")
    broken.write_text(broken.read_text().replace('"/project"', '"not absolute"'))
    (importing.home / "projects" / "p" / "empty.jsonl").write_text("")
    (importing.home / "projects" / "p" / "odd.jsonl").write_text('{"type": "user", "uuid": 1, "message": []}\n[1]\n')
    said = importing.import_()
    assert [row["agentSessionId"] for row in said["sessions"]] == ["one"]
    assert {error["file"].rpartition("/")[2] for error in said["refused"]} == {"bad.jsonl", "odd.jsonl"}


def test_wrong_usage_says_what_is_right(importing: Importing) -> None:
    assert "import --from claude" in importing.run("import").err
    assert "leave out FILES" in importing.run("import", "--from", "claude", "x.json").err
    nothing = importing.run("import", "--from", "claude", "--home", str(importing.home))
    assert (nothing.status, "kept no session" in nothing.out) == (0, True)


@pytest.mark.timeout(120)
@pytest.mark.requirement("G4", "G9")
async def test_an_imported_session_is_loaded_from_our_store_and_goes_on_in_the_agents_own(tmp_path: Path) -> None:
    """The wrapped agent stands for Claude: it has the session under its own id, and remembers."""
    importing = Importing(tmp_path)
    async with wrapping(tmp_path, name="claude") as wrapped:
        client = await wrapped.client(1)
        made = await client.new(str(tmp_path))
        await client.prompt(made, "remember heron")
        (own,) = [file.stem for file in wrapped.home.glob("*.json")]
    write_session(importing.home, own, "remember heron", "I will", cwd=str(tmp_path))
    importing.store = tmp_path / "other.db"
    (imported,) = (await asyncio.to_thread(importing.import_, "--agent", "claude"))["sessions"]
    async with wrapping(tmp_path, name="claude", store=importing.store) as wrapped:
        client = await wrapped.client(1)
        await client.load(imported["sessionId"], str(tmp_path))
        assert client.said("user_message") == "remember heron"
        await client.prompt(imported["sessionId"], "recall")
        assert "heron" in client.said()
        await client.load(own, str(tmp_path))  # the agent's own id is as good
