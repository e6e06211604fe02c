"""Keeps other processes of the same user from reading this process (P10).

A command that an agent runs has the user's rights. On Linux these include reading `/proc/<pid>/environ` and the memory
of the user's other processes, so the agent's keys too, unless the agent says that it must not be dumped. It cannot be
debugged then, except by root, and leaves no core file.
"""

from __future__ import annotations

import sys

PR_SET_DUMPABLE = 4


def make_undumpable() -> None:
    """Let nobody but root read the environment and the memory of this process. Does nothing but on Linux.

    Programs that this process starts are readable again; they should not get secrets in the first place
    (`children.environment`).
    """
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415  (a few milliseconds, which other systems need not wait for)

        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
