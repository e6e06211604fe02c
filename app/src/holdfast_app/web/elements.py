"""HTML made of elements: every text is escaped unless it is `Markup` already, so that forgetting is safe."""

from __future__ import annotations

from html import escape
from typing import TypeAlias

from holdfast.view.safe_text import safe_text

VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})


class Markup(str):
    """Markup that is as it should be. Only code that escapes may make one."""

    __slots__ = ()


Child: TypeAlias = "str | Markup | None"
Attribute: TypeAlias = "str | int | bool | None"


def element(tag: str, /, *children: Child, **attributes: Attribute) -> Markup:
    """Return an element. A `str` is text and is escaped; None is nothing.

    Names of attributes may end with an underscore (``class_``), and have ``_`` for ``-``. True stands for an attribute
    without a value; None and False for none.
    """
    opening = f"<{tag}{''.join(_attribute(key, value) for key, value in attributes.items())}>"
    return Markup(opening if tag in VOID else f"{opening}{join(*children)}</{tag}>")


def join(*children: Child) -> Markup:
    """Return texts and elements one behind the other."""
    return Markup("".join(map(_child, children)))


def document(*children: Child) -> Markup:
    """Return a whole page."""
    return Markup(f"<!doctype html>\n{join(*children)}\n")


def _child(child: Child) -> str:
    if child is None or isinstance(child, Markup):
        return child or ""
    return escape(safe_text(child))


def _attribute(key: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(safe_text(str(value)))}"'
