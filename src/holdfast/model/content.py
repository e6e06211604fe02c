"""Content blocks: what a prompt may hold. Checked by their shape, carried as they came (C1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.errors import InvalidParams

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


class Text(msgspec.Struct, tag_field="type", tag="text"):
    """Text."""

    text: str


class ResourceLink(msgspec.Struct, tag_field="type", tag="resource_link"):
    """The address of something that the agent can read."""

    name: str
    uri: str


class Image(msgspec.Struct, tag_field="type", tag="image", rename="camel"):
    """An image, as base64."""

    data: str
    mime_type: str


class Audio(msgspec.Struct, tag_field="type", tag="audio", rename="camel"):
    """Audio, as base64."""

    data: str
    mime_type: str


class ResourceContents(msgspec.Struct):
    """The content of a resource: text, or base64."""

    uri: str
    text: str | msgspec.UnsetType = msgspec.UNSET
    blob: str | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        if (self.text is msgspec.UNSET) == (self.blob is msgspec.UNSET):
            raise ValueError("a resource has either text or a blob")


class EmbeddedResource(msgspec.Struct, tag_field="type", tag="resource"):
    """A resource that comes with its content."""

    resource: ResourceContents


Block = Text | ResourceLink | Image | Audio | EmbeddedResource

ALWAYS = frozenset({"text", "resource_link"})
"""What every agent accepts in a prompt."""


def checked_prompt(blocks: Sequence[dict[str, Any]], accepts: Collection[str]) -> Sequence[dict[str, Any]]:
    """Return the content of a prompt; raise `InvalidParams` where a block is malformed or not in `accepts`."""
    if not blocks:
        raise InvalidParams("A prompt must not be empty")
    for block in blocks:
        try:
            msgspec.convert(block, Block)
        except msgspec.ValidationError as e:
            raise InvalidParams(f"The prompt has a content block that is not valid: {e}") from None
        if block["type"] not in ALWAYS and block["type"] not in accepts:
            raise InvalidParams(f"This agent does not accept {block['type']} content in a prompt")
    return blocks
