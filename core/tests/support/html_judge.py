"""Reads HTML as a browser does, and says what is in it that no page of ours may have; and texts that try to get in."""

from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import strategies as st

ELEMENTS = frozenset(
    {
        *(
            "html",
            "head",
            "meta",
            "title",
            "style",
            "body",
            "header",
            "main",
            "footer",
            "article",
            "details",
            "summary",
        ),
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
        *("br", "table", "thead", "tbody", "tr", "th", "td", "s", "ins", "del", "img", "span", "div", "figure"),
        *("figcaption", "b", "dl", "dt", "dd", "time"),
    }
)
EMPTY = frozenset({"meta", "img", "br", "hr"})
ATTRIBUTES = frozenset(
    {
        *(
            "lang",
            "charset",
            "http-equiv",
            "content",
            "name",
            "class",
            "id",
            "href",
            "rel",
            "target",
            "alt",
            "src",
            "start",
        ),
        *("tabindex", "role", "aria-label", "aria-hidden", "open", "data-n", "data-kind", "data-status", "datetime"),
    }
)

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
        self.ids: set[str] = set()
        self.articles = 0
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.wrong += [tag] if tag not in ELEMENTS else []
        self.articles += tag == "article" and self.open[-1:] in (["main"], [])
        for name, value in attrs:
            self.wrong += [name] if name not in ATTRIBUTES else []
            if name in ("href", "src"):
                self.links.append(value or "")
            if name == "id":
                self.wrong += [f"twice: {value}"] if value in self.ids else []
                self.ids.add(value or "")
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in EMPTY and (not self.open or self.open.pop() != tag):
            self.wrong.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def handle_comment(self, data: str) -> None:
        self.wrong.append(data)

    def handle_pi(self, data: str) -> None:
        self.wrong.append(data)


def judged(html: str) -> Judge:
    """Read HTML; return what was found."""
    judge = Judge()
    judge.feed(html)
    judge.close()
    return judge
