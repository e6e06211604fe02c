"""Holdfast gives every ACP agent sessions that hold.

``Agent`` declares an agent, ``Turn`` is what its handler gets; `holdfast.errors` has every exception.
"""

from holdfast.agent import Agent, Session, ToolCall, Turn
from holdfast.errors import HoldfastError

__all__ = ["Agent", "HoldfastError", "Session", "ToolCall", "Turn"]
