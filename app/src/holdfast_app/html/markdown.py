"""Markdown as HTML: a small set of elements, without HTML of its own, without images, and links to the web alone.

Headings begin below those of the page and leave out no level, however their author has counted. Line ends stay line
ends, as in most chats. A table's alignment is a class: the page forbids inline styles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from markdown_it import MarkdownIt

from holdfast.view.safe_text import safe_text
from holdfast_app.html.code import highlighted
from holdfast_app.html.escaping import Html, escaped, is_web_address
from holdfast_app.html.limits import MAX_MARKDOWN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markdown_it.token import Token

FIRST_HEADING = 3
"""The level of a message's outermost heading: the page has one, each message has two."""

_ALIGNMENTS = {"text-align:left": "left", "text-align:center": "center", "text-align:right": "right"}
_BOXES = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}


class _Markdown(MarkdownIt):
    """Markdown without HTML, images and links that lead anywhere but to the web."""

    def __init__(self) -> None:
        super().__init__("commonmark", {"html": False, "breaks": True})
        self.enable(["table", "strikethrough"]).disable("image")

    def validateLink(self, url: str) -> bool:  # noqa: N802  (its name over there)
        return is_web_address(url)


_parser = _Markdown()


def draw_markdown(text: str) -> Html:
    """Return Markdown as elements; a very long one as plain text."""
    if len(text) > MAX_MARKDOWN:
        return Html(f'<pre tabindex="0">{escaped(text)}</pre>\n')
    tokens = _parser.parse(safe_text(text))
    _renumber_headings(tokens)
    for at, token in enumerate(tokens):
        _prepare(token)
        if token.type == "inline" and at > 1 and tokens[at - 2].type == "list_item_open":
            _tick(token)
    return Html(_rendered(tokens))


def _rendered(tokens: Sequence[Token]) -> str:
    """Render tokens; code, which has a language, is drawn here."""
    renderer = cast("Any", _parser.renderer)
    written: list[str] = []
    rest: list[Token] = []
    for token in tokens:
        if token.type not in ("fence", "code_block"):
            rest.append(token)
            continue
        written += (renderer.render(rest, _parser.options, {}), _fence(token))
        rest = []
    return "".join((*written, renderer.render(rest, _parser.options, {})))


def _fence(token: Token) -> str:
    language = token.info.split(maxsplit=1)[0] if token.info.strip() else ""
    named = f' class="language-{escaped(language)}"' if language else ""
    return f'<pre tabindex="0"><code{named}>{highlighted(token.content, language)}</code></pre>\n'


def _prepare(token: Token) -> None:
    """Make a token into one that our pages allow."""
    style = token.attrs.pop("style", None)
    if isinstance(style, str) and style in _ALIGNMENTS:
        token.attrs["class"] = _ALIGNMENTS[style]
    for child in token.children or ():
        if child.type == "link_open":
            child.attrs |= {"rel": "noopener noreferrer nofollow", "target": "_blank"}
            child.attrs.pop("title", None)


def _tick(token: Token) -> None:
    """Show the box of a task in a list as a box."""
    first = token.children[0] if token.children else None
    if first is not None and first.type == "text" and (box := _BOXES.get(first.content[:4])):
        first.content = box + first.content[4:]


def _renumber_headings(tokens: Sequence[Token]) -> None:
    outer: list[int] = []
    for token in tokens:
        if token.type == "heading_open":
            level = int(token.tag[1:])
            while outer and outer[-1] >= level:
                outer.pop()
            outer.append(level)
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(FIRST_HEADING + len(outer) - 1, 6)}"
