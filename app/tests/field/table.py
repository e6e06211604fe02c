"""The table of docs/editors.md: what each agent can do alone, and what it can do wrapped."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from app.tests.field.scenes import ONLY_WRAPPED, SCENES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.tests.field.agents import FieldAgent

Results: TypeAlias = dict[str, str]
"""What each scene showed: a note, or ``!`` and why it failed."""

PAGE = Path(__file__).parent.parent.parent.parent / "docs" / "editors.md"
BEGIN = "<!-- made by `make field` -->"
END = "<!-- end -->"


def write_table(agents: Mapping[str, FieldAgent], results: Mapping[str, Results]) -> None:
    """Put the table of these results into the page."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{_table(agents, results)}\n{END}{after}")


def _table(agents: Mapping[str, FieldAgent], results: Mapping[str, Results]) -> str:
    """Return a row for each agent and protocol version: what it does alone, and → wrapped where that differs."""
    headings = ["agent", "protocol", *(scene.about for scene in SCENES)]
    rows = [headings, ["---"] * len(headings)]
    for agent in agents.values():
        for version in agent.protocols:
            alone, wrapped = (results.get(f"{agent.name}-v{version}-{manner}") for manner in ("alone", "wrapped"))
            if wrapped:
                cells = [_cell(scene.name, alone or {}, wrapped) for scene in SCENES]
                rows.append([f"{agent.title} {agent.version}", str(version), *cells])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _cell(scene: str, alone: Results, wrapped: Results) -> str:
    before, after = _mark(alone.get(scene)), _mark(wrapped.get(scene))
    return after if scene in ONLY_WRAPPED or before == after else f"{before} → {after}"


def _mark(shown: str | None) -> str:
    if shown is None:
        return "?"
    return "✗" if shown.startswith("!") else shown or "✓"
