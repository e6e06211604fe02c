"""An agent on the plain clients of OpenAI and Anthropic, no framework between.

`holdfast run examples/plain_clients.py`, with OPENAI_API_KEY or ANTHROPIC_API_KEY set. What was said is read from the
session's own history: after a crash, a restart or a fork the model knows what its user sees, and nothing is kept twice.
"""

from collections.abc import AsyncIterator
from typing import Any

from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from holdfast import Agent, Turn

agent = Agent("plain", title="Plain", version="1.0")
agent.models({"gpt-5.2": "GPT-5.2", "claude-opus-4-7": "Claude"}, default="gpt-5.2")

ROLES = {"user_message": "user", "agent_message": "assistant"}


@agent.prompt
async def answer(turn: Turn) -> AsyncIterator[str]:
    """Say what the model says. A turn that is cancelled leaves the stream, and that ends the request."""
    history = await turn.history()
    messages: list[Any] = [
        {"role": ROLES[it.entity], "content": it.text()} for it in history if it.entity in ROLES and it.text()
    ]
    model = turn.session.model
    if model.startswith("gpt"):
        async with AsyncOpenAI() as openai:
            async for chunk in await openai.chat.completions.create(model=model, messages=messages, stream=True):
                for choice in chunk.choices:
                    yield choice.delta.content or ""
    else:
        async with (
            AsyncAnthropic() as anthropic,
            anthropic.messages.stream(model=model, messages=messages, max_tokens=4096) as stream,
        ):
            async for text in stream.text_stream:
                yield text
