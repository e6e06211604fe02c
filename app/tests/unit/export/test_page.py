"""A session as a page: readable, whole, and nothing in it can do anything."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings

from core.tests.support.html_judge import hostile, judged
from core.tests.support.stores import info
from holdfast.format import fold
from holdfast.model import SessionState
from holdfast.view.safe_text import safe_text
from holdfast_app.export.page import PageWriter


def page(*updates: Any, title: str = "A talk", redacted: int = 0) -> str:
    writer = PageWriter()
    history = fold(map(msgspec.json.encode, updates))
    about = msgspec.structs.replace(info(cwd="/work"), title=title)
    return "".join(
        (writer.opening(about, SessionState()), *(writer.entry(entry) for entry in history), writer.closing(redacted))
    )


def everything(text: str) -> list[Any]:
    """Say a text in every place that a page has."""
    block = {"type": "text", "text": text}
    link = {"type": "resource_link", "name": text, "uri": text}
    call = {
        "title": text,
        "kind": text,
        "status": text,
        "rawInput": text,
        "locations": [{"path": text}],
        "content": [
            {"type": "content", "content": block},
            {"type": "content", "content": link},
            {"type": "diff", "path": text, "oldText": "a", "newText": text},
        ],
    }
    images = [{"type": "image", "mimeType": mime, "data": text} for mime in (text, "image/png")]
    return [
        {"sessionUpdate": "user_message", "messageId": "u", "content": [block, images[0]]},
        {"sessionUpdate": "agent_thought", "messageId": "t", "content": [block]},
        {"sessionUpdate": "tool_call_update", "toolCallId": "c", **call},
        {"sessionUpdate": "plan_update", "plan": {"planId": "p", "entries": [{"content": text, "status": text}]}},
        {"sessionUpdate": "agent_message", "messageId": "i", "content": [images[1]]},
        {"sessionUpdate": f"_{text}", text: text},
    ]


@settings(max_examples=200, deadline=None)
@given(hostile)
@example("<script>alert(1)</script></script>")
@example('" onmouseover="alert(1)')
@example("[x](javascript:alert(1))")
def test_nothing_that_was_said_does_anything(text: str) -> None:
    written = page(*everything(text), title=text)
    judge = judged(written)
    assert judge.wrong == []
    assert judge.open == []
    assert judge.articles == 6
    assert all(
        re.match(r"#e\d|#terminal-[\w.-]+$|https?://|data:image/png;base64,[A-Za-z0-9+/]*={0,2}$", link)
        for link in judge.links
    )
    assert safe_text(written) == written


def test_a_page_needs_nothing_and_allows_nothing() -> None:
    written = page(*everything("hello"))
    assert "default-src 'none'" in written and "unsafe" not in written and "<script" not in written
    assert not re.search(r"""(?:src|href)=["']?(?:https?:|//)|@import|url\(|style=""", written)
    assert "color-scheme: light dark" in written


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("**bold** `x<y`", "<p><strong>bold</strong> <code>x&lt;y</code></p>"),
        (
            "```py\nx = '<b>'\n```",
            '<code class="language-py">x = <span class="s">&#x27;&lt;b&gt;&#x27;</span>\n</code></pre>',
        ),
        (
            "[a](https://x.example/?a=1&b=2)",
            '<a href="https://x.example/?a=1&amp;b=2" rel="noopener noreferrer nofollow" target="_blank">a</a>',
        ),
        ("<b>no</b>", "<p>&lt;b&gt;no&lt;/b&gt;</p>"),
        ("| a |\n|--:|\n| 1 |", '<td class="right">1</td>'),
        ("## Plan\n\n#### Detail\n\n# Next", "<h3>Plan</h3>\n<h4>Detail</h4>\n<h3>Next</h3>"),
        ("- [x] done\n- [ ] open", "<li>☑ done</li>\n<li>☐ open</li>"),
        ("one\ntwo", "<p>one<br />\ntwo</p>"),
    ],
)
def test_markdown_is_shown_as_what_it_means(said: str, shown: str) -> None:
    message = {"sessionUpdate": "agent_message", "messageId": "m", "content": [{"type": "text", "text": said}]}
    assert shown in page(message)


def test_changes_pictures_and_long_texts_are_shown() -> None:
    diff = {"type": "diff", "path": "/a", "oldText": "old\n", "newText": "new\n"}
    call = {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "c",
        "title": "Edit",
        "status": "completed",
        "content": [diff],
    }
    image = {"type": "image", "mimeType": "image/png", "data": "aGk="}
    long = {"type": "text", "text": "*x* " * 40_000}
    message = {"sessionUpdate": "agent_message", "messageId": "m", "content": [image, long]}
    written = page(call, message, redacted=3)
    assert '<del data-n="1">old</del><ins data-n="1">new</ins>' in written
    assert "Tool: Edit (completed)" in "".join(judged(written).text)
    assert 'src="data:image/png;base64,aGk="' in written
    assert '<pre tabindex="0">*x* *x*' in written
    assert "Secrets taken out of this page: 3" in written


def test_what_is_known_of_the_session_heads_the_page() -> None:
    usage = {"sessionUpdate": "usage_update", "used": 53000, "size": 200000, "cost": {"amount": 1.5, "currency": "USD"}}
    state = SessionState(options={"model": "large<1>"}, latest={"usage_update": usage})
    about = msgspec.structs.replace(info(cwd="/work"), agent="coder", messages=12, created_at=1_700_000_000_000_000)
    text = " ".join("".join(judged(PageWriter().opening(about, state)).text).split())
    for fact in ("Agentcoder", "Modellarge<1>", "Directory/work", "2023-11-14 22:13 UTC", "Messages12", "$1.50"):
        assert fact in text
