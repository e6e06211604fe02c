"""A session as a page: readable, whole, and nothing in it can do anything."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.stores import info

from holdfast.export.page import PageWriter
from holdfast.format import fold
from holdfast.model import SessionState
from holdfast.view.safe_text import safe_text

ELEMENTS = {
    *("html", "head", "meta", "title", "style", "body", "header", "main", "footer", "article", "details", "summary"),
    *(
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "p",
        "a",
        "pre",
        "code",
        "em",
        "strong",
        "ul",
        "ol",
        "li",
        "blockquote",
        "hr",
    ),
    *("br", "table", "thead", "tbody", "tr", "th", "td", "s", "ins", "del", "img"),
}
EMPTY = frozenset({"meta", "img", "br", "hr"})
ATTRIBUTES = {
    *("lang", "charset", "http-equiv", "content", "name", "class", "id", "href", "rel", "title", "alt", "src", "style"),
    "start",
}

PIECES = (
    "<script>alert(1)</script>", "</script>", "</style>", "</pre>", "</title>", "<img src=x onerror=alert(1)>",
    "<svg onload=x>", "[x](javascript:alert(1))", "[x](JaVaScRiPt:alert(1))", "[x](data:text/html,<b>)",
    "[x](vbscript:x)", "[x](file:///etc)", "![x](http://tracker/x.png)", "<javascript:alert(1)>",
    "[x]: javascript:alert(1)\n\n[x]", '" onmouseover="alert(1)', "'", "&#106;avascript:", "<!--", "-->", "]]>",
    "```", "`", "\n\n", "\n", "| a | b |\n|---|---|\n| <b> | c |", "&", "\x00", "\x1b[2J", "\u202e",
    'http://good.example/?a=1&b="', "[ok](https://good.example)", "# h", "> ", "- ", "    ", "text",
)  # fmt: skip

hostile = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)


class Judge(HTMLParser):
    """Reads a page as a browser does, and notes what there is in it."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.links: list[str] = []
        self.articles = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.wrong += [tag] if tag not in ELEMENTS else []
        self.articles += tag == "article" and self.open[-1] == "main"
        for name, value in attrs:
            self.wrong += [name] if name not in ATTRIBUTES else []
            if name in ("href", "src"):
                self.links.append(value or "")
            if name == "style" and not re.fullmatch(r"text-align:(left|right|center)", value or ""):
                self.wrong.append(value or "")
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in EMPTY and (not self.open or self.open.pop() != tag):
            self.wrong.append(f"</{tag}>")

    def handle_comment(self, data: str) -> None:
        self.wrong.append(data)

    def handle_pi(self, data: str) -> None:
        self.wrong.append(data)


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
    judge = Judge()
    judge.feed(written)
    judge.close()
    assert judge.wrong == []
    assert judge.open == []
    assert judge.articles == 6
    assert all(re.match(r"#e\d|https?://|data:image/png;base64,[A-Za-z0-9+/]*={0,2}$", link) for link in judge.links)
    assert safe_text(written) == written


def test_a_page_needs_nothing_and_allows_nothing() -> None:
    written = page(*everything("hello"))
    assert "default-src 'none'" in written and "<script" not in written
    assert not re.search(r"""(?:src|href)=["']?(?:https?:|//)|@import|url\(""", written)
    assert "color-scheme: light dark" in written


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("**bold** `x<y`", "<p><strong>bold</strong> <code>x&lt;y</code></p>"),
        ("```py\nx = '<b>'\n```", "<pre><code class=\"language-py\">x = '&lt;b&gt;'\n</code></pre>"),
        (
            "[a](https://x.example/?a=1&b=2)",
            '<a href="https://x.example/?a=1&amp;b=2" rel="noopener noreferrer nofollow">a</a>',
        ),
        ("<b>no</b>", "<p>&lt;b&gt;no&lt;/b&gt;</p>"),
        ("| a |\n|---|\n| 1 |", "<td>1</td>"),
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
    assert "<del>-old</del><ins>+new</ins>" in written
    assert "<summary>Tool: Edit (completed)</summary>" in written
    assert 'src="data:image/png;base64,aGk="' in written
    assert "<pre>*x* *x*" in written
    assert "Secrets taken out of this page: 3" in written
