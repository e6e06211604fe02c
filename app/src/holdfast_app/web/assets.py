"""Scripts, style and pictures of the page: package data, read once, packed once, kept by browsers for ever.

Their address has the hash of all of them in it, so that a new version is a new address and modules that import each
other always come from one version.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from holdfast_app.html import stylesheet

TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "png": "image/png",
    "svg": "image/svg+xml",
    "webmanifest": "application/manifest+json",
}

_IMPORT = re.compile(rb'^import .* from "\./([a-z-]+\.js)";$', re.MULTILINE)


class Asset(NamedTuple):
    """A file of the page."""

    body: bytes
    packed: bytes
    content_type: str


@cache
def all_assets() -> dict[str, Asset]:
    """Return the files of the page by their names."""
    found: dict[str, Asset] = {}
    for file in sorted((files("holdfast_app.web") / "assets").iterdir(), key=lambda file: file.name):
        kind = file.name.rpartition(".")[2]
        if kind in TYPES:
            body = file.read_bytes()
            found[file.name] = Asset(body, gzip.compress(body, 9, mtime=0), TYPES[kind])
    style = stylesheet().encode()
    found["entries.css"] = Asset(style, gzip.compress(style, 9, mtime=0), TYPES["css"])
    return found


@cache
def tree() -> str:
    """Return the hash of all files."""
    digest = hashlib.blake2b(digest_size=8)
    for name, asset in all_assets().items():
        digest.update(f"{name} {len(asset.body)}\n".encode() + asset.body)
    return digest.hexdigest()


def address(name: str) -> str:
    """Return where a file of the page is found."""
    return f"/assets/{tree()}/{name}"


@cache
def imports_of(script: str) -> tuple[str, ...]:
    """Return the modules that a script needs, and those that these need: a browser asks for all of them at once."""
    found: list[str] = [script]
    for name in found:  # which grows meanwhile
        imported = (each.decode() for each in _IMPORT.findall(all_assets()[name].body))
        found += (each for each in imported if each not in found)
    return tuple(found[1:])
