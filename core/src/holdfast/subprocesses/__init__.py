"""Processes that we start: none outlives us (P8), none reads our secrets (P10).

Between us and each process stands a guard (`guard.py`) that kills everything the process started once the process is
gone, or once we are. Where the system has no subreapers (macOS) a grandchild that made itself a session leader escapes;
on Windows there is no guard, and only the process itself is killed.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.subprocesses.child import Child, start

__all__ = ["Child", "start"]


def __getattr__(name: str) -> object:
    """Import what starts processes only where one is started: an agent that starts none should not wait for it."""
    if name in __all__:
        from holdfast.subprocesses import child  # noqa: PLC0415

        return getattr(child, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
