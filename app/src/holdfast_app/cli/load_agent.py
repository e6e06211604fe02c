"""`load_agent`: the agent that a command line names, `code` too."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.run.load_agent import load_agent as load_author_agent
from holdfast.run.load_agent import named

if TYPE_CHECKING:
    from holdfast import Agent


def load_agent(name: str, called: str | None = None) -> Agent:
    """Return the agent that a name means: `demo`, `code`, FILE, or FILE:NAME. Raises `UsageError` if there is none.

    With `called`, its sessions belong to that name, not to the one that the author gave it.
    """
    if name == "code" and not Path(name).is_file():
        from holdfast_app.code import coding_agent  # noqa: PLC0415

        return named(coding_agent(), called)
    return load_author_agent(name, called)
