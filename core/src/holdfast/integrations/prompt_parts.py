"""The content of a prompt as models take it: text, and images, sounds and files as data. Knows no library."""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.model import Update


class Binary(NamedTuple):
    """An image, a sound or a file, whose data are what they say they are: Base64."""

    data: str
    media_type: str
    name: str


def prompt_parts(blocks: Iterable[Update]) -> list[str | Binary]:
    """Return the parts of a user's message for the content blocks of a prompt."""
    return [_part(block) for block in blocks]


def prompt_text(parts: Iterable[str | Binary]) -> str | None:
    """Return a prompt that is nothing but text as one text; None where there is more in it."""
    texts: list[str] = []
    for part in parts:
        if isinstance(part, Binary):
            return None
        texts.append(part)
    return "\n".join(texts)


def _part(block: Update) -> str | Binary:
    match block["type"]:
        case "text":
            return block["text"]
        case "image" | "audio":
            return _binary(block["data"], block["mimeType"], block.get("uri") or "")
        case "resource_link":
            return f"[{block['name']}]({block['uri']})"
        case "resource":
            resource = block["resource"]
            if "text" in resource:
                return f'<resource uri="{resource["uri"]}">\n{resource["text"]}\n</resource>'
            return _binary(resource["blob"], resource.get("mimeType") or "application/octet-stream", resource["uri"])
        case other:
            return f"[{other}, which cannot be shown to the model]"


def _binary(data: str, media_type: str, name: str) -> str | Binary:
    try:
        b64decode(data, validate=True)
    except ValueError:
        return f"[{media_type} {name}: its data are damaged]"
    return Binary(data, media_type, name)
