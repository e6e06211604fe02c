"""What a model is asked, the same for all protocols: who said what, and which tools there are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

Role: TypeAlias = Literal["user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class Message:
    """One message.

    Attributes:
        role: who said it; one with the result of a tool call has the role ``tool``, whatever the protocol calls it.
        text: what was said.

    """

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that the model may call.

    Attributes:
        name: its name.
        schema: the JSON schema of its arguments.

    """

    name: str
    schema: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def arguments(self, **given: str) -> dict[str, Any]:
        """Return arguments for a call.

        Args:
            given: arguments by name; the schema decides in which form they go.

        Returns:
            Those given, and something for all else that the schema requires.

        """
        properties: dict[str, Any] = member(self.schema, "properties") or {}
        made: dict[str, Any] = {}
        for name, value in given.items():
            kind = member(properties, name, "type")
            made[name] = ["bash", "-c", value] if kind == "array" else value
        for name in members(self.schema, "required"):
            made.setdefault(name, sample_value(properties.get(name, {})))
        return made


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a request tells the model.

    Attributes:
        model: the name of the model.
        instructions: the system prompt.
        messages: what was said, in order.
        tools: what the model may call.

    """

    model: str
    instructions: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]
    schema: Mapping[str, Any] | None = None
    """The JSON schema of the answer, where the request wants one."""

    def tool(self, *names: str) -> Tool | None:
        """Return a tool by its name.

        Args:
            names: the names it may have.

        Returns:
            The first that is offered, in the order of the names; None where there is none.

        """
        offered = {tool.name: tool for tool in self.tools}
        return next((offered[name] for name in names if name in offered), None)


def member(body: Any, *names: str) -> Any:
    """Return a member of a member of an object, by their names; None where one is missing."""
    found: Any = body
    for name in names:
        found = cast("dict[str, Any]", found).get(name) if isinstance(found, dict) else None
    return found


def members(body: Any, *names: str) -> list[Any]:
    """Return a list that is a member, as `member` finds it; an empty one where it is missing."""
    return member(body, *names) or []


def text_of(content: Any) -> str:
    """Return the text in a message's content, which all protocols have as a string or as a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        part = cast("dict[str, Any]", content)
        return text_of(part.get("text") or part.get("content") or part.get("output") or part.get("resource") or "")
    if isinstance(content, list):
        return "\n".join(filter(None, map(text_of, cast("list[Any]", content))))
    return ""


def sample_value(schema: Mapping[str, Any]) -> Any:
    """Return a value that a simple schema allows."""
    if schema.get("properties"):
        return {name: sample_value(property_) for name, property_ in schema["properties"].items()}
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type", "string")
    kinds = cast("list[str]", kind if isinstance(kind, list) else [kind])
    values: dict[str, Any] = {"boolean": False, "integer": 1, "number": 1, "array": [], "object": {}, "null": None}
    return values.get(kinds[0].lower(), "as scripted")
