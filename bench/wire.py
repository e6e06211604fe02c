"""The lines this program says to contenders, and how it drives them through a conversation."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bench.processes import id_of

if TYPE_CHECKING:
    from bench.processes import ContenderProcess

UPDATE = (
    b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess_0123456789abcdef","update":'
    b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a few words of an answer, say 32"}}}}\n'
)
INITIALIZE = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}\n'
NEW_SESSION = b'{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}\n'
END_OF_TURN = b'"stopReason"'
"""Occurs in the answer to a prompt (in version 2: in what says that the agent is idle) and nowhere else."""

SESSION = "sess_0123456789abcdef"
"""The only session of an agent that keeps none."""


def prompt(text: str, session: str = SESSION) -> bytes:
    """Ask an agent to do something."""
    return (
        b'{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"%b",'
        b'"prompt":[{"type":"text","text":"%b"}]}}\n' % (session.encode(), text.encode())
    )


def open_session(agent: ContenderProcess, *, version: int = 1) -> str:
    """Greet an agent; give the id of the session it made."""
    agent.write(INITIALIZE.replace(b'"protocolVersion":1', b'"protocolVersion":%d' % version))
    agent.read_line()
    agent.write(NEW_SESSION)
    found = re.search(rb'"sessionId":\s*"([^"]*)"', agent.read_line())
    assert found is not None
    return found[1].decode()


def take_turn(agent: ContenderProcess, text: str, session: str = SESSION) -> None:
    """Let an agent do something, reading whatever it says meanwhile."""
    agent.write(prompt(text, session))
    agent.read_until(END_OF_TURN)


def answer(client: ContenderProcess, result: bytes, *, after: bytes = b"") -> None:
    """Answer the request a client sends next, perhaps after saying something else."""
    id_ = id_of(client.read_line())
    client.write(after)
    client.write(b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (id_, result))
