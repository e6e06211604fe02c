"""`holdfast sessions list`, `search` and `show`, on stores that an engine made."""

from __future__ import annotations

import asyncio
import json
import os
from base64 import b64encode
from typing import TYPE_CHECKING

import pytest

from app.tests.support.commands import ELSEWHERE, HERE, TOOLS, a_store, live_at, sessions
from core.tests.support.engines import engine_process
from core.tests.support.sessions import CWD, ScriptedAgent, begin, engine_at, run
from holdfast.model import Choice, Option
from holdfast.view.safe_text import safe_text

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp.exe"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for a store, and a directory to be in."""
    (tmp_path / "project").mkdir()
    live_at(tmp_path / "s.db", monkeypatch, tmp_path / "project")
    return tmp_path / "s.db"


def make(place: Path, *talks: tuple[str, tuple[str, ...]]) -> list[str]:
    return asyncio.run(a_store(place, *talks))


def here(place: Path) -> str:
    return str(place.parent / "project")


# list


def test_a_list_shows_the_sessions_of_this_directory_newest_first(place: Path) -> None:
    first, _, last = make(place, (here(place), ("say one",)), (ELSEWHERE, ("say x",)), (here(place), ("say two",) * 2))
    for arguments in ((), ("list",)):
        done = sessions(*arguments)
        assert done.status == 0 and done.err == ""
        assert [line.split() for line in done.out.splitlines()] == [
            ["ID", "UPDATED", "MESSAGES", "AGENT", "MODEL", "TITLE"],
            [last[5:15], "just", "now", "4", "-", "S", "say", "two"],
            [first[5:15], "just", "now", "2", "-", "S", "say", "one"],
        ]
    assert sessions("list", "--no-headings").out.split()[0] == last[5:15]


def test_options_without_a_command_are_those_of_the_list(place: Path) -> None:
    make(place, (here(place), ("say one",)), (ELSEWHERE, ("say x",)))
    assert sessions("--json").json == sessions("list", "--json").json
    assert len(sessions("--json").json["sessions"]) == 1
    assert len(sessions("--all", "--json", "--limit", "9").json["sessions"]) == 2
    assert sessions("--nonsense").status == 2
    assert "Commands:" in sessions("--help").out


def test_a_list_names_agent_and_model_and_says_what_was_taken(place: Path) -> None:
    async def talk() -> None:
        model = Option("model", "Model", "m1", (Choice("m1", "Model One"), Choice("m2", "Model Two")), category="model")
        usage = {"sessionUpdate": "usage_update", "used": 500, "size": 1000}
        cost = usage | {"cost": {"amount": 0.5, "currency": "USD"}}
        async with engine_at(place, ScriptedAgent(options=(model,))) as engine:
            session = await engine.create(here(place))
            await run(engine, session, f"emit {json.dumps(cost)}", "tokens 100 20")
            await run(engine, session, "tokens 200 30")
            other = await engine.create(ELSEWHERE)
            await other.set_option("model", "m2")
            await run(engine, other, "say two")

    asyncio.run(talk())
    (row,) = sessions("list", "--no-headings").out.splitlines()
    assert "-      Model One  " in row
    (listed,) = sessions("--json").json["sessions"]
    assert listed["model"] == "Model One"
    tokens = {"totalTokens": 350, "inputTokens": 300, "outputTokens": 50}
    assert listed["usage"] == {"used": 500, "size": 1000, "cost": {"amount": 0.5, "currency": "USD"}, "tokens": tokens}
    assert " · Model One · 350 tokens · $0.5000" in sessions("show", "last").out
    counted = sessions("stats", "--json").json
    assert (counted["tokens"], counted["contextTokens"], counted["cost"]) == (tokens, 500, {"USD": 0.5})
    assert [(it["agent"], it["model"], it["sessions"]) for it in counted["agents"]] == [
        ("", "Model One", 1),
        ("", "Model Two", 1),
    ]
    said = sessions("stats").out
    assert "300 in, 50 out, 500 in contexts now" in said and "$0.5000" in said
    assert sessions("fork", "last", "--json").json["session"]["sessionId"]
    assert sessions("stats", "--json").json["tokens"] == tokens, "what a fork began with is not counted again"


