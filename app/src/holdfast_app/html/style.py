"""The style of entries, as the page and the exported file have both."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from holdfast_app.html.terminal import palette_rules


@cache
def stylesheet() -> str:
    """Return all style rules of what this package draws."""
    return files("holdfast_app.html").joinpath("entries.css").read_text(encoding="utf-8") + palette_rules()
