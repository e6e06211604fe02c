"""Markdown as styled lines of a width. HTML is text like any other: nothing that was said disappears.

Line ends stay line ends, as in most chats. Addresses are written out; nothing becomes a link that shows one thing and
opens another.
"""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from rich import box
from rich.cells import chop_cells
from rich.console import Console
from rich.style import Style
from rich.table import Table
from rich.text import Text

from holdfast.view.languages import LANGUAGES, LONG_LINE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import JustifyMethod

DIM = Style(dim=True)
BOLD = Style(bold=True)
CODE = Style(color="cyan")
GUTTER = Style(color="blue", dim=True)

_INLINE = {"strong": BOLD, "em": Style(italic=True), "s": Style(strike=True)}
_HEADINGS = {"h1": Style(bold=True, underline=True, color="magenta"), "h2": Style(bold=True, color="magenta")}

_parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
CONSOLE = Console(file=StringIO(), width=80, color_system=None, legacy_windows=False, _environ={})


def markdown_lines(text: str, width: int) -> list[Text]:
    """Return Markdown as lines."""
    return _blocks(SyntaxTreeNode(_parser.parse(text)).children, width)


def wrapped(text: Text, width: int) -> list[Text]:
    """Return text broken between words, and inside words that are too long for a line."""
    text.expand_tabs(4)
    lines = text.wrap(CONSOLE, max(width, 2), overflow="fold")
    for line in lines:
        line.rstrip()
    return list(lines)


def folded(line: Text, width: int) -> list[Text]:
    """Return a line broken wherever the width ends; a line of output or code is not broken between words."""
    if line.cell_len <= width:
        return [line]
    ends: list[int] = []
    at = 0
    for row in chop_cells(line.plain, max(width, 2)):
        at += len(row)
        ends.append(at)
    return list(line.divide(ends[:-1]))


def code_lines(code: str, language: str) -> list[Text]:
    """Return code highlighted. Its lines are not broken: the terminal does that, and copying gives what was meant."""
    code = code.expandtabs(4)
    lexer = LANGUAGES.get(language.lower())
    if lexer is None or any(len(line) > LONG_LINE for line in code.split("\n")):
        return [Text(line) for line in code.split("\n")]
    from rich.syntax import Syntax  # noqa: PLC0415  (not every answer has code)

    text = Syntax("", lexer, theme="ansi_dark").highlight(code)
    lines = list(text.split("\n", allow_blank=True))
    wanted = code.count("\n") + 1
    return (lines + [Text()] * wanted)[:wanted]


def indented(lines: Iterable[Text], first: Text, rest: Text) -> list[Text]:
    """Return lines with `first` before the first of them and `rest` before the others."""
    put = [Text.assemble(rest if n else first, line) for n, line in enumerate(lines)]
    for line in put:
        line.rstrip()
    return put


def _blocks(nodes: Iterable[SyntaxTreeNode], width: int, *, tight: bool = False) -> list[Text]:
    lines: list[Text] = []
    for node in nodes:
        if lines and not tight:
            lines.append(Text())
        lines += _block(node, width)
    return lines


def _block(node: SyntaxTreeNode, width: int) -> list[Text]:
    match node.type:
        case "paragraph":
            return wrapped(_inline(node), width)
        case "heading":
            text = _inline(node)
            text.stylize_before(_HEADINGS.get(node.tag, BOLD))
            return wrapped(text, width)
        case "bullet_list" | "ordered_list":
            return _list(node, width)
        case "blockquote":
            bar = Text("▌ ", GUTTER)
            return indented(_blocks(node.children, width - 2), bar, bar)
        case "fence" | "code_block":
            return code_lines(node.content.rstrip("\n"), (node.info.split() or [""])[0] if node.info else "")
        case "hr":
            return [Text("─" * min(width, 40), DIM)]
        case "table":
            return _table(node, width)
        case _:
            return wrapped(Text(node.content), width)


def _list(node: SyntaxTreeNode, width: int) -> list[Text]:
    lines: list[Text] = []
    tight = all(child.hidden for item in node.children for child in item.children if child.type == "paragraph")
    for item in node.children:
        marker = f"{item.info}{item.markup} " if node.type == "ordered_list" else "• "
        if lines and not tight:
            lines.append(Text())
        inside = _blocks(item.children, width - len(marker), tight=tight) or [Text()]
        lines += indented(inside, Text(marker, GUTTER), Text(" " * len(marker)))
    return lines


def _table(node: SyntaxTreeNode, width: int) -> list[Text]:
    rows = [row for part in node.children for row in part.children]
    if len(rows[0].children) * 6 > width:  # too narrow for columns: each row by itself
        cells = [[_inline(cell) for cell in row.children] for row in rows]
        return [line for row in cells for line in wrapped(Text(" │ ").join(row), width)]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, border_style=DIM, expand=False)
    for cell in rows[0].children:
        table.add_column(_inline(cell), justify=_justify(cell), header_style=BOLD, overflow="fold")
    for row in rows[1:]:
        table.add_row(*map(_inline, row.children))
    options = CONSOLE.options.update(width=width)
    lines = [
        Text.assemble(*((segment.text, segment.style or "") for segment in line))
        for line in CONSOLE.render_lines(table, options)
    ]
    for line in lines:
        line.rstrip()
    return lines


def _justify(cell: SyntaxTreeNode) -> JustifyMethod:
    style = str(cell.attrs.get("style", ""))
    return "right" if "right" in style else "center" if "center" in style else "left"


def _inline(node: SyntaxTreeNode) -> Text:
    text = Text()
    for child in node.children:
        if child.type == "inline":
            text.append_text(_inline(child))
        elif child.type in ("softbreak", "hardbreak"):
            text.append("\n")
        elif child.type == "code_inline":
            text.append(child.content, CODE)
        elif child.type == "link":
            text.append_text(_link(child))
        elif child.type == "image":
            text.append(f"[image: {child.content}]", DIM)
            text.append(f" ({child.attrs.get('src', '')})", DIM)
        elif child.children:
            inner = _inline(child)
            inner.stylize_before(_INLINE.get(child.type, Style.null()))
            text.append_text(inner)
        else:
            text.append(child.content)
    return text


def _link(node: SyntaxTreeNode) -> Text:
    text = _inline(node)
    address = str(node.attrs.get("href", ""))
    text.stylize(Style(underline=True))
    if address not in (text.plain, f"mailto:{text.plain}"):
        text.append(f" ({address})", DIM)
    return text
