"""How blocks look: in a width, with colours and without."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from holdfast.model import History, event_from
from holdfast.view.blocks import AgentContent, AgentText, Block, Call, Note, Plan, Prompt
from holdfast.view.entries import Part, shown_status
from holdfast.view.markdown_stream import MarkdownPart
from holdfast.view.tool_calls import call_block
from holdfast_app.chat.paint import CALL_LINES, DIFF_LINES, Painter, needs_blank_line

OURS = re.compile(r"\x1b\[[0-9;]*m")


def painted(block: Block, width: int = 40, **more: Any) -> list[str]:
    return [OURS.sub("", line) for line in replace(Painter(width), **more).lines(block)]


def markdown(text: str, width: int = 40) -> list[str]:
    return painted(AgentText(MarkdownPart(text), first=True), width)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("some **bold**, *soft* and `code`", ["some bold, soft and code"]),
        ("one\ntwo", ["one", "two"]),
        ("## Heading", ["Heading"]),
        ("- a\n  - b\n- c", ["• a", "  • b", "• c"]),
        ("7) seven", ["7) seven"]),
        ("> quoted\n> more", ["▌ quoted", "▌ more"]),
        ("---", ["─" * 40]),
        ("List<String> & <b>x</b>", ["List<String> & <b>x</b>"]),
        ("<div>\nhtml\n</div>", ["<div>", "html", "</div>"]),
        ("[text](http://there)", ["text (http://there)"]),
        ("<http://there>", ["http://there"]),
        ("![alt](pic.png)", ["[image: alt] (pic.png)"]),
        ("~~gone~~", ["gone"]),
        ("| a | b |\n|:--|--:|\n| 日本 | 1 |", ["a      b", "────────", "日本   1"]),
    ],
)
def test_markdown_is_laid_out(text: str, lines: list[str]) -> None:
    assert markdown(text) == lines


def test_lines_break_between_words_and_hang_under_their_marker() -> None:
    assert markdown("- one two three four", 12) == ["• one two", "  three four"]
    assert all(len(line) <= 12 for line in markdown("word " * 30, 12))
    assert markdown("x" * 25, 10) == ["x" * 10, "x" * 10, "x" * 5]


def test_a_table_that_does_not_fit_is_told_row_by_row() -> None:
    assert markdown("| a | b | c |\n|---|---|---|\n| 1 | 2 | 3 |", 16) == ["a │ b │ c", "1 │ 2 │ 3"]


def test_code_keeps_its_lines_and_is_highlighted_where_the_language_is_known() -> None:
    block = AgentText(MarkdownPart("def f():\n\treturn 1" + " " * 50 + "# end", language="python"), first=True)
    assert painted(block, 20) == ["```python", "def f():", "    return 1" + " " * 50 + "# end", "```"]
    assert len(set(OURS.findall("".join(Painter(20).lines(block))))) > 3
    unknown = replace(block, part=MarkdownPart("x", language="brainfuck"))
    assert set(OURS.findall("".join(Painter(20).lines(unknown)))) == {"\x1b[2m", "\x1b[0m"}


def test_code_in_several_parts_has_one_beginning_and_one_end() -> None:
    first = AgentText(MarkdownPart("a", language="", closes=False), first=True)
    last = AgentText(MarkdownPart("b", language="", opens=False), first=False)
    assert painted(first) + painted(last) == ["```", "a", "b", "```"]
    assert painted(AgentText(MarkdownPart("", language="", opens=False), first=False)) == ["```"]


def test_thoughts_are_dim_and_stand_behind_a_line() -> None:
    block = AgentText(MarkdownPart("**Hm**\n\n- well"), first=True, thought=True)
    assert painted(block) == ["┊ Hm", "┊", "┊ • well"]
    assert all("\x1b[2" in line for line in Painter(40).lines(block))


def test_a_tool_call_tells_its_state_and_what_it_has_shown() -> None:
    call = Call("Read", "read", "completed", ("/project/src/a.py:3",), (Part("prose", "all\nof it"),))
    assert painted(call, cwd="/project") == ["✓ Read · src/a.py:3", "  all", "  of it"]
    assert painted(replace(call, status="failed", locations=(), parts=())) == ["✗ Read"]
    assert painted(replace(call, status="odd", locations=(), parts=()), unicode=False) == ["o Read"]
    assert painted(replace(call, title="Read src/a.py:3"), cwd="/project")[0] == "✓ Read src/a.py:3"


def test_a_command_that_failed_is_not_ticked() -> None:
    call = Call("Run", "execute", shown_status("completed", "exit status 3"), exit_status="exit status 3")
    assert painted(call) == ["✗ Run · exit status 3"]
    assert painted(replace(call, status=shown_status("completed", ""), exit_status="")) == ["✓ Run"]
    assert painted(replace(call, status="cancelled", exit_status="signal 15")) == ["⊘ Run · cancelled · signal 15"]


@pytest.mark.parametrize(
    ("members", "failure"),
    [
        ({"rawOutput": {"exit_code": 3}}, "exit status 3"),
        ({"rawOutput": {"exitCode": 3}}, "exit status 3"),
        ({"_meta": {"terminal_exit": {"exit_code": 3, "signal": None}}}, "exit status 3"),
        ({"rawOutput": {"exit_code": 0}}, ""),
        ({"rawOutput": "exit_code 3"}, ""),
        ({}, ""),
    ],
)
def test_agents_of_version_1_say_how_a_command_ended_in_ways_of_their_own(members: Any, failure: str) -> None:
    history = History()
    history.apply(event_from({"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "Run", **members}))
    assert call_block(history, "c").exit_status == failure


def test_output_that_is_too_wide_is_folded_under_its_indent() -> None:
    wide = "  x" + "日" * 8 + "y z"
    call = Call("Run", "", "completed", (), (Part("code", f"short\n{wide}"),))
    lines = painted(call, 14)
    assert lines == ["✓ Run", "  short", "    x日日日日", "  日日日日y z"]
    assert "".join(line[2:] for line in lines[2:]) == wide
    diff = Call("Edit", "", "completed", (), (Part("diff", f"@@ -1 +1 @@\n+{'n' * 20}", "f"),))
    assert painted(diff, 14)[-2:] == [f"  +{'n' * 11}", f"  {'n' * 9}"]


def test_of_a_call_that_is_shown_whole_nothing_is_left_out() -> None:
    places = tuple(f"/p/{n}" for n in range(5))
    call = Call("x" * 500, "", "pending", places)
    assert "".join(painted(call, 80)).count("x") == 400
    assert "…" in "".join(painted(call, 80)) and "2 more" in "".join(painted(call, 80))
    whole = "".join("".join(painted(replace(call, whole=True), 80)).split())
    assert whole.count("x") == 500
    assert all(place in whole for place in places)


def test_much_output_is_shortened_in_the_middle_unless_it_is_wanted_whole() -> None:
    call = Call("Run", "", "completed", (), (Part("code", "\n".join(map(str, range(100)))),))
    lines = painted(call)
    assert len(lines) == CALL_LINES + 2
    assert lines[1] == "  0" and lines[-1] == "  99"
    assert f"  … {100 - CALL_LINES} more lines: /details" in lines
    assert len(painted(replace(call, whole=True))) == 101


def test_a_diff_has_its_file_its_counts_and_its_colours() -> None:
    patch = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n same\n-old\n+new\n--- not a header\n"
    call = Call("Edit", "edit", "completed", (), (Part("diff", patch, "/project/x"),))
    assert painted(call, cwd="/project") == [
        "✓ Edit", "  x  +1 -2", "  @@ -1,2 +1,2 @@", "   same", "  -old", "  +new", "  --- not a header"
    ]  # fmt: skip
    lines = Painter(40).lines(call)
    assert "\x1b[31m-old" in lines[4] and "\x1b[32m+new" in lines[5]
    long = replace(call, parts=(Part("diff", "@@\n" + "+x\n" * 1000, "x"),))
    assert len(painted(long)) < DIFF_LINES + 5


def test_a_plan_is_a_checklist() -> None:
    steps = tuple(
        Part("step", f"do {status}", status) for status in ("completed", "in_progress", "pending", "cancelled", "odd")
    )
    assert [line[:4] for line in painted(Plan(steps))] == ["[x] ", "[~] ", "[ ] ", "[-] ", "[ ] "]


@pytest.mark.parametrize("unicode", [True, False])
def test_nothing_but_ascii_where_the_terminal_has_nothing_else(unicode: bool) -> None:
    blocks: list[Block] = [
        Prompt("hello"), AgentText(MarkdownPart("answer"), first=True),
        AgentText(MarkdownPart("hm"), first=True, thought=True),
        Call("Look", "", "cancelled", ("a",), (Part("code", "\n".join("x" * 50)),)), Note("note", "more", "warning"),
        Note("over", tone="end"), Plan((Part("step", "x", "completed"),)),
    ]  # fmt: skip
    painter = Painter(40, "no", unicode)
    text = "\n".join(line for block in blocks for line in painter.lines(block))
    assert text.isascii() != unicode


def test_without_colours_markdown_stays_as_it_was_written() -> None:
    assert painted(AgentText(MarkdownPart("# **x**"), first=True), colours="no") == ["# **x**"]
    assert Painter(40, "mono").lines(AgentText(MarkdownPart("**x**"), first=True)) == ["\x1b[1mx\x1b[0m"]
    assert Painter(40, "mono").lines(Note("x", tone="error"))[0] == "✗ x"


def test_what_is_live_takes_no_more_than_its_room() -> None:
    blocks: list[Block] = [
        AgentText(MarkdownPart("word " * 100), first=True),
        Call("Run", "", "in_progress", (), (Part("code", "y\n" * 50 + "z" * 99),)),
    ]
    lines = [OURS.sub("", line) for line in Painter(20).live(blocks, 8)]
    assert len(lines) == 8 and all(len(line) <= 20 for line in lines)
    assert lines[-1].strip("z ") == ""
    assert Painter(20).live(blocks, 0) == []


def test_empty_lines_stand_between_what_does_not_belong_together() -> None:
    text, call, note = AgentText(MarkdownPart("x"), first=True), Call("c", "", "completed"), Note("n")
    assert (
        needs_blank_line(Prompt("p"), text)
        and needs_blank_line(text, call)
        and needs_blank_line(call, text)
        and needs_blank_line(text, text)
    )
    assert not needs_blank_line(call, call) and not needs_blank_line(note, note)
    assert not needs_blank_line(text, AgentText(MarkdownPart("y"), first=False))
    assert needs_blank_line(text, AgentText(MarkdownPart("y", gap=True), first=False))
    assert not needs_blank_line(note, AgentContent(Part("code", "x")))


def test_a_line_of_a_megabyte_is_shortened_like_many_lines_unless_all_is_wanted() -> None:
    call = Call("Read", "read", "completed", parts=(Part("code", "x" * 1_000_000),))
    lines = Painter(80, "no").lines(call)
    assert len(lines) < 400 and any("more lines: /details" in line for line in lines)
    assert len(Painter(80, "no").lines(replace(call, whole=True))) > 10_000
