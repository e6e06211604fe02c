"""Pages of the server itself, for people who are not signed in: whole in one answer, and without a script that loads.

Nothing in them comes from a session. A form sends the token in the body of a POST, so it is in no address and no log.
"""

from __future__ import annotations

import base64
import hashlib
import re
from html import escape
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qs

if TYPE_CHECKING:
    from holdfast.server.remote.requests import Scope

SIGN_IN = "/sign-in"
"""Where the form is sent to."""

LONGEST_FORM = 8_192

_STYLE = """
:root { color-scheme: light dark; --paper: light-dark(#ffffff, #13161c); --ink: light-dark(#1c2028, #e4e7ed);
  --dim: light-dark(#58616f, #9da7b5); --rule: light-dark(#8b94a3, #5c6675); --shade: light-dark(#f4f5f8, #1b1f27);
  --accent: light-dark(#2257c5, #8cb4ff); --bad: light-dark(#b3202c, #ff9a9f); }
*, ::before, ::after { box-sizing: border-box; }
body { margin: 0; min-block-size: 100dvb; display: grid; place-items: center; padding: 1rem; color: var(--ink);
  background: var(--shade); font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
main { inline-size: 100%; max-inline-size: 26rem; padding: clamp(1.25rem, 5vw, 2rem); border-radius: .9rem;
  background: var(--paper); border: 1px solid light-dark(#dadee5, #2d333e); overflow-wrap: anywhere; }
header { display: flex; align-items: center; gap: .6rem; font-weight: 650; }
header svg { inline-size: 1.75rem; block-size: 1.75rem; }
h1 { font-size: 1.35rem; line-height: 1.3; margin: 1.25rem 0 0; }
p { margin: .75rem 0 0; }
.about { color: var(--dim); font-size: .9rem; }
.error { color: var(--bad); }
form { margin: 1.25rem 0 0; display: grid; gap: .4rem; }
label { font-size: .9rem; font-weight: 500; }
input, button, .button { font: inherit; color: inherit; inline-size: 100%; min-block-size: 2.75rem;
  padding: .5rem .75rem; border: 1px solid var(--rule); border-radius: .55rem; background: var(--paper); }
button, .button { display: block; margin-block-start: .6rem; cursor: pointer; font-weight: 600; text-align: center;
  text-decoration: none; background: var(--accent); border-color: var(--accent); color: var(--paper); }
button:hover, .button:hover { filter: brightness(1.08); }
a { color: var(--accent); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
code { font: .85em ui-monospace, "SF Mono", Menlo, Consolas, monospace; background: var(--shade); padding: .1em .3em;
  border-radius: .3em; }
@media (forced-colors: active) { button, .button { border: 1px solid; } }
"""

_MARK = (
    '<svg viewBox="0 0 64 64" aria-hidden="true"><rect width="64" height="64" rx="14" fill="#2257c5"/>'
    '<path d="M20 14v36M44 14v36M20 33c8-9 16-9 24 0" fill="none" stroke="#fff" stroke-width="6"'
    ' stroke-linecap="round"/></svg>'
)


class SmallPage(NamedTuple):
    """A page, and the headers that belong to it."""

    body: bytes
    headers: list[tuple[str, str]]


def small_page(title: str, content: str, *, script: str = "") -> SmallPage:
    """Return a page. `content` is markup; only `script` runs in it."""
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>{escape(title)} · Holdfast</title>'
        f"<style>{_STYLE}</style>"
    )
    main = f"<main><header>{_MARK}Holdfast</header><h1>{escape(title)}</h1>{content}</main>"
    run = f"<script>{script}</script>" if script else ""
    page = f'<!doctype html><html lang="en"><head>{head}</head><body>{main}{run}</body></html>\n'
    rules = [
        "default-src 'none'",
        f"style-src {_hash(_STYLE)}",
        *([f"script-src {_hash(script)}"] if script else []),
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
    return SmallPage(
        page.encode(),
        [
            ("content-type", "text/html; charset=utf-8"),
            ("cache-control", "no-store"),
            ("content-security-policy", "; ".join(rules)),
            # Not `no-referrer`: browsers would then hide in the form's POST which page it comes from.
            ("referrer-policy", "same-origin"),
            ("x-content-type-options", "nosniff"),
        ],
    )


def refusal_page(status: int, message: str) -> SmallPage:
    """Return a page that says why there is no other. What stands in backquotes is code."""
    said = re.sub("`([^`]*)`", r"<code>\1</code>", escape(f"{message}."))
    return small_page("Not signed in" if status == 401 else "This does not work", f"<p>{said}</p>")


def sign_in_page(scope: Scope, address: str, *, to: str = "", trouble: str = "") -> SmallPage:
    """Return a page with a form for a token; it leads on to a path of this server, which is asked at `address`."""
    root = scope.get("root_path") or ""
    error = f'<p class="error" role="alert" id="trouble">{escape(trouble)}</p>' if trouble else ""
    described = ' aria-invalid="true" aria-describedby="trouble"' if trouble else ""
    return small_page(
        "Sign in",
        f'{error}<form method="post" action="{escape(root + SIGN_IN)}">'
        '<label for="token">Your token</label>'
        '<input id="token" name="token" type="password" required autofocus autocomplete="current-password"'
        f' autocapitalize="none" autocorrect="off" spellcheck="false" placeholder="hf_…"{described}>'
        f'<input type="hidden" name="to" value="{escape(to)}">'
        "<button>Sign in</button></form>"
        '<p class="about">You get a token, or a link that signs in this browser once, from the person who runs this'
        " server: <code>holdfast token new NAME --link</code></p>"
        '<p class="about">If this is your own server, open the link that it shows in the terminal.'
        f" <code>holdfast link {escape(address)}</code> prints another.</p>",
    )


class Form(NamedTuple):
    """What a form has sent."""

    token: str
    to: str
    """A path of this server."""


def read_form(body: bytes) -> Form:
    """Read a form that was sent; a path that would lead elsewhere is not followed."""
    fields = parse_qs(body.decode("latin-1"), max_num_fields=10)
    to = fields.get("to", [""])[0]
    is_path = re.fullmatch(r"/(?![/\\])[!-~]*", to) is not None and "\\" not in to
    return Form(fields.get("token", [""])[0].strip(), to if is_path else "/")


def path_of(scope: Scope) -> str:
    """Return the path and query that a request asks for, as it was sent."""
    from urllib.parse import quote  # noqa: PLC0415

    root, path = scope.get("root_path") or "", scope["path"]
    query = (scope.get("query_string") or b"").decode("latin-1")
    return quote(path[len(root) :] if root and path.startswith(root) else path) + (f"?{query}" if query else "")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
