"""What the author of an agent imports: `Agent` says what it is, `Turn` is what its handler gets.

Nothing here knows the protocol. An author says things and asks things; how they reach the client, what a version can
express and what survives a crash is not the author's business.
"""

from holdfast.agent.agent import Agent
from holdfast.agent.messages import Message
from holdfast.agent.session import Session
from holdfast.agent.terminals import BackgroundTerminal
from holdfast.agent.tools import ToolCall
from holdfast.agent.turn import Turn

__all__ = ["Agent", "BackgroundTerminal", "Message", "Session", "ToolCall", "Turn"]

for _public in (Agent, Session, ToolCall, Turn):
    _public.__module__ = "holdfast"  # where everybody imports them from
for _public in (BackgroundTerminal, Message):
    _public.__module__ = "holdfast.agent"
