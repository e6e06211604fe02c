"""Draws `demo.svg`: `holdfast demo` in a terminal, as it comes, line by line.

    python docs/pictures/demo.py [FILE]

The program runs in a terminal of its own; when each line appeared is written down, and the picture shows it then. It is
one SVG file with an animation, without scripts and without anything from elsewhere.
"""

from __future__ import annotations

import os
import pty
import re
import sys
import time
from html import escape
from pathlib import Path

COMMAND = (sys.executable, "-m", "holdfast", "demo")
COLOURS = {"1": "bold", "2": "dim", "31": "bad", "32": "good", "36": "you"}
LINE, LEFT, TOP, WIDTH = 20, 16, 46, 800
LONGEST = 9.0
"""A recording that took more seconds is shown in so many."""
REST = 6.0
"""So many seconds the whole stays before the picture begins again."""

STYLE = """
text { font: 13px ui-monospace, Menlo, Consolas, monospace; fill: #d6deeb; white-space: pre }
.bold { font-weight: bold; fill: #ffffff } .dim { fill: #7f8c9d } .bad { fill: #ff6b6b }
.good { fill: #7ee787 } .you { fill: #6cc7ff }
@media (prefers-reduced-motion: reduce) { g { animation: none !important; opacity: 1 !important } }
"""

_SEQUENCE = re.compile(r"\x1b\[([\d;]*)m")


def record() -> list[tuple[float, str]]:
    """Run the demo; return its lines, and when each of them was there."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["COLUMNS"] = "100"
        os.execv(COMMAND[0], COMMAND)  # noqa: S606
    began, text, lines = time.monotonic(), "", list[tuple[float, str]]()
    while True:
        try:
            piece = os.read(terminal, 65536).decode(errors="replace")
        except OSError:  # the other side is closed
            break
        if not piece:
            break
        *whole, text = (text + piece).split("\n")
        lines += [(time.monotonic() - began, line.rstrip("\r")) for line in whole]
    os.waitpid(pid, 0)
    return lines


def drawn(line: str) -> str:
    """Return a line with colours as SVG."""
    parts, tone = [], ""
    for at, piece in enumerate(_SEQUENCE.split(line)):
        if at % 2:
            tone = COLOURS.get(piece, "")
        elif piece:
            parts.append(f'<tspan class="{tone}">{escape(piece)}</tspan>' if tone else escape(piece))
    return "".join(parts)


def animate(lines: list[tuple[float, str]]) -> str:
    """Return the picture: each line appears when it did; a recording on a slow machine is shown faster."""
    pace = min(1.0, LONGEST / lines[-1][0])
    paced = [moment * pace for moment, _ in lines]
    whole = paced[-1] + REST
    frames, body = [], []
    for n, (moment, (_, line)) in enumerate(zip(paced, lines, strict=True)):
        share = 100 * moment / whole
        later = min(share + 0.1, 100)
        frames.append(f"@keyframes l{n} {{ 0%, {share:.2f}% {{ opacity: 0 }} {later:.2f}%, 100% {{ opacity: 1 }} }}")
        y = TOP + n * LINE
        body.append(
            f'<g style="animation: l{n} {whole:.1f}s infinite">'
            f'<text xml:space="preserve" x="{LEFT}" y="{y}">{drawn(line)}</text></g>'
        )
    height = TOP + len(lines) * LINE + 4
    label = "holdfast demo: an agent is killed in mid-answer, and nothing is lost"
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" role="img" aria-label="{label}"'
    buttons = enumerate(("#ff5f57", "#febc2e", "#28c840"))
    picture = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
        f"<style>{STYLE}{chr(10).join(frames)}</style>",
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#0b1521"/>',
        *(f'<circle cx="{18 + 18 * n}" cy="16" r="5" fill="{colour}"/>' for n, colour in buttons),
        '<text x="330" y="20" class="dim">$ holdfast demo</text>',
        *body,
        "</svg>",
    ]
    return "".join(f"{line}\n" for line in picture)


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_suffix(".svg")).write_text(animate(record()))
