"""The ids of rules and promises, as `docs/requirements.md` and `docs/promises.md` define them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent.parent
DEFINING = (ROOT / "docs" / "requirements.md", ROOT / "docs" / "promises.md")

_ROW = re.compile(r"^\| ([A-HP]\d{1,2}) \| (.+) \|$", re.MULTILINE)


@cache
def defined() -> dict[str, str]:
    """Return every id with what it stands for."""
    rows = [row for path in DEFINING for row in _ROW.findall(path.read_text())]
    return dict(rows)


def defined_twice() -> list[str]:
    """Return the ids that stand in more than one row."""
    ids = [row[0] for path in DEFINING for row in _ROW.findall(path.read_text())]
    return sorted({each for each in ids if ids.count(each) > 1})
