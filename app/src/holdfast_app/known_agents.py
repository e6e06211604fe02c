"""The agents that people have: what each is called, whatever starts it, and how it is started.

A session belongs to an agent by its name (F1). The same agent has many: what people say, what it calls itself, the
package it comes in, its program. All of them are one name here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from holdfast.agent_name import SCRIPTS, name_of_command
from holdfast.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence


class KnownAgent(NamedTuple):
    """An agent that people have."""

    title: str
    command: tuple[str, ...]
    """Starts it as an ACP agent."""
    install: str
    aliases: tuple[str, ...] = ()
    """Its other names: what it calls itself or did, its packages, its program."""


KNOWN_AGENTS = {
    "claude": KnownAgent(
        "Claude",
        ("claude-agent-acp",),
        "npm install -g @agentclientprotocol/claude-agent-acp",
        (
            *("@agentclientprotocol/claude-agent-acp", "claude-agent-acp", "@zed-industries/claude-agent-acp"),
            *("claude-code-acp", "@zed-industries/claude-code-acp", "claude-code"),
        ),
    ),
    "codex": KnownAgent(
        "Codex",
        ("codex-acp",),
        "npm install -g @agentclientprotocol/codex-acp",
        ("@agentclientprotocol/codex-acp", "codex-acp", "@zed-industries/codex-acp"),
    ),
    "gemini": KnownAgent(
        "Gemini", ("gemini", "--acp"), "npm install -g @google/gemini-cli", ("gemini-cli", "@google/gemini-cli")
    ),
    "opencode": KnownAgent("opencode", ("opencode", "acp"), "npm install -g opencode-ai", ("OpenCode", "opencode-ai")),
    "copilot": KnownAgent(
        "Copilot", ("copilot", "--acp"), "npm install -g @github/copilot", ("Copilot", "copilot-cli", "@github/copilot")
    ),
    "goose": KnownAgent("goose", ("goose", "acp"), "npm install -g @aaif/goose", ("@aaif/goose",)),
    "kimi": KnownAgent(
        "Kimi",
        ("kimi", "acp"),
        "npm install -g @moonshot-ai/kimi-code",
        ("Kimi Code CLI", "kimi-code", "kimi-cli", "@moonshot-ai/kimi-code"),
    ),
    "qwen": KnownAgent(
        "Qwen", ("qwen", "--acp"), "npm install -g @qwen-code/qwen-code", ("qwen-code", "@qwen-code/qwen-code")
    ),
    "vibe": KnownAgent(
        "Vibe", ("vibe-acp",), "uv tool install mistral-vibe", ("@mistralai/mistral-vibe", "mistral-vibe", "vibe-acp")
    ),
}
"""By the names that their sessions belong to."""

_NAMES = {alias: name for name, agent in KNOWN_AGENTS.items() for alias in agent.aliases}


def one_name(name: str) -> str:
    """Return the one name of an agent: that of a known agent for each of its aliases, any other name as it is."""
    return _NAMES.get(name, name)


def installed_command(agent: KnownAgent) -> tuple[str, ...]:
    """Return the command of an agent. Raises `UsageError` that says how to install it if its program is missing."""
    from shutil import which  # noqa: PLC0415  (an agent that is wrapped by its command needs none)

    if which(agent.command[0]) is None:
        raise UsageError(f"there is no program {agent.command[0]} on this machine; install it: {agent.install}")
    return agent.command


def name_of_program(command: Sequence[str]) -> str | None:
    """Return the name of the known agent whose program or package a command runs, or None.

    A script of somebody may have any name: ``python gemini.py`` is not Gemini.
    """
    if not command:
        return None
    called = name_of_command(command)
    is_script = any(word.rpartition("/")[2].startswith(f"{called}.") and word.endswith(SCRIPTS) for word in command)
    name = one_name(called)
    return name if name in KNOWN_AGENTS and not is_script else None


def name_of_wrapped(given: str | None, own: str | None, command: Sequence[str]) -> str | None:
    """Return the name that a wrapped agent's sessions belong to, or None if nothing names it.

    It is the name that the user has `given`, else that of the known agent that calls itself so, or whose program the
    command runs, else the agent's `own`.
    """
    if given:
        return one_name(given)
    if own and one_name(own) in KNOWN_AGENTS:
        return one_name(own)
    return name_of_program(command) or own
