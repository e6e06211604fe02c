"""An agent that says five things, or calls a tool of the session's MCP server while `road_recorder.py` records."""

from __future__ import annotations

from road_recorder import recorder  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]

from holdfast import Agent, Turn

agent = Agent("road")


@agent.prompt
async def answer(turn: Turn) -> None:
    if turn.text == "call":
        recorder.start("call_tool")
        await turn.call_tool("echo", "echo", {"text": "hello"})
        recorder.stop()
    else:
        for _ in range(5):
            await turn.say("a few words of an answer, say 32")
