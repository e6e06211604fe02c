"""Linux's `openat2`: the kernel itself sees to it that a path stays beneath a directory while it resolves it.

Owns the system call and whether it is there. It knows no roots and decides nothing: errors come out as the kernel says
them. Elsewhere, and on kernels before 5.6, `safe_open` does the same in more steps.
"""

from __future__ import annotations

import errno
import os
import struct
import sys
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_NUMBER = 437  # the same on every architecture Python runs on but Alpha
_NO_MAGICLINKS = 0x02
_BENEATH = 0x08
_HOW = struct.Struct("=QQQ")  # struct open_how: flags, mode, resolve


def open_beneath(directory: int, path: str, flags: int) -> int:
    """Open a path relative to a directory; EXDEV if anything on the way leads out of it, EAGAIN if it cannot tell."""
    return _openat2(directory, path, flags, _BENEATH | _NO_MAGICLINKS)


@cache
def available() -> bool:
    """Return whether this kernel has the call, and whatever sandbox we are in lets it through."""
    if sys.platform != "linux":
        return False
    root = os.open("/", os.O_PATH | os.O_DIRECTORY)
    try:
        os.close(open_beneath(root, ".", os.O_PATH | os.O_DIRECTORY))
    except OSError:
        return False
    finally:
        os.close(root)
    return True


def _openat2(directory: int, path: str, flags: int, resolve: int) -> int:
    assert sys.platform != "win32"
    call, get_errno = _syscall()
    how = _HOW.pack(flags | os.O_CLOEXEC, 0, resolve)
    while True:
        fd = call(_NUMBER, directory, os.fsencode(path), how, _HOW.size)
        if fd >= 0:
            return fd
        number = get_errno()
        if number != errno.EINTR:
            raise OSError(number, os.strerror(number), path)


@cache
def _syscall() -> tuple[Callable[..., int], Callable[[], int]]:
    import ctypes  # noqa: PLC0415  (only who opens files pays for it)

    call = ctypes.CDLL(None, use_errno=True).syscall
    call.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t)
    call.restype = ctypes.c_long
    return call, ctypes.get_errno
