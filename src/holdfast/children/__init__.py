"""Processes we start, none of which outlives us (P8).

Between us and each process stands a guard (`guard.py`) that kills everything the process started once the process is
gone, or once we are, however we went. Where the system has no subreapers (macOS) a grandchild that made itself a
session leader escapes; on Windows there is no guard, and only the process itself is killed.
"""

from holdfast.children.child import Child, start

__all__ = ["Child", "start"]
