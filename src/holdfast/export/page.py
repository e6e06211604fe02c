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
from holdfast.view.entries import view_entry
from holdfast.view.safe_text import safe_line, safe_text
from holdfast.view.transcript import HEADINGS

if TYPE_CHECKING:
    from holdfast.model import Entry, SessionInfo, SessionState
    from holdfast.view.entries import EntryView, Part

MAX_MARKDOWN = 100_000
"""Longer texts are shown as plain text: to parse them could take very long."""

_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")
_WEB = re.compile(r"(?i)(?:https?://|mailto:)")

_FOLDED = frozenset({"thought", "tool", "terminal", "other"})
"""Roles whose entries are folded until the reader opens them."""

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
        """Return what comes before the transcript."""
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
        """Return an entry as it is written."""
        self._number += 1
        return self._article(view_entry(entry))

    def closing(self, redacted: int) -> str:
        """Return what comes after the transcript."""
        said = f"<footer><p>Secrets taken out of this page: {redacted}</p></footer>\n" if redacted else ""
        return f"</main>\n{said}</body>\n</html>\n"

    def _article(self, view: EntryView) -> str:
        heading = escape(HEADINGS[view.role])
        if view.title:
            heading += f": {_line(view.title)}"
        if view.status:
            heading += f" ({_line(view.status)})"
        body = self._parts(view.parts)
        anchor = f"e{self._number}"
        if view.role in _FOLDED and body:
            body = f"<details>\n<summary>{heading}</summary>\n{body}</details>\n"
            heading = ""
        else:
            heading = f'<h2><a href="#{anchor}">{heading}</a></h2>\n'
        return f'<article class="{view.role}" id="{anchor}">\n{heading}{body}</article>\n'

    def _parts(self, parts: tuple[Part, ...]) -> str:
        html: list[str] = []
        steps: list[str] = []
        for part in parts:
            if part.kind == "step":
                box = "☑" if part.label == "completed" else "☐"
                steps.append(f"<li>{box} {_line(part.text)}</li>\n")
            else:
                html.append(self._part(part))
        if steps:
            html.append(f'<ul class="steps">\n{"".join(steps)}</ul>\n')
        return "".join(html)

    def _part(self, part: Part) -> str:
        match part.kind:
            case "prose" if len(part.text) <= MAX_MARKDOWN:
                return self._prose(safe_text(part.text))
            case "prose" | "code":
                return f"<pre>{escape(safe_text(part.text))}</pre>\n"
            case "diff":
                return f"<pre>{''.join(map(_diff_line, safe_text(part.text).splitlines()))}</pre>\n"
            case "link" if _WEB.match(part.label):
                address = escape(safe_text(part.label))
                return f'<p><a href="{address}" rel="noopener noreferrer nofollow">{_line(part.text)}</a></p>\n'
            case "link":
                same = part.text == part.label
                return f"<p>{_line(part.text)}{'' if same else f': {_line(part.label)}'}</p>\n"
            case "image" if part.text in _IMAGES and _BASE64.fullmatch(part.label):
                return f'<p><img alt="" src="data:{part.text};base64,{part.label}"></p>\n'
            case "image":
                return f'<p class="about">Image: {_line(part.text)}</p>\n'
            case _:
                return f'<p class="about">{_line(part.text)}</p>\n'

    def _prose(self, text: str) -> str:
        tokens = self._markdown.parse(text)
        for token in tokens:
            for child in token.children or ():
                if child.type == "link_open":
                    child.attrSet("rel", "noopener noreferrer nofollow")
        options: Any = self._markdown.options
        return self._markdown.renderer.render(tokens, options, {})


def _line(text: str) -> str:
    return escape(safe_line(text))


def _diff_line(line: str) -> str:
    text = escape(line)
    if line.startswith("+") and not line.startswith("+++"):
        return f"<ins>{text}</ins>"
    if line.startswith("-") and not line.startswith("---"):
        return f"<del>{text}</del>"
    return f"{text}\n"
