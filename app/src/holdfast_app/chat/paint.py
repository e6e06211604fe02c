"""Blocks as lines of text for a terminal of a width, with or without colours.

All that leaves here consists of harmless text and, where there are colours, of our own sequences that set them: each
part of text is made harmless at the very end, whatever it went through before (`&#x202e;` is harmless until it is
Markdown).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from rich.color import ColorSystem
from rich.style import Style
from rich.text import Text

from holdfast.view.blocks import AgentContent, AgentText, Block, Call, Note, Plan, Prompt
from holdfast.view.paths import short_path
from holdfast.view.safe_text import safe_line, safe_text
from holdfast_app.chat.markdown import BOLD, CONSOLE, DIM, code_lines, folded, indented, markdown_lines, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.view.entries import Part
    from holdfast.view.markdown_stream import MarkdownPart
    from holdfast_app.chat.theme import Theme

Colours: TypeAlias = Literal["no", "mono", "yes"]
"""Nothing but text; or bold and dim too; or colours too."""

CALL_LINES = 16
DIFF_LINES = 160
"""So many lines of what a tool has shown are printed, the first and the last of it, unless it is shown whole."""
MAX_TITLE = 400
MAX_LOCATIONS = 3
LIVE_LINES = 4

_GREEN, _RED, _YELLOW = Style(color="green"), Style(color="red"), Style(color="yellow")
_THOUGHT = Style(dim=True, italic=True)
_TONES = {"info": DIM, "end": DIM, "ask": _YELLOW, "good": _GREEN, "warning": _YELLOW, "error": _RED, "output": DIM}
_STATUS = {"completed": _GREEN, "failed": _RED, "cancelled": _YELLOW, "in_progress": _YELLOW}
_DIFF = {"+": _GREEN, "-": _RED, "@": Style(color="cyan"), "\\": DIM}

_ON_LIGHT = {
    "yellow": "magenta", "bright_yellow": "magenta", "cyan": "blue", "bright_cyan": "blue", "white": "black",
    "bright_white": "black", "bright_green": "green", "bright_blue": "blue", "bright_magenta": "magenta",
}  # fmt: skip
"""What is written instead where the background is light: the left ones can hardly be read there."""

_SIGNS = {
    "prompt": "\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} ", "thought": "┊ ", "completed": "✓ ", "failed": "✗ ",
    "cancelled": "⊘ ", "in_progress": "◐ ", "pending": "○ ", "dot": " · ",
    "warning": "⚠ ", "error": "✗ ", "good": "✓ ", "info": "", "end": "— ", "ask": "? ", "more": "…", "output": "» ",
}  # fmt: skip
_ASCII = {
    "prompt": "> ", "thought": "| ", "completed": "+ ", "failed": "x ", "cancelled": "- ", "in_progress": "* ",
    "pending": "o ", "dot": ", ", "warning": "! ", "error": "x ", "good": "+ ", "info": "",
    "end": "-- ", "ask": "? ", "more": "...", "output": ">> ",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Painter:
    """How blocks look."""

    width: int = 80
    colours: Colours = "yes"
    unicode: bool = True
    cwd: str = ""
    """Paths inside this directory are shown without it."""
    theme: Theme = "dark"

    def lines(self, block: Block) -> list[str]:
        """Return a block as lines."""
        return [self._encoded(text) for text in self._texts(block)]

    def live(self, blocks: Iterable[Block], height: int) -> list[str]:
        """Return the last lines of what is not finished, at most `height` of them, none longer than the width."""
        lines: list[Text] = []
        before: Block | None = None
        for block in blocks:
            if before is not None and needs_blank_line(before, block):
                lines.append(Text())
            lines += self._texts(block, live=True)
            before = block
        kept = lines[-height:] if height > 0 else []
        for line in kept:
            line.truncate(self.width)
        return [self._encoded(line) for line in kept]

    def sign(self, name: str) -> str:
        """Return a sign that the terminal can show."""
        return (_SIGNS if self.unicode else _ASCII).get(name, "")

    def _texts(self, block: Block, *, live: bool = False) -> list[Text]:
        match block:
            case Prompt(text):
                lines = wrapped(Text(safe_text(text).rstrip(), BOLD), self.width - 2)
                return indented(lines, Text(self.sign("prompt"), Style(color="cyan", bold=True)), Text("  "))
            case AgentText(part, _, thought):
                return self._thought(part) if thought else self._part(part)
            case AgentContent(part):
                return self._piece(part, self.width)
            case Call():
                return self._call(block, live=live)
            case Plan(parts):
                return [line for part in parts for line in self._step(part)]
            case Note(text, details, tone):
                sign = self.sign(tone)
                lines = wrapped(Text(safe_text(text), _TONES[tone]), self.width - len(sign))
                said = [Text(), *wrapped(Text(safe_text(details).strip("\n"), DIM), self.width - 2)] if details else []
                return [*indented(lines, Text(sign, _TONES[tone]), Text(" " * len(sign))),
                        *indented(said[1:], Text("  "), Text("  "))]  # fmt: skip

    def _part(self, part: MarkdownPart) -> list[Text]:
        if part.language is None:
            if self.colours == "no":
                return wrapped(Text(part.text), self.width)
            return markdown_lines(part.text, self.width)
        lines = code_lines(part.text, part.language) if part.text or part.opens else []
        fence = Text(f"```{part.language}", DIM)
        return [*([fence] if part.opens else ()), *lines, *([Text("```", DIM)] if part.closes else ())]

    def _thought(self, part: MarkdownPart) -> list[Text]:
        text = part.text if part.language is None or self.colours == "no" else f"```\n{part.text}\n```"
        lines = wrapped(Text(text), self.width - 2) if self.colours == "no" else markdown_lines(text, self.width - 2)
        for line in lines:
            line.stylize(_THOUGHT)
        gutter = Text(self.sign("thought"), DIM)
        return indented(lines, gutter, gutter)

    # Tool calls

    def _call(self, call: Call, *, live: bool) -> list[Text]:
        status = call.status if call.status in _STATUS else "pending"
        title = self._title(call)
        if status == "cancelled":
            title.append(self.sign("dot") + "cancelled", _YELLOW)
        if call.exit_status:
            title.append(self.sign("dot") + safe_line(call.exit_status), _RED)
        lines = indented(
            wrapped(title, self.width - 2),
            Text(self.sign(status), _STATUS.get(status, DIM)),
            Text("  "),
        )
        shown = [line for part in call.parts for line in self._piece(part, self.width - 2, whole=call.whole)]
        inside = [row for line in shown for row in folded(line, self.width - 2)]
        if not call.whole:  # a line of a megabyte is thousands of rows
            inside = self._short(inside, 2 * DIFF_LINES)
        if live:
            inside = inside[-LIVE_LINES:]
        return [*lines, *indented(inside, Text("  "), Text("  "))]

    def _title(self, call: Call) -> Text:
        """Return the title of a call and where it works; of a call that is shown whole, nothing is left out."""
        shown = safe_line(call.title)
        if len(shown) > MAX_TITLE and not call.whole:
            shown = f"{shown[:MAX_TITLE]}{self.sign('more')}"
        title = Text(shown, BOLD)
        locations = [location for location in map(self._location, call.locations) if location not in shown]
        if len(locations) > MAX_LOCATIONS and not call.whole:
            locations[MAX_LOCATIONS:] = [f"{len(locations) - MAX_LOCATIONS} more"]
        if locations:
            title.append(self.sign("dot") + ", ".join(locations), Style(dim=True, bold=False))
        return title

    def _piece(self, part: Part, width: int, *, whole: bool = False) -> list[Text]:
        text = safe_text(part.text).strip("\n")
        match part.kind:
            case "prose":
                return self._short(wrapped(Text(text, DIM), width), None if whole else CALL_LINES)
            case "diff":
                return self._diff(text, part.label, None if whole else DIFF_LINES)
            case "code":
                lines = [Text(line, DIM) for line in text.expandtabs(4).split("\n")]
                return self._short(lines, None if whole else CALL_LINES)
            case "image":
                return [Text(f"[image {safe_line(part.text)}, {len(part.label) * 3 // 4:,} bytes]", DIM)]
            case "link":
                label = safe_line(part.label)
                return wrapped(Text(label if label == safe_line(text) else f"{safe_line(text)} ({label})", DIM), width)
            case "step":
                return self._step(part)
            case _:
                return wrapped(Text(text, DIM), width)

    def _diff(self, patch: str, path: str, limit: int | None) -> list[Text]:
        headers = ("diff --git", "index ", "new file")
        lines = [line for line in patch.expandtabs(4).split("\n") if not line.startswith(headers)]
        while lines and lines[0].startswith(("--- ", "+++ ")):
            del lines[0]
        added = sum(line.startswith("+") for line in lines)
        removed = sum(line.startswith("-") for line in lines)
        head = Text(self._location(path) or "changed", BOLD)
        head.append(f"  +{added}", _GREEN)
        head.append(f" -{removed}", _RED)
        return [head, *self._short([Text(line, _DIFF.get(line[:1], "")) for line in lines], limit)]

    def _short(self, lines: list[Text], limit: int | None) -> list[Text]:
        if limit is None or len(lines) <= limit + 2:
            return lines
        head = limit // 2
        more = f"{self.sign('more')} {len(lines) - limit:,} more lines: /details"
        return [*lines[:head], Text(more, Style(dim=True, italic=True)), *lines[-(limit - head) :]]

    def _step(self, part: Part) -> list[Text]:
        if part.kind != "step":
            return self._piece(part, self.width)
        box = {"completed": "[x] ", "in_progress": "[~] ", "cancelled": "[-] "}.get(part.label, "[ ] ")
        style = {"completed": DIM, "in_progress": BOLD, "cancelled": DIM}.get(part.label, Style.null())
        lines = wrapped(Text(safe_line(part.text), style), self.width - 4)
        return indented(lines, Text(box, _STATUS.get(part.label, "")), Text("    "))

    def _location(self, path: str) -> str:
        return safe_line(short_path(path, self.cwd))

    # Encoding

    def _encoded(self, text: Text) -> str:
        if self.colours == "no":
            return safe_text(text.plain)
        system = ColorSystem.STANDARD
        out: list[str] = []
        for segment in Text.assemble(text).render(CONSOLE):
            safe = safe_text(segment.text).replace("\n", " ")
            style = self._themed(segment.style)
            if style is None:
                out.append(safe)
            else:
                out.append((style.without_color if self.colours == "mono" else style).render(safe, color_system=system))
        return "".join(out)

    def _themed(self, style: Style | None) -> Style | None:
        """Return a style that can be read on the background that there is."""
        if self.theme == "dark" or style is None or style.color is None:
            return style
        readable = _ON_LIGHT.get(style.color.name)
        return style if readable is None else style + Style(color=readable)


def needs_blank_line(before: Block, block: Block) -> bool:
    """Return whether an empty line stands between two blocks."""
    match before, block:
        case AgentText(), AgentText(part, first, _):
            return part.gap or first
        case (Call(), Call()) | (Note(), Note() | AgentContent()):
            return False
        case _:
            return True