def test_a_list_may_be_of_what_was_active_lately(place: Path) -> None:
    make(place, (here(place), ("say one",)))
    assert "say one" in sessions("list", "--since", "1h").out
    for moment in ("today", "yesterday", "2w", "3 days", "2020-01-01", "2020-01-01T10:00"):
        assert len(sessions("list", "--since", moment, "--json").json["sessions"]) == 1, moment
    late = sessions("list", "--since", "2999-01-01")
    assert late.out == "" and "no sessions with activity since 2999-01-01" in late.err
    assert sessions("search", "one", "--since", "1h", "--json").json["hits"]
    assert sessions("search", "one", "--since", "2999-01-01", "--json").json["hits"] == []
    for nonsense in ("soon", "", "99999999999d", "2026-13-01"):
        assert sessions("list", "--since", nonsense).status in (0, 2), nonsense
    assert "12h, 3d" in sessions("list", "--since", "soon").err


def test_a_list_shows_those_of_all_directories_or_of_another_one(place: Path) -> None:
    make(place, (here(place), ("say one",)), (ELSEWHERE, ("say x",)))
    assert [line.split()[4] for line in sessions("list", "--all", "--no-headings").out.splitlines()] == [
        ELSEWHERE,
        here(place),
    ]
    assert sessions("list", "--cwd", ELSEWHERE).out.endswith("say x\n")
    assert sessions("list", "--cwd", "../project").out.endswith("say one\n")


