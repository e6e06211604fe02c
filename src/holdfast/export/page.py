"""A session as one HTML page: nothing is loaded from anywhere, nothing runs, and it reads well in light and dark.

All that was said is escaped; Markdown becomes a small set of elements, without HTML of its own, and only links to the
web stay links. Should something slip through all the same, the page's own policy forbids scripts and connections.
"""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

from markdown_it import MarkdownIt

from holdfast.export import times
from holdfast.model.passages import passage_of
from holdfast.model.plain import one_line, plain
from holdfast.model.transcript import HEADINGS

if TYPE_CHECKING:
    from holdfast.model import Entry, SessionInfo, SessionState
    from holdfast.model.passages import Passage, Piece

MAX_MARKDOWN = 100_000
"""Longer texts are shown as they are: there is no telling how long it takes to make something of them."""

_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")
_WEB = re.compile(r"(?i)(?:https?://|mailto:)")

_FOLDED = frozenset({"thought", "tool", "terminal", "other"})
"""What is shown when it is asked for."""

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'"

_STYLE = """
:root { color-scheme: light dark; --soft: #8884; --dim: #777; --you: #2463eb22; --add: #1a7f3733; --cut: #cf222e33; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
header, footer, .about { color: var(--dim); } header h1 { color: CanvasText; margin-bottom: 0; }
article { margin: 1rem 0; padding: .5rem 1rem; border-left: 3px solid var(--soft); overflow-wrap: anywhere; }
article.user { background: var(--you); border-radius: .5rem; } article.thought { font-style: italic; }
h2 { font-size: .85rem; margin: 0; color: var(--dim); } summary { cursor: pointer; color: var(--dim); }
h2 a { color: inherit; text-decoration: none; }
pre { background: #8881; padding: .5rem; overflow: auto; max-height: 30rem; white-space: pre-wrap; }
pre, code { font-family: ui-monospace, monospace; font-size: .9em; } ins, del { text-decoration: none; display: block; }
ins { background: var(--add); } del { background: var(--cut); } img { max-width: 100%; }
table { border-collapse: collapse; } td, th { border: 1px solid var(--soft); padding: .2rem .5rem; }
.steps { list-style: none; padding: 0; }
"""


class _Markdown(MarkdownIt):
    """Markdown without HTML, images and links that lead anywhere but to the web."""

    def __init__(self) -> None:
        super().__init__("commonmark", {"html": False})
        self.enable(["table", "strikethrough"]).disable("image")

    def validateLink(self, url: str) -> bool:  # noqa: N802  (its name over there)
        return _WEB.match(url) is not None


class PageWriter:
    """Writes a page, piece by piece."""

    _markdown: ClassVar[_Markdown] = _Markdown()

    def __init__(self) -> None:
        self._number = 0

    def opening(self, info: SessionInfo, state: SessionState) -> str:
        """Write what comes before the transcript."""
        del state
        title = _line(info.title or "A session without a title")
        dates = f"{times.written(info.created_at)[:16]}Z to {times.written(info.updated_at)[:16]}Z".replace("T", " ")
        return (
            f'<!doctype html>\n<html lang="">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f'<meta name="referrer" content="no-referrer">\n<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n'
            f"<body>\n<header>\n<h1>{title}</h1>\n<p>{_line(info.cwd)} · {dates} · {_line(info.id)}</p>\n</header>\n"
            f"<main>\n"
        )

    def entry(self, entry: Entry) -> str:
        """Write an entry."""
        self._number += 1
        return self._article(passage_of(entry))

    def closing(self, redacted: int) -> str:
        """Write what comes after the transcript."""
        said = f"<footer><p>Secrets taken out of this page: {redacted}</p></footer>\n" if redacted else ""
        return f"</main>\n{said}</body>\n</html>\n"

    def _article(self, passage: Passage) -> str:
        heading = escape(HEADINGS[passage.role])
        if passage.title:
            heading += f": {_line(passage.title)}"
        if passage.status:
            heading += f" ({_line(passage.status)})"
        body = self._pieces(passage.pieces)
        anchor = f"e{self._number}"
        if passage.role in _FOLDED and body:
            body = f"<details>\n<summary>{heading}</summary>\n{body}</details>\n"
            heading = ""
        else:
            heading = f'<h2><a href="#{anchor}">{heading}</a></h2>\n'
        return f'<article class="{passage.role}" id="{anchor}">\n{heading}{body}</article>\n'

    def _pieces(self, pieces: tuple[Piece, ...]) -> str:
        parts: list[str] = []
        steps: list[str] = []
        for piece in pieces:
            if piece.kind == "step":
                box = "☑" if piece.label == "completed" else "☐"
                steps.append(f"<li>{box} {_line(piece.text)}</li>\n")
            else:
                parts.append(self._piece(piece))
        if steps:
            parts.append(f'<ul class="steps">\n{"".join(steps)}</ul>\n')
        return "".join(parts)

    def _piece(self, piece: Piece) -> str:
        match piece.kind:
            case "prose" if len(piece.text) <= MAX_MARKDOWN:
                return self._prose(plain(piece.text))
            case "prose" | "code":
                return f"<pre>{escape(plain(piece.text))}</pre>\n"
            case "diff":
                return f"<pre>{''.join(map(_diff_line, plain(piece.text).splitlines()))}</pre>\n"
            case "link" if _WEB.match(piece.label):
                address = escape(plain(piece.label))
                return f'<p><a href="{address}" rel="noopener noreferrer nofollow">{_line(piece.text)}</a></p>\n'
            case "link":
                same = piece.text == piece.label
                return f"<p>{_line(piece.text)}{'' if same else f': {_line(piece.label)}'}</p>\n"
            case "image" if piece.text in _IMAGES and _BASE64.fullmatch(piece.label):
                return f'<p><img alt="" src="data:{piece.text};base64,{piece.label}"></p>\n'
            case "image":
                return f'<p class="about">Image: {_line(piece.text)}</p>\n'
            case _:
                return f'<p class="about">{_line(piece.text)}</p>\n'

    def _prose(self, text: str) -> str:
        tokens = self._markdown.parse(text)
        for token in tokens:
            for child in token.children or ():
                if child.type == "link_open":
                    child.attrSet("rel", "noopener noreferrer nofollow")
        options: Any = self._markdown.options
        return self._markdown.renderer.render(tokens, options, {})


def _line(text: str) -> str:
    return escape(one_line(text))


def _diff_line(line: str) -> str:
    text = escape(line)
    if line.startswith("+") and not line.startswith("+++"):
        return f"<ins>{text}</ins>"
    if line.startswith("-") and not line.startswith("---"):
        return f"<del>{text}</del>"
    return f"{text}\n"
