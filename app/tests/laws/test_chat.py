"""Laws of what a chat shows: how text arrived makes no difference, and nothing it holds can steer a terminal."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.model import event_from, text_event
from holdfast.view.live import LiveView
from holdfast.view.markdown_stream import MarkdownPart, MarkdownStream
from holdfast.view.safe_text import BIDI
from holdfast_app.chat.paint import Painter, needs_blank_line

if TYPE_CHECKING:
    from holdfast.view.blocks import Block

OURS = re.compile(r"\x1b\[[0-9;]*m")
STEERS = re.compile(f"[\0-\x1f\x7f-\x9f{BIDI}\ud800-\udfff]")

hostile = st.sampled_from(
    [
        "\x1b]52;c;aGk=\x07", "\x1b]0;title\x07", "\x1b[2J", "\x1b[5A", "\x1bP1$r\x1b\\", "\x9b31m", "\u202e", "\r",
        "\x08", "&#27;", "&#x202e;", "&#x9b;", "\x00", "\u2066", "\x1b[?1049h", "\x1b]8;;http://evil\x1b\\x\x1b]8;;\x1b\\",
    ]
)  # fmt: skip
marks = st.sampled_from(
    [
        "\n", "\n\n", "# ", "- ", "1. ", "  - ", "```\n", "```py\n", "~~~\n", "> ", "| a | b |\n|---|---|\n", "**", "`",
        "[x](y)", "![x](y)", "<b>", "---\n", "    ", "\t", "\r\n", "日本語", "👩\u200d👩\u200d👧", "e\u0301",
        " ", "word ",
    ]
)  # fmt: skip
texts = st.lists(marks | hostile | st.text(max_size=10), max_size=40).map("".join)


def parts(chunks: list[str]) -> list[MarkdownPart]:
    streamed = MarkdownStream()
    return [part for chunk in chunks for part in streamed.feed(chunk)] + list(streamed.finish())


@given(texts, st.lists(st.integers(0, 400), max_size=20))
def test_however_a_text_is_split_its_parts_are_the_same(text: str, cuts: list[int]) -> None:
    at = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    chunks = [text[start:end] for start, end in pairwise(at)]
    assert parts(chunks) == parts([text]) == parts(list(text))


@settings(max_examples=30)
@given(st.integers(0, 40_000), st.integers(0, 40_000), st.integers(1, 9_000), st.booleans())
def test_however_a_very_long_line_is_split_its_parts_are_the_same(
    before: int, after: int, size: int, words: bool
) -> None:
    text = ("ab " if words else "abc") * (before // 3) + "\n" + "x" * after
    assert parts([text[n : n + size] for n in range(0, len(text), size)]) == parts([text])


@given(texts)
def test_looking_at_what_is_not_finished_changes_nothing(text: str) -> None:
    streamed = MarkdownStream()
    found: list[MarkdownPart] = []
    for character in text:
        found += streamed.feed(character)
        streamed.rest(50)
    assert found + list(streamed.finish()) == parts([text])


json = st.recursive(
    st.none() | st.booleans() | st.integers() | texts, lambda inner: st.lists(inner, max_size=3), max_leaves=5
)


def objects(**members: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Make objects of fixed and of drawn members."""
    drawn: dict[str, st.SearchStrategy[Any]] = {
        name: value if isinstance(value, st.SearchStrategy) else st.just(value) for name, value in members.items()
    }
    return st.fixed_dictionaries(drawn)


def content(**members: Any) -> st.SearchStrategy[dict[str, Any]]:
    return objects(type="content", content=objects(**members))


contents = st.one_of(
    content(type="text", text=texts),
    content(type="resource_link", uri=texts, name=texts),
    content(type="image", mimeType=texts, data="AAAA"),
    objects(type="diff", path=texts, oldText=texts, newText=texts),
    objects(type="diff", changes=[], path=texts, patch=objects(text=texts)),
    objects(type="diff", changes=st.lists(objects(operation="add", path=texts), max_size=2)),
)
status = st.sampled_from(["pending", "in_progress", "completed", "failed", "odd"])
message = st.sampled_from("xy")
text_block = objects(type="text", text=texts)
updates: st.SearchStrategy[dict[str, Any]] = st.one_of(
    objects(
        sessionUpdate="tool_call_update", toolCallId=st.sampled_from("ab"), title=texts, status=status, rawOutput=json,
        content=st.lists(contents, max_size=3), locations=st.lists(objects(path=texts), max_size=2),
    ),
    objects(
        sessionUpdate=st.sampled_from(["agent_message_chunk", "agent_thought_chunk", "user_message_chunk"]),
        messageId=message, content=text_block,
    ),
    objects(sessionUpdate="agent_message", messageId=message, content=st.lists(text_block, max_size=2)),
    objects(
        sessionUpdate="plan_update",
        plan=objects(type="items", planId="p", entries=st.lists(objects(content=texts, status=texts), max_size=3)),
    ),
    objects(sessionUpdate="notice", severity="warning", title=texts, description=texts),
    objects(sessionUpdate="state_update", state="idle", stopReason="error", error=objects(message=texts)),
)  # fmt: skip


@settings(max_examples=100)
@given(st.lists(updates, max_size=8), st.integers(8, 120), st.sampled_from(["no", "mono", "yes"]), st.booleans())
def test_nothing_an_agent_says_can_steer_the_terminal(
    said: list[dict[str, Any]], width: int, colours: Any, unicode: bool
) -> None:
    painter = Painter(width, colours, unicode, cwd="/project")
    view = LiveView()
    blocks: list[Block] = [view.prompted("\x1b[2J\u202e")]
    for update in said:
        blocks += view.feed(event_from(update))
        for line in painter.live(view.live(), 10):
            assert not STEERS.search(OURS.sub("", line))
    blocks += view.finish()
    for block in blocks:
        for line in painter.lines(block):
            assert not STEERS.search(OURS.sub("", line))
            assert colours != "no" or "\x1b" not in line


@given(texts, st.lists(st.integers(0, 400), max_size=8), st.integers(8, 100))
def test_however_a_message_is_split_it_looks_the_same(text: str, cuts: list[int], width: int) -> None:
    at = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]

    def painted(chunks: list[str]) -> list[str]:
        view = LiveView()
        blocks = [block for chunk in chunks for block in view.feed(text_event("agent_message_chunk", "m", chunk))]
        blocks += view.finish()
        painter, lines, before = Painter(width), list[str](), None
        for block in blocks:
            lines += [""] if before is not None and needs_blank_line(before, block) else []
            lines += painter.lines(block)
            before = block
        return lines

    assert painted([text[start:end] for start, end in pairwise(at)]) == painted([text])


@given(st.text("abc xyz日本👩‍é\u0301<_`", max_size=300))
def test_all_that_was_said_is_on_the_screen(text: str) -> None:
    painter, view = Painter(40, "mono"), LiveView()
    blocks = [*view.feed(text_event("agent_message_chunk", "m", text)), *view.finish()]
    shown = "".join(OURS.sub("", line) for block in blocks for line in painter.lines(block))
    letters = re.compile(r"[\s_`─]|\\")  # what Markdown may mean something else by, as a rule by underscores
    assert letters.sub("", shown) == letters.sub("", text)
