"""`load_agent`: the agent that a command line names."""

from __future__ import annotations

import logging
import re
import sys
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.agent.agent import Agent
from holdfast.agent_name import split_agent_name
from holdfast.errors import HoldfastError, UsageError

if TYPE_CHECKING:
    from types import CodeType, ModuleType


log: logging.Logger = logging.getLogger(__name__)


def load_agent(name: str, called: str | None = None) -> Agent:
    """Return the agent that a name means: `demo`, FILE, or FILE:NAME. Raises `UsageError` if there is none.

    With `called`, its sessions belong to that name, not to the one that the author gave it.
    """
    return named(_declared(name), called)


def named(agent: Agent, called: str | None) -> Agent:
    """Return the agent with another name, or itself if that is its name or there is no other."""
    if called is None or called == agent.name:
        return agent
    agent = copy(agent)
    agent.name = called
    return agent


def _declared(name: str) -> Agent:
    if name == "demo" and not Path(name).is_file():
        from holdfast.testing.demo_agent import agent  # noqa: PLC0415

        return agent
    file, wanted = split_agent_name(name)
    path = Path(file)
    if not path.is_file():
        raise UsageError(f"there is no file {file}; name a Python file that declares an agent, or `demo`, or `code`")
    found = {key: value for key, value in vars(_load(path)).items() if isinstance(value, Agent)}
    if wanted:
        if wanted not in found:
            raise UsageError(f"{file} has no agent called {wanted!r}; it has: {', '.join(found) or 'none'}")
        return found[wanted]
    if not found:
        raise UsageError(f'{file} declares no agent; write: agent = Agent("{path.stem}")')
    if len(found) > 1 and "agent" not in found:
        raise UsageError(f"{file} declares several agents; name one: {', '.join(f'{file}:{name}' for name in found)}")
    if len(found) > 1:
        log.warning("%s has the agents %s; `agent` is taken. Name one: %s:agent", file, ", ".join(found), file)
    return found.get("agent") or next(iter(found.values()))


def _load(path: Path) -> ModuleType:
    import importlib.util  # noqa: PLC0415  (the demo agent comes without)
    from importlib.machinery import SourceFileLoader  # noqa: PLC0415

    class ScriptLoader(SourceFileLoader):
        """Compiles the file each time, as Python does with a script: one changed within a second may look unchanged."""

        def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002  (the name is that of its base class)
            return self.source_to_code(self.get_data(self.path), self.path)

    if path.suffix != ".py":
        raise UsageError(f"{path} is not a Python file")
    spec = importlib.util.spec_from_file_location(path.stem, path, loader=ScriptLoader(path.stem, str(path)))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.parent.absolute()))  # it may import what lies beside it
    try:
        spec.loader.exec_module(module)
    except Exception as e:
        raise UsageError(_why(path, e)) from e
    return module


def _why(path: Path, failure: Exception) -> str:
    """Return why a file cannot be loaded, and where in it: in one line, or for a failure of its own the traceback."""
    if isinstance(failure, SyntaxError) and failure.lineno is not None:
        return f"{failure.filename}:{failure.lineno}: {failure.msg}"
    from traceback import extract_tb  # noqa: PLC0415  (most files can be loaded)

    from holdfast.diagnostics.tracebacks import author_frames, format_for_author  # noqa: PLC0415

    if isinstance(failure, ImportError | HoldfastError):
        frames = author_frames(extract_tb(failure.__traceback__))
        where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else str(path)
        return f"{where}: {failure}{_meant_name(failure)}"
    return f"{path} cannot be loaded\n{format_for_author(failure)}"


def _meant_name(failure: Exception) -> str:
    """Return which name of a module may have been meant by one that it does not have."""
    from holdfast.model import near_name  # noqa: PLC0415

    wrong = re.match(r"cannot import name '(\w+)'", str(failure)) if isinstance(failure, ImportError) else None
    module = sys.modules.get(getattr(failure, "name", None) or "")
    near = near_name(wrong[1], dir(module)) if wrong and module else ""
    return f"; did you mean {near!r}?" if near else ""
