"""A thread that touches files as another user: what that user may not read or write, it cannot either (H11).

On Linux every thread has its own identity for files. It is set by the system's calls themselves: those of the C library
would change the whole process.
"""

from __future__ import annotations

import os
import platform
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from holdfast.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast_app.sandbox.launcher import Identity

_SETGROUPS = {"x86_64": 116, "aarch64": 159, "riscv64": 159}
"""By machine, the number of the system's call."""


def is_available() -> bool:
    """Return whether this system has threads with identities of their own."""
    return sys.platform == "linux" and platform.machine() in _SETGROUPS


def threads_of(identity: Identity) -> ThreadPoolExecutor:
    """Return threads that touch files as a user of the system."""
    if not is_available():
        raise UsageError("files of other users can be served on Linux alone")
    return ThreadPoolExecutor(2, f"files of {identity.name}", initializer=_become, initargs=(identity,))


def run_as(identity: Identity, work: Callable[[], None]) -> None:
    """Do something that touches files as a user of the system, and wait for its end."""
    with ThreadPoolExecutor(1, initializer=_become, initargs=(identity,)) as threads:
        threads.submit(work).result()


def _become(identity: Identity) -> None:
    import ctypes  # noqa: PLC0415

    libc = ctypes.CDLL(None, use_errno=True)
    groups = (ctypes.c_uint32 * len(identity.groups))(*identity.groups)
    if libc.syscall(_SETGROUPS[platform.machine()], len(identity.groups), groups) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    libc.setfsgid(identity.gid)
    libc.setfsuid(identity.uid)
    if libc.setfsuid(-1) != identity.uid or libc.setfsgid(-1) != identity.gid:
        raise PermissionError("the thread could not become another user")
