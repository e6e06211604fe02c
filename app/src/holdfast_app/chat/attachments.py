"""What goes with a prompt besides its text: files named with `@`, images, the output of commands.

A file is named `@path`, relative to the session's directory or absolute, and must lie inside the session's roots: what
is elsewhere stays text. It is sent as a link, or whole where the agent takes embedded resources and the file is a short
text; an image as an image, where the agent takes those. This module reads files and knows no terminal.
"""

from __future__ import annotations

import base64
import mimetypes
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast_app.chat.screen import Candidate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_EMBEDDED = 64 << 10
"""A text of so many bytes is sent whole; a longer file is linked to."""
MAX_IMAGE = 8 << 20
"""An image may have so many bytes: with its encoding it must fit into one message."""
MOST_FILES = 4_000
"""So many files are looked at for a completion by name alone."""
MOST_CANDIDATES = 60

IMAGES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp"}

_MENTION = re.compile(r'(?:^|(?<=[\s(]))@(?:"(?P<quoted>[^"\n]+)"|(?P<plain>[^\s"]+))')
_PASSED_OVER = frozenset({"node_modules", "__pycache__", "venv", "target", "dist", "build"})


class Takes(NamedTuple):
    """What an agent takes in prompts."""

    images: bool
    resources: bool


class Attached(NamedTuple):
    """Blocks that go behind the text of a prompt, and what is to be said about others."""

    blocks: list[dict[str, Any]]
    remarks: list[str]


def attach_files(text: str, roots: Sequence[str], takes: Takes) -> Attached:
    """Return the blocks for the files that a text names, each once."""
    attached = Attached([], [])
    done: set[str] = set()
    for found in _MENTION.finditer(text):
        name: str = found["quoted"] or found["plain"]
        path = _file_named(name, roots)
        if path is None:
            if "/" in name or "." in name:  # otherwise it is most likely a person's name
                attached.remarks.append(f"@{name} is no file inside {roots[0]}: it is sent as text")
        elif str(path) not in done:
            done.add(str(path))
            _attach(path, name, takes, attached)
    return attached


def _file_named(name: str, roots: Sequence[str]) -> Path | None:
    """Find the file, or directory, that a name means; None where there is none inside the roots."""
    for candidate in (name, name.rstrip(".,;:!?)")):
        if not candidate:
            continue
        path = Path(os.path.realpath(Path(roots[0]) / Path(candidate).expanduser()))
        if _is_inside(path, roots) and path.exists():
            return path
    return None


def _is_inside(path: Path, roots: Sequence[str]) -> bool:
    return any(path.is_relative_to(os.path.realpath(root)) for root in roots)


def _attach(path: Path, name: str, takes: Takes, attached: Attached) -> None:
    link: dict[str, Any] = {"type": "resource_link", "uri": path.as_uri(), "name": path.name}
    try:
        if path.suffix.lower() in IMAGES and takes.images:
            attached.blocks.append(image_block(path))
            return
        if takes.resources and path.is_file() and path.stat().st_size <= MAX_EMBEDDED:
            content = path.read_bytes().decode()
            if "\0" not in content:
                attached.blocks.append({"type": "resource", "resource": {"uri": path.as_uri(), "text": content}})
                return
        if path.is_file():
            link["size"] = path.stat().st_size
            if (kind := mimetypes.guess_type(path.name)[0]) is not None:
                link["mimeType"] = kind
    except UnicodeDecodeError:
        pass  # no text: a link will do
    except (OSError, ValueError) as e:
        attached.remarks.append(f"@{name} is linked to, not sent: {e}")
    attached.blocks.append(link)


def image_block(path: Path) -> dict[str, Any]:
    """Return an image as a content block. Raises `ValueError` where it is too large, `OSError` where there is none."""
    if path.stat().st_size > MAX_IMAGE:
        raise ValueError(f"it is larger than {MAX_IMAGE >> 20} MB")
    return image_of_bytes(path.read_bytes(), IMAGES[path.suffix.lower()])


def image_of_bytes(data: bytes, kind: str) -> dict[str, Any]:
    """Return the bytes of an image as a content block."""
    return {"type": "image", "mimeType": kind, "data": base64.b64encode(data).decode()}


def pasted_image(text: str) -> Path | None:
    """Return the image file that a pasted text names, as terminals paste a file that was dropped; None for others."""
    name = text.strip()
    if not name or "\n" in name or len(name) > 4_096:
        return None
    if name[0] == name[-1] and name[0] in "'\"" and len(name) > 1:
        name = name[1:-1]
    path = Path(re.sub(r"\\(.)", r"\1", name.removeprefix("file://"))).expanduser()
    try:
        return path if path.is_absolute() and path.suffix.lower() in IMAGES and path.is_file() else None
    except (OSError, ValueError):
        return None


# Completion


def mention_before(text: str) -> str | None:
    """Return what was typed of a file's name behind `@`, right before the cursor; None where nothing was."""
    found = re.search(r'(?:^|[\s(])@("[^"\n]*|[^\s"]*)$', text)
    return None if found is None else found[1]


def complete_files(typed: str, roots: Sequence[str]) -> Iterator[Candidate]:
    """Yield the files inside the roots that begin so, or have a part of their name that does, as they are written."""
    part = typed.lstrip('"')
    root = Path(roots[0])
    shown: set[str] = set()
    for name in (*_beginning(root, part, roots), *(() if "/" in part or not part else _anywhere(root, part, roots))):
        if name not in shown and name.isprintable() and '"' not in name:  # others cannot be written down
            shown.add(name)
            yield Candidate(f'@"{name}"' if " " in name else f"@{name}", "directory" if name.endswith("/") else "")
        if len(shown) == MOST_CANDIDATES:
            return


def _beginning(root: Path, part: str, roots: Sequence[str]) -> Iterator[str]:
    before, slash, start = part.rpartition("/")
    directory = root / before if before or not slash else Path("/")
    for entry in _entries(directory):
        hidden = entry.name.startswith(".") and not start.startswith(".")
        if (
            entry.name.lower().startswith(start.lower())
            and not hidden
            and _is_inside(Path(os.path.realpath(entry)), roots)
        ):
            yield f"{before}{slash}{entry.name}" + ("/" if entry.is_dir() else "")


def _anywhere(root: Path, part: str, roots: Sequence[str]) -> Iterator[str]:
    looked = 0
    for directory, names, files in os.walk(root):
        names[:] = sorted(name for name in names if not name.startswith(".") and name not in _PASSED_OVER)
        for name in sorted(files):
            path = Path(directory, name)
            if part.lower() in name.lower() and _is_inside(Path(os.path.realpath(path)), roots):
                yield str(path.relative_to(root))
        looked += len(files)
        if looked > MOST_FILES:
            return


def _entries(directory: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as found:
            return sorted(found, key=lambda entry: (not entry.is_dir(), entry.name))
    except (OSError, ValueError):
        return []
