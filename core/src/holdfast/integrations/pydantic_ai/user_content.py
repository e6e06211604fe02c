"""The content of a prompt as Pydantic AI takes it: images, sounds and embedded resources beside the text."""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING

from pydantic_ai import BinaryContent

from holdfast.integrations.prompt_parts import prompt_parts, prompt_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_ai import UserContent

    from holdfast.model import Update


def user_content(blocks: Sequence[Update]) -> str | list[UserContent]:
    """Return the content of a user's message for the content blocks of a prompt; plain text stays plain text."""
    parts = prompt_parts(blocks)
    if (text := prompt_text(parts)) is not None:
        return text
    return [
        part if isinstance(part, str) else BinaryContent(b64decode(part.data), media_type=part.media_type)
        for part in parts
    ]
