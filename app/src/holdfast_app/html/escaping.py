"""The one place where a stranger's text becomes HTML. `Html` is text that has been through here, or is our own."""

from __future__ import annotations

import re
from html import escape
from typing import NewType

from holdfast.view.safe_text import safe_line, safe_text

Html = NewType("Html", str)
"""HTML that is safe to put between elements or into a quoted attribute."""

_WEB = re.compile(r"(?:https?://|mailto:)[^\s\0-\x1f]+", re.IGNORECASE)


def escaped(text: str) -> Html:
    """Return a text as HTML that shows just that text. Control characters become pictures of themselves."""
    return Html(escape(safe_text(text)))


def escaped_line(text: str) -> Html:
    """Return a text as HTML on one line."""
    return Html(escape(safe_line(text)))


def is_web_address(address: str) -> bool:
    """Return whether an address leads to the web or to a mailbox. No other is ever made a link."""
    return _WEB.fullmatch(address) is not None


def web_link(address: str, inner: Html) -> Html:
    """Return a link to another site, which does not learn where its reader came from."""
    return Html(f'<a href="{escaped(address)}" rel="noopener noreferrer nofollow" target="_blank">{inner}</a>')
