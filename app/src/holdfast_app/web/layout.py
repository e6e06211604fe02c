"""What all pages have in common: the head, the bar at the top, icons, times."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from holdfast_app.web.assets import address, imports_of
from holdfast_app.web.elements import Markup, document, element, join

if TYPE_CHECKING:
    from holdfast_app.web.elements import Child


def icon(name: str) -> Markup:
    """Return a picture of `assets/icons.svg`. It says nothing by itself: whoever uses it names what it stands for."""
    return element("svg", element("use", href=f"{address('icons.svg')}#{name}"), class_="icon", aria_hidden="true")


def button(label: str, picture: str | None = None, **attributes: str | bool | None) -> Markup:
    """Return a button; one with a picture shows only that, and is named by its label."""
    if picture is None:
        return element("button", label, type="button", **attributes)
    name = element("span", label, class_="visually-hidden")
    classes = f"icon-button {attributes.pop('class_', '') or ''}".strip()
    return element("button", icon(picture), name, type="button", class_=classes, title=label, **attributes)


def page(title: str, *body: Child, script: str, kind: str, bar: Markup) -> Markup:
    """Return a whole page."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element(
            "meta", name="viewport", content="width=device-width, initial-scale=1, interactive-widget=resizes-content"
        ),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="theme-color", content="#ffffff", media="(prefers-color-scheme: light)"),
        element("meta", name="theme-color", content="#13161c", media="(prefers-color-scheme: dark)"),
        element("title", f"{title} · Holdfast" if title else "Holdfast"),
        element("link", rel="manifest", href="/manifest.webmanifest", crossorigin="use-credentials"),
        element("link", rel="apple-touch-icon", href="/icons/icon-192.png"),
        element("link", rel="icon", href=address("icon.svg"), type="image/svg+xml"),
        element("link", rel="stylesheet", href=address("entries.css")),
        element("link", rel="stylesheet", href=address("page.css")),
        element("script", src=address("early.js")),
        *(element("link", rel="modulepreload", href=address(name)) for name in imports_of(script)),
        element("script", type="module", src=address(script)),
    )
    skip = element("a", "Skip to the content", class_="skip", href="#main")
    messages = element("div", id="messages", role="status", aria_live="polite")
    return document(element("html", head, element("body", skip, bar, *body, messages, class_=kind), lang="en"))


def time_of(microseconds: int) -> Markup:
    """Return a time; the page's scripts say it as people do, in their own zone."""
    at = datetime.fromtimestamp(microseconds / 1_000_000, UTC)
    written = at.isoformat(timespec="seconds").replace("+00:00", "Z")
    return element("time", f"{at:%Y-%m-%d %H:%M}", datetime=written)


def plural(number: int, thing: str) -> str:
    """Return a number of things in words."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def nothing_here(title: str, *more: Child) -> Markup:
    """Return what stands where there is nothing to show."""
    return element("div", element("p", element("strong", title)), *more, class_="empty")


def error_page(status: int, message: str) -> Markup:
    """Return a page that says why there is no other."""
    bar = element("header", element("a", "Sessions", class_="brand", href="/"), class_="bar")
    main = element("main", nothing_here(message, element("p", element("a", "All sessions", href="/"))), id="main")
    return page(f"{status}", join(main), script="library.js", kind="error", bar=bar)
