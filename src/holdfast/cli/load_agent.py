"""`load_agent`: the agent that a command line names."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.agent.agent import Agent
from holdfast.errors import HoldfastError, UsageError

if TYPE_CHECKING:
    from types import ModuleType


def load_agent(name: str) -> Agent:
    """Return the agent that a name means: `demo`, `code`, FILE, or FILE:NAME. Raises `UsageError` if there is none."""
    if name == "demo" and not Path(name).is_file():
        from holdfast.demo import agent  # noqa: PLC0415

        return agent
    if name == "code" and not Path(name).is_file():
        from holdfast.code import coding_agent  # noqa: PLC0415

        return coding_agent()
    file, _, wanted = name.partition(":") if not Path(name).is_file() else (name, "", "")
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
    return found.get("agent") or next(iter(found.values()))


def _load(path: Path) -> ModuleType:
    import importlib.util  # noqa: PLC0415  (the demo agent comes without)

    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is not a Python file")
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

    from holdfast.diagnostics.tracebacks import LEFT_OUT, author_frames, format_failure  # noqa: PLC0415

    if isinstance(failure, ImportError | HoldfastError):
        frames = author_frames(extract_tb(failure.__traceback__))
        where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else str(path)
        return f"{where}: {failure}"
    return f"{path} cannot be loaded\n{format_failure(failure).partition(LEFT_OUT)[0]}"
