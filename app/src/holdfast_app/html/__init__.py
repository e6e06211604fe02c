"""What people read, drawn as safe pieces of HTML: the page in the browser and the exported file show the same.

Values of `holdfast.view` go in, `Html` comes out. Every text of theirs is that of a stranger and is escaped; there are
no scripts, no inline styles, and no addresses but those of the web, so that a page may forbid all of them. Nothing here
knows a server, a file or a session, and Markdown and highlighting are loaded when they are first needed.
"""

from __future__ import annotations

from holdfast_app.html.entries import draw_call, draw_entry, draw_part, draw_parts, draw_time
from holdfast_app.html.escaping import Html, escaped, escaped_line
from holdfast_app.html.limits import MAX_MARKDOWN
from holdfast_app.html.style import stylesheet

__all__ = [
    "MAX_MARKDOWN",
    "Html",
    "draw_call",
    "draw_entry",
    "draw_part",
    "draw_parts",
    "draw_time",
    "escaped",
    "escaped_line",
    "stylesheet",
]
