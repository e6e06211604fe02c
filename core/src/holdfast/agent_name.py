"""How a command line names an agent: FILE, or FILE:NAME where the file declares several, or the command of another."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

INTERPRETERS = ("python", "pypy", "node", "bun", "deno", "ruby", "perl", "php", "sh", "bash", "zsh")
"""Programs that run the file they are given, by the beginning of their names: ``python3.12`` is one."""

SCRIPTS = (".py", ".js", ".mjs", ".ts", ".sh")
"""How the names of files end that are run, and are not part of what people call an agent."""

LAUNCHERS = {"npx": (), "bunx": (), "uvx": (), "pipx": ("run",), "uv": ("run", "tool"), "pnpm": ("dlx", "exec")}
"""Programs that run another one, and the words that may stand before its name."""

AGENT_VERBS = ("run", "wrap", "connect")
"""The commands of Holdfast that are an agent on stdin and stdout."""


def split_agent_name(agent: str) -> tuple[str, str]:
    r"""Return the file that a name means, and the agent in it, empty where none is named.

    Only what can be a Python name is one: the colon in ``C:\agents\weather.py`` belongs to the path.
    """
    file, colon, name = agent.rpartition(":")
    if not colon or not name.isidentifier() or Path(agent).is_file():
        return agent, ""
    return file, name


def name_of_command(command: Sequence[str]) -> str:
    """Return what people call the agent that a command starts: ``weather`` for ``python weather.py``.

    It is the file that an interpreter is given, the module behind ``-m``, the package that `npx` or `uvx` runs, and
    otherwise the program.
    """
    program, *words = command
    name = Path(program).name
    if name in LAUNCHERS:
        words = [word for word in words if not word.startswith("-") and word not in LAUNCHERS[name]]
        if not words:
            return name
        program, *words = words
        name = program.rsplit("/", 1)[-1].partition("@")[0] or name
    if not name.startswith(INTERPRETERS):
        return Path(name).stem if Path(name).suffix in (*SCRIPTS, ".exe") else name
    for option, word in zip(("", *words), words, strict=False):
        if option == "-m":
            return word.partition(".")[0]
        if option in ("-c", "-e"):
            return name
        if not word.startswith("-") and Path(word).suffix:
            return Path(word).stem
    return name


def holdfast_verb(command: Sequence[str]) -> str | None:
    """Return the verb of a Holdfast that a command starts as an agent: ``run``, ``wrap`` or ``connect``; else None."""
    if not command or name_of_command(command) != "holdfast":
        return None
    verbs = (word for program, word in pairwise(command) if Path(program).stem == "holdfast" and word in AGENT_VERBS)
    return next(verbs, None)
