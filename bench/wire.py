"""The lines this program says to contenders, and how it drives them through a conversation."""

from __future__ import annotations

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
"""Occurs in the answer to a prompt and nowhere else."""


def prompt(text: str) -> bytes:
    """Ask an agent to do something."""
    return (
        b'{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"sess_0123456789abcdef",'
        b'"prompt":[{"type":"text","text":"%b"}]}}\n' % text.encode()
    )


def open_session(agent: ContenderProcess) -> None:
    """Greet an agent."""
    for line in (INITIALIZE, NEW_SESSION):
        agent.write(line)
        agent.read_line()


def take_turn(agent: ContenderProcess, text: str) -> None:
    """Let an agent do something, reading whatever it says meanwhile."""
    agent.write(prompt(text))
    agent.read_until(END_OF_TURN)


def answer(client: ContenderProcess, result: bytes, *, after: bytes = b"") -> None:
    """Answer the request a client sends next, perhaps after saying something else."""
    id_ = id_of(client.read_line())
    client.write(after)
    client.write(b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (id_, result))
