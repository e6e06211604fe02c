"""Code, highlighted by classes. Only a few kinds of tokens are told apart: enough to read by, and little to send."""

from __future__ import annotations

from functools import cache
from html import escape
from itertools import groupby
from typing import Any

from holdfast.view.languages import LANGUAGES, LONG_LINE
from holdfast.view.safe_text import safe_text
from holdfast_app.html.escaping import Html, escaped

MAX_HIGHLIGHTED = 64 << 10
"""Longer code is shown without colours: to highlight it takes too long."""

_CLASSES = (
    ("Comment", "c"), ("Keyword", "k"), ("Literal.String", "s"), ("Literal.Number", "m"), ("Operator.Word", "k"),
    ("Name.Function", "f"), ("Name.Class", "f"), ("Name.Decorator", "d"), ("Name.Builtin", "b"), ("Name.Tag", "k"),
    ("Name.Attribute", "b"), ("Name.Constant", "m"), ("Name.Exception", "f"), ("Generic.Deleted", "x"),
    ("Generic.Inserted", "i"), ("Generic.Heading", "f"), ("Generic.Subheading", "f"), ("Generic.Prompt", "c"),
)  # fmt: skip


def draw_code(text: str, language: str = "") -> Html:
    """Return code in a block of its own, highlighted where its language is known."""
    return Html(f'<pre tabindex="0"><code>{highlighted(text.rstrip(), language)}</code></pre>\n')


def highlighted(text: str, language: str) -> Html:
    """Return code as elements with classes."""
    lexer_name = LANGUAGES.get(language.lower())
    if lexer_name is None or len(text) > MAX_HIGHLIGHTED or any(len(line) > LONG_LINE for line in text.split("\n")):
        return escaped(text)
    text = safe_text(text).removesuffix("\n")
    tokens: list[tuple[Any, str]] = list(_lexer(lexer_name).get_tokens(f"{text}\n"))
    if "".join(value for _, value in tokens) != f"{text}\n":  # a few lexers lose what they do not understand
        return escaped(text)
    written: list[str] = []
    for name, group in groupby(tokens, key=lambda token: _class_of(token[0])):
        said = escape("".join(value for _, value in group))
        written.append(f'<span class="{name}">{said}</span>' if name else said)
    return Html("".join(written))


@cache
def _lexer(name: str) -> Any:
    # Loaded here because it takes long, and many pages have no code.
    from pygments.lexers import get_lexer_by_name  # noqa: PLC0415  # pyright: ignore[reportUnknownVariableType]

    return get_lexer_by_name(name, stripnl=False)


@cache
def _class_of(token: Any) -> str:
    """Return the class of a token of Pygments; empty for one that looks like other text."""
    path = str(token).removeprefix("Token.")
    return next((name for prefix, name in _CLASSES if f"{path}.".startswith(f"{prefix}.")), "")
