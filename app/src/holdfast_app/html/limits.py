"""How long a text may be to be drawn with all its forms."""

from __future__ import annotations

MAX_MARKDOWN = 100_000
"""Longer Markdown is shown as plain text: to parse it could take very long."""