def test_a_directory_that_was_reached_through_a_link_is_found_by_both_of_its_names(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = place.parent / "link"
    link.symlink_to(here(place))
    make(place, (str(link), ("say by the link",)))
    assert sessions("list").out == ""
    monkeypatch.setenv("PWD", str(link))
    assert "by the link" in sessions("list").out
    make(place, (here(place), ("say by the real name",)))
    assert "by the real name" in sessions("list").out


def test_a_list_that_is_empty_says_what_to_do(place: Path) -> None:
    make(place, (ELSEWHERE, ("say x",)), (here(place), ()))
    done = sessions("list")
    assert (done.status, done.out) == (0, "")
    assert here(place) in done.err and "`--all`" in done.err
    assert "There are no archived sessions" in sessions("list", "--archived", "--all").err


def test_a_list_is_cut_where_it_is_told_and_says_that_there_is_more(place: Path) -> None:
    make(place, *[(here(place), (f"say {n}",)) for n in range(5)])
    done = sessions("list", "--limit", "2")
    assert [it.split()[-1] for it in done.out.splitlines()] == ["TITLE", "4", "3"]
    assert "--limit 0" in done.err
    assert len(sessions("list", "--limit", "0").out.splitlines()) == 6
    assert sessions("list", "--limit", "2", "--json").json["more"] is True
    whole = sessions("list", "--limit", "5", "--json").json
    assert (len(whole["sessions"]), whole["more"]) == (5, False)


def test_a_list_for_programs_is_one_json_document(place: Path) -> None:
    (only,) = make(place, (here(place), (f"say {HOSTILE}",)))
    done = sessions("list", "--json")
    (listed,) = done.json["sessions"]
    assert (listed["sessionId"], listed["cwd"], listed["messageCount"]) == (only, here(place), 2)
    assert listed["updatedAt"].endswith("Z") and listed["archived"] is False
    assert safe_text(done.out) == done.out
    assert sessions("list", "--json", "--cwd", "/nowhere").json == {"sessions": [], "more": False}


def test_titles_are_cut_to_the_width_of_a_terminal_and_not_in_pipes(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(place, (here(place), ("say " + "long 長い " * 20,)))
    assert len(sessions("list").out) > 100
    monkeypatch.setenv("COLUMNS", "60")
    heading, line = sessions("list").out.splitlines()
    assert line.endswith("…") and max(len(line), len(heading)) <= 60


def test_colours_are_for_terminals_and_for_those_who_want_them(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(place, (here(place), ("say x",)))
    assert "\x1b[" not in sessions("list").out
    assert "\x1b[" in sessions("list", terminal=True).out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in sessions("list", terminal=True).out
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b[" not in sessions("list", terminal=True).out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in sessions("list").out


def test_where_there_is_no_store_yet_there_are_no_sessions_and_none_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_at(tmp_path / "x", monkeypatch, tmp_path)
    monkeypatch.delenv("HOLDFAST_STORE")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert sessions("list", "--all").err == "There are no sessions.\n"
    assert sessions("list", "--json").json["sessions"] == []
    assert (
        sessions("search", "x", "--all").err
        == "Nothing was found; `--archived` looks through those that were put away.\n"
    )
    assert sessions("stats", "--json").json["sessions"] == 0
    assert "There is none yet" in sessions("doctor").out
    assert "there is no session 'x'" in sessions("show", "x").err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [("list",), ("show", "x"), ("stats",), ("doctor",), ("vacuum",)])
def test_a_store_that_somebody_names_must_be_there(command: tuple[str, ...], tmp_path: Path) -> None:
    done = sessions(*command, "--store", str(tmp_path / "typo.db"))
    assert (done.status, done.out.count("{")) == (1, 0)
    assert "there is no session store at" in done.err
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_store_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("hello " * 1_000)
    done = sessions("list", "--store", str(tmp_path / "text.db"))
    assert done.status == 1
    assert done.err.startswith("holdfast: ") and done.err.count("\n") == 1


# Naming a session


def test_a_session_is_named_by_its_id_by_the_beginning_of_it_or_as_the_last(place: Path) -> None:
    first, last, other = make(place, (here(place), ("say a",)), (here(place), ("say b",)), (ELSEWHERE, ("say c",)))
    for name, said in ((first, "a"), (first[:20], "a"), (first[5:13], "a"), ("last", "b"), (other[5:], "c")):
        assert sessions("show", name).out.splitlines()[0] == f"say {said}", name
    assert last != first


def test_the_beginning_of_several_ids_is_refused_and_they_are_named(place: Path) -> None:
    ids = make(place, *[(here(place), (f"say {n}",)) for n in range(8)])
    done = sessions("show", "sess_")
    assert done.status == 1
    named = [it for it in ids if it in done.err]
    assert len(named) == 5 and "…" in done.err
    assert "write more of it" in done.err


@pytest.mark.parametrize("name", ["nope", "", "sess_", "%", "'; DROP TABLE session; --", "\x1b[31m", "x" * 10_000])
def test_a_session_that_is_not_there_is_told_in_one_line(name: str, place: Path) -> None:
    make(place)
    done = sessions("show", name)
    assert (done.status, done.out) == (1, "")
    assert "`holdfast sessions list --all`" in done.err
    assert safe_text(done.err) == done.err and done.err.count("\n") == 1 and len(done.err) < 300


def test_there_may_be_no_last_session(place: Path) -> None:
    make(place, (ELSEWHERE, ("say c",)))
    assert "no session of this directory" in sessions("show", "last").err


# search


def test_a_search_shows_where_the_words_were_said_and_marks_them(place: Path) -> None:
    make(
        place, (here(place), ("say The Crème brûlée was good, the creme more so", *TOOLS)), (ELSEWHERE, ("say creme",))
    )
    done = sessions("search", "brulee", "creme")
    assert done.status == 0
    lines = done.out.splitlines()
    assert len(lines) == 5
    assert lines[2] == "    agent: The «Crème» «brûlée» was good, the «creme» more so"
    assert lines[4] == "    title: say The «Crème» «brûlée» was good, the «creme» more so"
    assert len(sessions("search", "creme", "--all").out.splitlines()) == 9
    assert "\x1b[1m\x1b[7mCrème\x1b[0m" in sessions("search", "creme", terminal=True).out


def test_a_long_text_is_shown_around_what_was_found(place: Path) -> None:
    make(place, (here(place), ("say " + "left " * 200 + f"needle {HOSTILE} " + "right " * 200,)))
    found = sessions("search", "needle").out.splitlines()[2]
    assert "left «needle» ␛]0;owned" in found
    assert found.split(": ", 1)[1].startswith("…") and found.endswith("…") and len(found) < 200


def test_a_search_for_programs_gives_whole_texts_and_where_the_words_are(place: Path) -> None:
    (only,) = make(place, (here(place), ("say find the word", "call c9 word of a tool\ndone c9")))
    hits = sessions("search", "word", "--json").json["hits"]
    assert {it["text"][slice(*it["marks"][0])] for it in hits} == {"word"}
    assert {it["session"]["sessionId"] for it in hits} == {only}
    assert (hits[0]["kind"], hits[0]["id"]) == ("tool_call_update", "c9")
    assert len(sessions("search", "word", "--limit", "1", "--json").json["hits"]) == 1


def test_a_search_says_how_many_places_there_are_where_it_shows_only_the_first(place: Path) -> None:
    make(place, (here(place), ("say a word",) * 12))
    some = sessions("search", "word", "--limit", "5")
    assert len(some.out.splitlines()) == 2 + 5
    assert some.err == "The first 5 of 25 places are shown; `--limit 25` shows all.\n"  # with a title
    for limit in ("25", "26"):
        done = sessions("search", "word", "--limit", limit)
        assert len(done.out.splitlines()) == 2 + 25 and done.err == ""
    assert sessions("search", "word", "--limit", "5", "--json").json["total"] == 25
    assert sessions("search", "word", "--json").json["total"] == 25
    assert sessions("search", "nothing", "--json").json["total"] == 0


def test_a_search_looks_into_thoughts_and_tools_for_phrases_and_beginnings_of_words(place: Path) -> None:
    content = _content("c", "the exit code was 137\\nout of memory")
    make(place, (here(place), ("think perhaps recovering helps", f"call c Run\nemit {json.dumps(content)}\ndone c")))
    assert "thought: perhaps «recovering» helps" in sessions("search", "recover*").out
    assert "tool: " in sessions("search", "137").out and "«out of memory»" in sessions("search", "out of memory").out
    assert sessions("search", "memory of out", "--json").json["hits"] == []
    assert len(sessions("search", "memory", "of", "out", "--json").json["hits"]) == 1


def test_a_search_looks_through_what_was_put_away_where_that_is_asked_for(place: Path) -> None:
    (away,) = make(place, (here(place), ("say needle",)))
    sessions("hand-over", away, "--to", "scripted")
    assert " scripted " in sessions("list").out
    sessions("archive", away)
    assert "`--archived`" in sessions("search", "needle").err
    assert sessions("search", "needle", "--archived", "--json").json["hits"]
    assert sessions("search", "needle", "--archived", "--agent", "scripted", "--json").json["hits"]
    assert "there are sessions of: scripted" in sessions("search", "needle", "--agent", "nobody").err


def test_a_search_that_finds_nothing_says_so(place: Path) -> None:
    make(place, (here(place), ("say x",)))
    done = sessions("search", "nothing")
    assert (done.status, done.out) == (0, "")
    assert "`--all`" in done.err
    assert sessions("search", "!!!", "--json").json == {"hits": [], "total": 0}
    assert sessions("search").status == 2


# show


def test_a_command_is_shown_as_one_entry_with_what_it_printed_and_how_it_ended(place: Path) -> None:
    ended = {"sessionUpdate": "terminal_update", "terminalId": "t", "command": "make", "exitStatus": {"exitCode": 1}}
    ended |= {"output": {"data": b64encode(b"1 test failed").decode()}}
    shown = {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "c",
        "content": [{"type": "terminal", "terminalId": "t"}],
    }
    make(place, (here(place), (f"call c Check\nemit {json.dumps(shown)}\nemit {json.dumps(ended)}\ndone c\nsay so",)))
    out = sessions("show", "last").out
    assert "  Tool: Check (completed, exit status 1)\n      make\n      1 test failed\n" in out
    assert "Terminal" not in out and "say so" in out


def test_a_session_is_shown_as_a_transcript_with_numbers(place: Path) -> None:
    (only,) = make(place, (here(place), ("\n".join(TOOLS),)))
    out = sessions("show", "last").out
    assert out.splitlines()[:3] == ["say I will look.", out.splitlines()[1], f"{only} · S"]
    for part in (
        "   1  You\n",
        "   2  Agent\n      I will look.\n",
        "   3  Agent, thinking\n      The roof may be wet.\n",
        "   4  Tool: Read thermometer (read, completed)\n      /project/a.py:3\n",
        "      21 degrees\n",
        "      -cold\n      +warm\n",
        "   5  Terminal: ls (exited with 0)\n      red\n",
        "   6  Plan\n      ☐ Look again\n",
        "   7  Other: _zed/mood\n",
        "   8  Agent\n      It is 21 degrees.\n",
    ):
        assert part in out, part
    assert safe_text(out) == out


def test_a_person_reads_a_transcript_through_the_pager_of_his_choice(
    place: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make(place, (here(place), ("say hello", "say " + "x" * 300_000)))  # more than a pipe holds
    pages = tmp_path / "pages"
    monkeypatch.setenv("PAGER", "none-such")
    monkeypatch.setenv("HOLDFAST_PAGER", f"sh -c 'cat > {pages}'")
    assert sessions("show", "last", terminal=True).out == ""
    assert "hello" in pages.read_text() and "\x1b[" in pages.read_text(), "the terminal is one with colours"
    pages.unlink()
    assert "hello" in sessions("show", "last", "--no-pager", terminal=True).out
    assert "hello" in sessions("show", "last").out, "nobody looks"
    assert sessions("show", "last", "--json", terminal=True).json["entries"]
    for nothing in ("", "cat", "none-such", "'"):
        monkeypatch.setenv("HOLDFAST_PAGER", nothing)
        assert "hello" in sessions("show", "last", terminal=True).out, nothing
    assert not pages.exists()
    monkeypatch.setenv("HOLDFAST_PAGER", "true")
    assert sessions("show", "last", terminal=True).status == 0, "who has read enough leaves"


def test_only_the_last_entries_are_shown_where_that_is_asked_for(place: Path) -> None:
    make(place, (here(place), tuple(f"say {n}" for n in range(9))))
    out = sessions("show", "last", "--limit", "3").out
    assert "  15  You" not in out and "  16  Agent\n      7" in out and "  18  Agent\n      8" in out
    assert [it["number"] for it in sessions("show", "last", "--limit", "3", "--json").json["entries"]] == [16, 17, 18]
    assert len(sessions("show", "last", "--limit", "3", "--raw").out.splitlines()) == 3
    assert sessions("show", "last", "--limit", "0").status == 2


def test_long_output_of_tools_is_shortened_unless_all_is_wanted(place: Path) -> None:
    output = "\\n".join(f"line {n}" for n in range(100))
    make(place, (here(place), (f"call c Run\nemit {json.dumps(_content('c', output))}\ndone c",)))
    out = sessions("show", "last").out
    assert "\n      line 19\n" in out and "\n      line 20\n" not in out and "80 more lines; --full" in out
    assert "\n      line 99\n" in sessions("show", "last", "--full").out


def _content(key: str, text: str) -> dict[str, object]:
    block = {"type": "content", "content": {"type": "text", "text": text.replace("\\n", "\n")}}
    return {"sessionUpdate": "tool_call_content_chunk", "toolCallId": key, "content": block}


def test_nothing_that_was_said_steers_the_terminal_or_looks_like_another_speaker(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = f"{HOSTILE}\\n   9  You\\nrm -rf\\r" + "x" * 60 + "   9  You"
    make(place, (here(place), (f"emit {json.dumps(_said(said))}", f"title {HOSTILE}")))
    monkeypatch.setenv("COLUMNS", "40")
    for arguments in (("show", "last"), ("list",), ("search", "owned"), ("show", "last", "--json"), ("list", "--json")):
        out = sessions(*arguments).out
        assert out and safe_text(out) == out, arguments
    lines = sessions("show", "last").out.splitlines()
    pretended = [it for it in lines if it.lstrip().startswith("9  You")]
    assert len(pretended) > 1 and all(it.startswith(" " * 6) for it in pretended)
    assert max(map(len, lines[5:])) <= 40


def _said(text: str) -> dict[str, object]:
    block = {"type": "text", "text": text.replace("\\n", "\n").replace("\\r", "\r")}
    return {"sessionUpdate": "agent_message", "messageId": "m", "content": [block]}


def test_stored_updates_are_shown_as_they_are_one_a_line(place: Path) -> None:
    make(place, (here(place), ("\n".join(TOOLS),)))
    updates = [json.loads(it) for it in sessions("show", "last", "--raw").out.splitlines()]
    assert [it["sessionUpdate"] for it in updates] == [
        "user_message", "agent_message", "agent_thought", "tool_call_update", "terminal_update", "plan_update",
        "_zed/mood", "agent_message",
    ]  # fmt: skip
    shown = sessions("show", "last", "--json").json
    assert [update for it in shown["entries"] for update in it["updates"]] == updates
    assert [it["role"] for it in shown["entries"]][:4] == ["user", "agent", "thought", "tool"]
    assert shown["turn"] is None


async def test_a_turn_that_runs_is_shown_with_what_it_has_said_so_far(place: Path) -> None:
    agent = ScriptedAgent()
    async with engine_at(place, agent) as engine:
        session = await engine.create(HERE)
        await run(engine, session, "say before")
        begin(engine, session, "say half of", "say  it", "wait gate")
        await agent.at("gate")
        done = await asyncio.to_thread(sessions, "show", session.id)
        assert "   4  Agent\n      half of it\n" in done.out
        assert f"A turn is running in process {os.getpid()}" in done.out
        shown = (await asyncio.to_thread(sessions, "show", session.id, "--json")).json
        assert shown["turn"]["state"] == "running"
        agent.gates["gate"].set()
        await asyncio.wait_for(session.turn.ended, 40) if session.turn else None
        assert await run(engine, session, "say still mine")
    assert "still mine" in (await asyncio.to_thread(sessions, "show", session.id)).out


async def test_a_turn_that_broke_is_shown_and_left_to_whoever_opens_the_session(place: Path) -> None:
    async with engine_process(place) as other:
        session = await other.do("create")
        await other.do("begin", session, "say half\nwait gate")
        await other.kill()
    for _ in range(2):
        done = await asyncio.to_thread(sessions, "show", session)
        assert "   2  Agent\n      half\n" in done.out and "died" in done.out
    async with engine_at(place) as engine:
        await engine.restore(session, CWD)
    assert "Note: The turn was broken off" in (await asyncio.to_thread(sessions, "show", session)).out
