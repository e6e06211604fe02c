"""A session as one HTML page: nothing is loaded from anywhere, nothing runs, and it reads well in light and dark.

`holdfast_app.html` draws what was said, as it does for the page in the browser. Should something slip through all the
same, the page's own policy forbids scripts and connections, and every style but its own.
"""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING

from holdfast.document import times
from holdfast.view.commands import Commands
from holdfast.view.entries import view_entry
from holdfast.view.usage import usage_parts
from holdfast_app.html import draw_entry, escaped_line, stylesheet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.model import Entry, SessionInfo, SessionState
    from holdfast.view.commands import Shown

_AROUND = """
body { font: 16px/1.55 var(--sans); background: var(--paper); color: var(--ink); max-width: 54rem; margin: 0 auto;
  padding: 2rem 1rem 4rem; }
header h1 { margin: 0 0 .4rem; line-height: 1.2; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .1rem 1rem; margin: 0 0 2rem;
  color: var(--dim); font-size: .9rem; }
dd { margin: 0; overflow-wrap: anywhere; } footer { color: var(--dim); border-top: 1px solid var(--rule); }
"""


class PageWriter:
    """Writes a page, piece by piece."""

    def __init__(self) -> None:
        self._number = 0
        self._commands = Commands()

    def opening(self, info: SessionInfo, state: SessionState) -> str:
        """Return what comes before the transcript."""
        title = escaped_line(info.title or "A session without a title")
        facts = "".join(f"<dt>{name}</dt><dd>{value}</dd>\n" for name, value in _facts(info, state))
        return (
            f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{_policy()}">\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f'<meta name="referrer" content="no-referrer">\n<title>{title}</title>\n'
            f"<style>{_style()}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n<dl>\n{facts}</dl>\n</header>\n<main>\n"
        )

    def entry(self, entry: Entry) -> str:
        """Take an entry; return those that are complete, as they are written."""
        self._number += 1
        return _drawn(self._commands.take(self._number, entry))

    def closing(self, redacted: int) -> str:
        """Return what comes after the transcript."""
        said = f"<footer><p>Secrets taken out of this page: {redacted}</p></footer>\n" if redacted else ""
        return f"{_drawn(self._commands.rest())}</main>\n{said}</body>\n</html>\n"


def _drawn(shown: list[Shown]) -> str:
    return "".join(draw_entry(view_entry(each.entry, each.terminals), f"e{each.number}") for each in shown)


def _facts(info: SessionInfo, state: SessionState) -> Iterator[tuple[str, str]]:
    """Yield what is known of a session; what is not known is left out."""
    if info.agent:
        yield "Agent", escaped_line(info.agent)
    if isinstance(model := state.options.get("model"), str):
        yield "Model", escaped_line(model)
    yield "Directory", escaped_line(info.cwd)
    yield "Began", _time(info.created_at)
    yield "Last activity", _time(info.updated_at)
    yield "Messages", f"{info.messages:,}"
    if used := usage_parts(state.latest.get("usage_update")):
        yield "Used", escaped_line(" · ".join(used))
    yield "Session", escaped_line(info.id)


def _time(microseconds: int) -> str:
    exact = times.written(microseconds)
    return f'<time datetime="{exact}">{exact[:10]} {exact[11:16]} UTC</time>'


@cache
def _style() -> str:
    return stylesheet() + _AROUND


@cache
def _policy() -> str:
    """Return what the page allows itself: its own style, and images that are in it."""
    digest = b64encode(sha256(_style().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; form-action 'none'; base-uri 'none'"
