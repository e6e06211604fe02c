"""Content blocks: what a prompt may hold. Checked by their shape, carried as they came (C1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

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


class _Prompt(msgspec.Struct):
    prompt: list[Block]


class SystemPrompt(NamedTuple):
    """Instructions that a client gives to the agent's model.

    Attributes:
        mode: whether they are added to the agent's own, or stand in their place.
        text: what to tell the model.

    """

    mode: Literal["append", "override"]
    text: str


class _SystemPrompt(msgspec.Struct):
    mode: str
    content: list[Text]


def checked_system_prompt(wire: Any, accepts: Collection[str]) -> SystemPrompt | None:
    """Check the system prompt that a client names; raise `InvalidParams` for one the agent has not offered to take."""
    if wire is None:
        return None
    if "system_prompt" not in accepts:
        raise InvalidParams("This agent takes no system prompt")
    try:
        prompt = msgspec.convert(wire, _SystemPrompt)
    except msgspec.ValidationError as e:
        raise InvalidParams(f"The system prompt is not valid: {e}") from None
    text = "\n".join(block.text for block in prompt.content)
    if not prompt.content:
        raise InvalidParams("A system prompt must not be empty")
    if prompt.mode == "append":
        return SystemPrompt("append", text)
    if prompt.mode == "override" and "system_prompt_override" in accepts:
        return SystemPrompt("override", text)
    raise InvalidParams(f"This agent does not take a system prompt in mode {prompt.mode[:50]!r}")


def checked_prompt(blocks: Sequence[dict[str, Any]], accepts: Collection[str]) -> Sequence[dict[str, Any]]:
    """Return the content of a prompt; raise `InvalidParams` where a block is malformed or not in `accepts`."""
    if not blocks:
        raise InvalidParams("A prompt must not be empty")
    try:
        # To convert to a union by itself costs ten times as much: what is known of it stays with a class.
        msgspec.convert({"prompt": blocks}, _Prompt)
    except msgspec.ValidationError as e:
        raise InvalidParams(f"The prompt has a content block that is not valid: {e}") from None
    for block in blocks:
        if block["type"] not in ALWAYS and block["type"] not in accepts:
            raise InvalidParams(f"This agent does not accept {block['type']} content in a prompt")
    return blocks
