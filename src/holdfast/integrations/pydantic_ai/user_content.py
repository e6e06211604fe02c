"""The content of a prompt as Pydantic AI takes it: images, sounds and embedded resources beside the text."""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING

from pydantic_ai import BinaryContent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_ai import UserContent

    from holdfast.model import Update


def user_content(blocks: Sequence[Update]) -> str | list[UserContent]:
    """Return the content of a user's message for the content blocks of a prompt; plain text stays plain text."""
    content: list[UserContent] = [_content(block) for block in blocks]
    texts = [part for part in content if isinstance(part, str)]
    return "\n".join(texts) if len(texts) == len(content) else content


def _content(block: Update) -> str | BinaryContent:
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


def _binary(data: str, media_type: str, name: str) -> str | BinaryContent:
    try:
        return BinaryContent(b64decode(data, validate=True), media_type=media_type)
    except ValueError:
        return f"[{media_type} {name}: its data are damaged]"
