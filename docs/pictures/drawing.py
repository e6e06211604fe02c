"""From what is on a terminal's screen, with its colours, to a picture."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from pathlib import Path


def draw(screen: str, picture: Path, *, title: str, width: int) -> None:
    """Draw a screen as tmux gives it (`capture-pane -p -e`)."""
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(screen.rstrip("\n")))
    drawn = console.export_svg(title=title, unique_id=picture.stem)
    drawn = re.sub(r"\s*@font-face \{.*?\}", "", drawn, flags=re.DOTALL)  # who looks at it need not fetch a font
    picture.write_text("".join(f"{line.rstrip()}\n" for line in drawn.splitlines()))
    print(f"drawn: {picture.name}")  # noqa: T201
