"""Entries as HTML: what they are can be seen, and nothing in them can do anything."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
from base64 import b64encode
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.tests.support.html_judge import hostile, judged
from holdfast.format import fold
from holdfast.view.entries import Part, view_entry
from holdfast.view.languages import LANGUAGES
from holdfast.view.tool_calls import call_in_question
from holdfast_app.html import draw_call, draw_entry, draw_part, stylesheet
from holdfast_app.html.code import highlighted
from holdfast_app.html.diffs import draw_diff
from holdfast_app.html.terminal import GROUND, READABLE, contrast, shown

DIFF = """--- a/x.py
+++ b/x.py
@@ -3,4 +3,5 @@ def f():
 same
-old = 1
+old = 2
+more
 end
"""


def drawn(update: Any) -> str:
    (entry,) = fold([msgspec.json.encode(update)])
    return draw_entry(view_entry(entry), "e1")


@settings(max_examples=150, deadline=None)
@given(hostile, st.sampled_from(sorted(LANGUAGES)))
@example('" onmouseover="alert(1)', "py")
@example("--- <script>\n+++ </div>\n@@ -1 +1 @@ <b>\n-<i>\n+</pre>", "html")
def test_no_part_lets_anything_through(text: str, language: str) -> None:
    coloured = view_entry(next(iter(fold([msgspec.json.encode(terminal(f"\x1b[31m{text}\x1b[0m"))])))).parts
    parts = (
        Part("prose", text), Part("code", text, language), Part("code", text, text), Part("diff", text, text),
        Part("diff", f"@@ -1 +1 @@\n-{text}\n+{text}!", text), Part("link", text, text), Part("step", text, text),
        Part("image", text, text), Part("remark", text), Part("prose", f"```{text}\n{text}\n```"), *coloured,
    )  # fmt: skip
    for part in parts:
        judge = judged(draw_part(part))
        assert (judge.wrong, judge.open) == ([], [])
        assert all(
            re.match(r"#terminal-[\w.-]+$|https?://|mailto:|data:image/png;base64,", link) for link in judge.links
        )


def terminal(output: str) -> Any:
    data = b64encode(output.encode(errors="replace")).decode()
    return {"sessionUpdate": "terminal_update", "terminalId": "t1", "command": "make", "output": {"data": data}}


@pytest.mark.parametrize(
    ("how", "words"),
    [({"rawOutput": {"exit_code": 3}}, "exit status 3"), ({"_meta": {"terminal_exit": {"signal": "9"}}}, "signal 9")],
)
def test_a_call_whose_command_failed_is_not_ticked(how: dict[str, Any], words: str) -> None:
    call = {"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "make", "status": "completed"}
    assert 'data-status="completed"' in drawn(call)
    html = drawn({**call, **how})
    assert 'data-status="failed"' in html and f"completed, {words}" in html


def test_a_terminal_whose_command_failed_is_marked() -> None:
    assert 'data-status="failed"' in drawn({**terminal("x"), "exitStatus": {"exitCode": 3}})
    assert "data-status" not in drawn({**terminal("x"), "exitStatus": {"exitCode": 0}}) + drawn(terminal("x"))


def test_a_diff_has_numbers_and_marks_what_differs() -> None:
    html = draw_diff(DIFF, "x.py")
    assert '<del data-n="4">old = <b>1</b></del>' not in html  # one line became two: nothing belongs together
    assert '<del data-n="4">old = 1</del><ins data-n="4">old = 2</ins><ins data-n="5">more</ins>' in html
    assert '<span data-n="5">end</span><span class="again" aria-hidden="true" data-n="6">end</span>' in html
    assert '<span class="added">+2</span> <span class="removed">&minus;1</span>' in html
    assert "a/x.py" not in html  # the caption names the file
    pair = draw_diff("@@ -1 +1 @@\n-name = 1\n+name = 2")
    assert '<del data-n="1">name = <b>1</b></del><ins data-n="1">name = <b>2</b></ins>' in pair


def test_no_line_of_a_diff_is_lost() -> None:
    lines = ["--- looks like a header", "+++ so does this", "-", "+", " ", "\\ No newline at end of file", "x"]
    html = draw_diff("\n".join(["@@ -1,9 +1,9 @@", *lines]))
    text = "\n".join(judged(html).text)
    for line in ("-- looks like a header", "++ so does this", "No newline at end of file", "x"):
        assert line in text


def test_a_terminal_has_its_colours_as_classes() -> None:
    html = drawn(terminal("\x1b[1;32mok\x1b[0m <done> \x1b[30;40mhidden\x1b[0m"))
    assert '<span class="f2 tb">ok</span> &lt;done&gt; <span class="b0">hidden</span>' in html
    assert 'id="terminal-t1"' in html


def test_every_colour_can_be_read() -> None:
    assert all(contrast(shown(number), GROUND) >= READABLE for number in range(256))


def test_a_tool_call_shows_its_status_its_places_and_its_terminal() -> None:
    call = {
        "sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "Run tests", "kind": "execute",
        "status": "failed", "rawInput": {"command": "make <test>"}, "locations": [{"path": "/w/a.py", "line": 3}],
        "content": [{"type": "terminal", "terminalId": "t1"}],
    }  # fmt: skip
    html = drawn(call)
    text = "".join(judged(html).text)
    assert 'data-kind="execute" data-status="failed"' in html and '<a href="#terminal-t1">' in html
    assert "<details>" in html  # folded
    for said in ("Run tests", "(execute, failed)", "/w/a.py:3", "make <test>"):
        assert said in text


def test_a_small_change_is_open_a_large_one_is_folded() -> None:
    diff = {"type": "diff", "path": "/a", "oldText": "a\n", "newText": "b\n"}
    call = {"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "Edit", "content": [diff]}
    assert "<details open>" in drawn(call)
    assert "<details>" in drawn({**call, "content": [{**diff, "newText": "b\n" * 10_000}]})


@pytest.mark.requirement("P13")
def test_a_question_shows_the_whole_call() -> None:
    asked = {"toolCallId": "c", "title": "rm", "kind": "delete", "rawInput": {"command": "rm -rf /<x>" + "y" * 5000}}
    text = "".join(judged(draw_call(call_in_question(None, {**asked, "locations": [{"path": "/p"}]}))).text)
    assert "rm -rf /<x>" + "y" * 5000 in text and "/p" in text


@pytest.mark.parametrize(
    ("code", "language", "shown"),
    [
        ("def f(): return 1  # x", "py", '<span class="k">def</span> <span class="f">f</span>'),
        ("if (a < b) {}", "ts", "a &lt; b"),
        ("x" * 300, "py", "x" * 300),
        ("<b>", "no-such", "&lt;b&gt;"),
    ],
)
def test_code_is_highlighted_by_classes(code: str, language: str, shown: str) -> None:
    assert shown in highlighted(code, language)


@settings(max_examples=60, deadline=None)
@example("0", "console")
@given(st.text(max_size=80), st.sampled_from(sorted(LANGUAGES)))
def test_highlighting_changes_no_text(code: str, language: str) -> None:
    plain = "".join(judged(f"<pre>{highlighted(code.rstrip(), 'none')}</pre>").text)
    assert "".join(judged(f"<pre>{highlighted(code.rstrip(), language)}</pre>").text).removesuffix("\n") == plain


def test_the_style_is_small_and_loads_nothing() -> None:
    style = stylesheet()
    assert len(gzip.compress(style.encode())) < 12_000
    assert not re.search(r"@import|url\(|expression", style)


def test_nothing_that_draws_is_loaded_before_something_is_drawn() -> None:
    code = "import sys, holdfast_app.html; print([n for n in ('markdown_it', 'pygments') if n in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_command_is_shown_as_one_types_it() -> None:
    call = {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "c",
        "rawInput": {"command": 'echo "a"\nls', "cwd": "/w"},
    }
    text = "".join(judged(drawn(call)).text)
    assert 'echo "a"\nls' in text and '"cwd": "/w"' in text


def test_an_entry_says_when_it_began_where_its_id_tells() -> None:
    message = {"sessionUpdate": "agent_message", "content": [{"type": "text", "text": "Hello"}]}
    call = {"sessionUpdate": "tool_call_update", "title": "Run"}
    at = "0191a2b3c4d5"  # 2024-08-30T09:52Z
    for update in ({**message, "messageId": f"msg_{at}{'0' * 12}"}, {**call, "toolCallId": f"call_{at}{'f' * 12}"}):
        assert 'datetime="2024-08-30T' in drawn(update)
    for update in ({**message, "messageId": "m1"}, {**call, "toolCallId": "toolu_01A09q90qw90lq917835lq9"}):
        assert "<time" not in drawn(update)
