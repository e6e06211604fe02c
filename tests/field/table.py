"""The table of docs/editors.md: what each agent can do alone, and what it can do wrapped."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tests.field.scenes import ONLY_WRAPPED, SCENES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.field.agents import FieldAgent

Results: TypeAlias = dict[str, str]
"""What each scene showed: a note, or ``!`` and why it failed."""

PAGE = Path(__file__).parent.parent.parent / "docs" / "editors.md"
BEGIN = "<!-- made by `make field` -->"
END = "<!-- end -->"


def write_table(agents: Mapping[str, FieldAgent], results: Mapping[str, Results]) -> None:
    """Put the table of these results into the page."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{_table(agents, results)}\n{END}{after}")


def _table(agents: Mapping[str, FieldAgent], results: Mapping[str, Results]) -> str:
    headings = ["agent", "", *(scene.about for scene in SCENES)]
    rows = [headings, ["---"] * len(headings)]
    for agent in agents.values():
        for version in agent.protocols:
            for manner in ("alone", "wrapped"):
                found = results.get(f"{agent.name} v{version} {manner}")
                if found:
                    name = f"{agent.title} {agent.version}, v{version}" if manner == "alone" else ""
                    rows.append([name, manner, *(_cell(found, scene.name, manner) for scene in SCENES)])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _cell(found: Results, scene: str, manner: str) -> str:
    if manner == "alone" and scene in ONLY_WRAPPED:
        return ""
    shown = found.get(scene)
    if shown is None:
        return "?"
    return "**no**" if shown.startswith("!") else shown or "yes"
