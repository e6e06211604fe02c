"""A model of Pydantic AI that streams what it is told to, and what a client was shown of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from core.tests.support.acp import conversation

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pydantic_ai import ModelMessage

    from core.tests.support.acp import Client, Update

Part: TypeAlias = Any
"""What a scripted model streams: text, or a dict of a part of something else."""


class Script:
    """A model that streams what it is told to, and keeps what it was asked."""

    def __init__(self, *replies: list[Part]) -> None:
        self.replies = list(replies)
        self.asked: list[list[ModelMessage]] = []
        self.infos: list[AgentInfo] = []
        self.model = FunctionModel(
            stream_function=self._stream, profile={"context_window": 1000, "supports_thinking": True}
        )

    async def _stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Part]:
        self.asked.append(list(messages))
        self.infos.append(info)
        for part in self.replies.pop(0):
            yield part

    def parts(self, kind: type[Any], request: int = -1) -> list[Any]:
        """The parts of a kind among the messages of a request."""
        return [part for it in self.asked[request] for part in it.parts if isinstance(part, kind)]

    def contents(self, request: int = -1) -> list[Any]:
        """What the parts of a request hold, but for calls."""
        parts: list[Any] = [part for it in self.asked[request] for part in it.parts]
        return [part.content for part in parts if hasattr(part, "content")]


def call(name: str, arguments: str = "{}", at: int = 0) -> Part:
    return {at: DeltaToolCall(name, arguments, tool_call_id=f"c{at}")}


def calls(client: Client) -> list[Update]:
    return [it for it in conversation(client.updates()) if it["sessionUpdate"] == "tool_call_update"]


def statuses(client: Client, call: int = 0) -> list[str]:
    key = calls(client)[call]["toolCallId"]
    told = client.updates("tool_call", "tool_call_update")
    return [it["status"] for it in told if it["toolCallId"] == key and "status" in it]


def allow(client: Client, option: str = "allow_once") -> list[Update]:
    asked: list[Update] = []

    def answer(params: Update) -> Update:
        asked.append(params)
        return {"outcome": {"outcome": "selected", "optionId": option}}

    client.answers["session/request_permission"] = answer
    return asked
