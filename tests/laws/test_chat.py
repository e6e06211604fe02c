"""Laws of what a chat shows: how text arrived makes no difference, and nothing it holds can steer a terminal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from holdfast.chat.paint import Painter, spaced
from holdfast.chat.streamed import Part, Streamed
from holdfast.chat.view import View
from holdfast.model import event_from, text_event
from holdfast.model.plain import BIDI
from hypothesis import given
from hypothesis import strategies as st

if TYPE_CHECKING:
    from holdfast.chat.blocks import Block

OURS = re.compile(r"\x1b\[[0-9;]*m")
STEERS = re.compile(f"[\0-\x1f\x7f-\x9f{BIDI}\ud800-\udfff]")

hostile = st.sampled_from(
    ["\x1b]52;c;aGk=\x07", "\x1b]0;title\x07", "\x1b[2J", "\x1b[5A", "\x1bP1$r\x1b\\", "\x9b31m", "\u202e", "\r", "\x08"]
    + ["&#27;", "&#x202e;", "&#x9b;", "\x00", "\u2066", "\x1b[?1049h", "\x1b]8;;http://evil\x1b\\x\x1b]8;;\x1b\\"]
)  # fmt: skip
marks = st.sampled_from(
    ["\n", "\n\n", "# ", "- ", "1. ", "  - ", "```\n", "```py\n", "~~~\n", "> ", "| a | b |\n|---|---|\n", "**", "`"]
    + ["[x](y)", "![x](y)", "<b>", "---\n", "    ", "\t", "\r\n", "日本語", "👩‍👩‍👧", "e\u0301", " ", "word "]
)  # fmt: skip
texts = st.lists(marks | hostile | st.text(max_size=10), max_size=40).map("".join)


def parts(chunks: list[str]) -> list[Part]:
    streamed = Streamed()
    return [part for it in chunks for part in streamed.feed(it)] + list(streamed.finish())


@given(texts, st.lists(st.integers(0, 400), max_size=20))
def test_however_a_text_is_split_its_parts_are_the_same(text: str, cuts: list[int]) -> None:
    at = [0, *sorted(min(it, len(text)) for it in cuts), len(text)]
    chunks = [text[start:end] for start, end in zip(at, at[1:], strict=False)]
    assert parts(chunks) == parts([text]) == parts(list(text))


@given(st.integers(0, 40_000), st.integers(0, 40_000), st.integers(1, 9_000), st.booleans())
def test_however_a_very_long_line_is_split_its_parts_are_the_same(
    before: int, after: int, size: int, words: bool
) -> None:
    text = ("ab " if words else "abc") * (before // 3) + "\n" + "x" * after
    assert parts([text[n : n + size] for n in range(0, len(text), size)]) == parts([text])


@given(texts)
def test_looking_at_what_is_not_finished_changes_nothing(text: str) -> None:
    streamed = Streamed()
    found: list[Part] = []
    for it in text:
        found += streamed.feed(it)
        streamed.rest(50)
    assert found + list(streamed.finish()) == parts([text])


json = st.recursive(
    st.none() | st.booleans() | st.integers() | texts, lambda it: st.lists(it, max_size=3), max_leaves=5
)
contents = st.one_of(
    st.builds(lambda text: {"type": "content", "content": {"type": "text", "text": text}}, texts),
    st.builds(
        lambda path, old, new: {"type": "diff", "path": path, "oldText": old, "newText": new}, texts, texts, texts
    ),
    st.builds(lambda path, text: {"type": "diff", "changes": [], "path": path, "patch": {"text": text}}, texts, texts),
    st.builds(lambda path: {"type": "diff", "changes": [{"operation": "add", "path": path}]}, texts),
    st.builds(lambda uri: {"type": "content", "content": {"type": "resource_link", "uri": uri, "name": uri}}, texts),
    st.builds(lambda mime: {"type": "content", "content": {"type": "image", "mimeType": mime, "data": "AAAA"}}, texts),
)
updates: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.builds(
        lambda key, title, status, content, path, raw: {
            "sessionUpdate": "tool_call_update", "toolCallId": key, "title": title, "status": status,
            "content": content, "locations": [{"path": path}], "rawOutput": raw,
        },
        st.sampled_from("ab"), texts, st.sampled_from(["pending", "in_progress", "completed", "failed", "odd"]),
        st.lists(contents, max_size=3), texts, json,
    ),
    st.builds(
        lambda kind, key, text: {"sessionUpdate": kind, "messageId": key, "content": {"type": "text", "text": text}},
        st.sampled_from(["agent_message_chunk", "agent_thought_chunk", "user_message_chunk"]),
        st.sampled_from("xy"), texts,
    ),
    st.builds(
        lambda key, text: {"sessionUpdate": "agent_message", "messageId": key, "content": [{"type": "text", "text": text}]},
        st.sampled_from("xy"), texts,
    ),
    st.builds(
        lambda text, status: {
            "sessionUpdate": "plan_update",
            "plan": {"type": "items", "planId": "p", "entries": [{"content": text, "status": status}]},
        },
        texts, texts,
    ),
    st.builds(
        lambda title, about: {"sessionUpdate": "notice", "severity": "warning", "title": title, "description": about},
        texts, texts,
    ),
    st.builds(
        lambda error: {"sessionUpdate": "state_update", "state": "idle", "stopReason": "error", "error": {"message": error}},
        texts,
    ),
)  # fmt: skip


@given(st.lists(updates, max_size=8), st.integers(8, 120), st.sampled_from(["no", "mono", "yes"]), st.booleans())
def test_nothing_an_agent_says_can_steer_the_terminal(
    said: list[dict[str, Any]], width: int, colours: Any, unicode: bool
) -> None:
    painter = Painter(width, colours, unicode, cwd="/project")
    view = View()
    blocks: list[Block] = [view.prompted("\x1b[2J\u202e")]
    for it in said:
        blocks += view.see(event_from(it))
        for line in painter.live(view.live(), 10):
            assert not STEERS.search(OURS.sub("", line))
    blocks += view.finish()
    for block in blocks:
        for line in painter.lines(block):
            assert not STEERS.search(OURS.sub("", line))
            assert colours != "no" or "\x1b" not in line


@given(texts, st.lists(st.integers(0, 400), max_size=8), st.integers(8, 100))
def test_however_a_message_is_split_it_looks_the_same(text: str, cuts: list[int], width: int) -> None:
    at = [0, *sorted(min(it, len(text)) for it in cuts), len(text)]

    def painted(chunks: list[str]) -> list[str]:
        view = View()
        blocks = [block for it in chunks for block in view.see(text_event("agent_message_chunk", "m", it))]
        blocks += view.finish()
        painter, lines, before = Painter(width), list[str](), None
        for block in blocks:
            lines += [""] if before is not None and spaced(before, block) else []
            lines += painter.lines(block)
            before = block
        return lines

    assert painted([text[start:end] for start, end in zip(at, at[1:], strict=False)]) == painted([text])


@given(st.text("abc xyz日本👩‍é\u0301<_`", max_size=300))
def test_all_that_was_said_is_on_the_screen(text: str) -> None:
    painter, view = Painter(40, "mono"), View()
    blocks = [*view.see(text_event("agent_message_chunk", "m", text)), *view.finish()]
    shown = "".join(OURS.sub("", line) for block in blocks for line in painter.lines(block))
    letters = re.compile(r"[\s_`]|\\")  # what Markdown may mean something else by
    assert letters.sub("", shown) == letters.sub("", text)
