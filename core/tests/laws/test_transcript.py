"""Laws of what people are shown: nothing that was said can steer what shows it, or be taken for a part of it."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from core.tests.support.updates import FEW, histories
from holdfast.model import event_from
from holdfast.model.history import History
from holdfast.view.safe_text import BIDI, safe_line, safe_text, terminal_text
from holdfast.view.transcript import markdown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from markdown_it.token import Token

    from holdfast.model import Update

many = settings(max_examples=4 * FEW, deadline=None)

PIECES = (
    "~~~", " ~~~", "~~~~", "!", "```", "````", "`", "``", "\\", "\n", "\n\n", "\r", "\r\n", " ", "    ", "\t", "- ",
    "1. ", "> ", "# ", "## You", "===", "---", "<script>", "</script>", "<!--", "-->", "<![CDATA[", "<?", "<b", ">",
    "<div>\n", "<style>", "[a]: /b", "[x](javascript:alert(1))", "![i](http://x/y)", "&lt;", "$", "|", "text", "é",
    "\x1b[2J", "\x9b31m", "\u202e", "* ",
)  # fmt: skip
"""What Markdown is made of, and what may steer something."""

hostile = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


def tokens(text: str) -> Iterator[Token]:
    """Parse Markdown the way most programs do; give all tokens, those inside lines too."""
    for token in MarkdownIt("commonmark").parse(text):
        yield token
        yield from token.children or ()


def entries(*said: str) -> History:
    updates: list[Update] = []
    for n, text in enumerate(said):
        block: Any = {"type": "text", "text": text}
        step = {"content": text, "status": text}
        result = {"type": "content", "content": block}
        call = {"title": text, "kind": text, "rawInput": text, "status": "completed", "content": [result]}
        updates += (
            {"sessionUpdate": "agent_message", "messageId": f"m{n}", "content": [block, block]},
            {"sessionUpdate": "tool_call_update", "toolCallId": f"c{n}", **call},
            {
                "sessionUpdate": "plan_update",
                "plan": {"planId": f"p{n}", "entries": [step]},
            },
            {"sessionUpdate": f"_{text}", "x": text},
        )
    history = History()
    for update in updates:
        history.apply(event_from(update))
    return history


@many
@given(st.lists(hostile, min_size=1, max_size=3))
@example(["```\n", "x"])
@example(["<!--", "x"])
@example(["- ```\n  ```\n<script>"])
@example(["a `\n`<script>`"])
@example(["`\\`<b>`"])
@example(["\r```\r<b>"])
@example(["  ~~~\n~~~\n<img src=x>"])
@example(["- ~~~\n~~~\n![x](http://y)"])
@example(["\\\\![x](http://y)"])
def test_nothing_that_was_said_becomes_a_part_of_the_transcript(said: list[str]) -> None:
    parsed = list(tokens(markdown(entries(*said))))
    headings = [token for token in parsed if token.type == "heading_open" and token.level == 0]
    assert len(headings) == 4 * len(said)
    assert not [token for token in parsed if token.type.startswith("html") or token.type == "image"]
    fences = [token.content for token in parsed if token.type == "fence" and token.level == 0]
    assert len(fences) == 3 * len(said)


@many
@given(hostile)
def test_what_a_tool_gave_is_in_its_fence_as_it_was(said: str) -> None:
    call = {"sessionUpdate": "tool_call_update", "toolCallId": "c", "rawInput": said}
    history = History()
    history.apply(event_from(call))
    (fence,) = [token for token in tokens(markdown(history)) if token.type == "fence"]
    assert fence.content.rstrip() == safe_text(said).rstrip()


@settings(max_examples=FEW, deadline=None)
@given(histories)
def test_every_history_can_be_told(sequence: list[Update]) -> None:
    history = History()
    for update in sequence:
        history.apply(event_from(update))
    told = markdown(history)
    assert safe_text(told) == told
    assert told.count("\n## ") + told.startswith("## ") >= len(history)


SAFE = re.compile(r"[^\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff" + BIDI + "]*")


@many
@given(st.text(st.characters()) | hostile)
def test_no_text_can_steer_a_terminal(text: str) -> None:
    assert SAFE.fullmatch(safe_text(text))
    assert SAFE.fullmatch(safe_line(text)) and not {"\n", "\t"} & set(safe_line(text))
    safe_text(text).encode()
    for character in safe_text(text):
        assert unicodedata.bidirectional(character) not in {
            "LRE",
            "RLE",
            "LRO",
            "RLO",
            "PDF",
            "LRI",
            "RLI",
            "FSI",
            "PDI",
        }


@many
@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc"], exclude_characters=BIDI)))
def test_text_that_is_harmless_stays_as_it_is(text: str) -> None:
    assert safe_text(text) == text


@many
@given(st.binary() | hostile.map(str.encode))
def test_no_output_of_a_terminal_can_steer_another_one(output: bytes) -> None:
    assert SAFE.fullmatch(terminal_text(output))
