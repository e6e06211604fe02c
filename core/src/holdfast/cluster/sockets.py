"""Unix sockets: where they are, that nobody but the user can connect, and what is left of dead processes.

An address is ``unix:PATH``. The directory of a socket can be entered by the user alone, and both ends look at whose
process is at the other. A socket gets its name when its process listens at it: one at which nobody does is that of a
process which died, and the next to leave removes it. A path that is too long for the system is replaced by one in a
directory of the user's below ``/tmp``, whose name every process works out in the same way.

There are no such sockets in Python on Windows; see `is_available`.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import stat
import struct
import sys
import time
from contextlib import suppress
from pathlib import Path

from holdfast.errors import NeighbourLost
from holdfast.transport.descriptors import PipeTransport

UNIX = "unix:"

STARTING = ".new"
"""How the name of a socket ends at which its process does not listen yet."""

YOUNG_SECONDS = 60.0
"""So long after it was made that may be so."""

BACKLOG = 128

LINE_BYTES = 64 << 20
"""An event is at most 12 MiB long, and its text is sent beside it."""

CONNECT_SECONDS = 3.0
"""So long it may take until a process accepts."""

PATH_BYTES = 100
"""Systems take 104 or 108 bytes, a zero behind them."""

_AF_UNIX: socket.AddressFamily = getattr(socket, "AF_UNIX", socket.AF_INET)
_XUCRED = struct.Struct("=IIh")
_LOCAL_PEERCRED = 1


def listen(address: str) -> socket.socket:
    """Listen at an address; raise `OSError` where that cannot be."""
    path = _path(address)
    _make_private_directory(path.parent)
    starting = path.with_suffix(STARTING)
    listening = socket.socket(_AF_UNIX, socket.SOCK_STREAM)
    try:
        starting.unlink(missing_ok=True)
        listening.bind(str(starting))
        starting.chmod(0o600)
        listening.listen(BACKLOG)
        starting.rename(path)
    except BaseException:
        listening.close()
        raise
    listening.settimeout(0.0)
    return listening


def stop_listening(listening: socket.socket, address: str) -> None:
    """Close a socket and remove its name."""
    listening.close()
    with suppress(OSError):
        _path(address).unlink()


def as_transport(connected: socket.socket) -> PipeTransport:
    """Return what carries lines over a socket."""
    fd = connected.detach()
    return PipeTransport(fd, os.dup(fd), limit=LINE_BYTES)


async def connect(address: str) -> socket.socket:
    """Connect to an address; raise `NeighbourLost` where nobody listens there, or not we are at the other end."""
    deadline = asyncio.get_running_loop().time() + CONNECT_SECONDS
    while True:
        connecting = socket.socket(_AF_UNIX, socket.SOCK_STREAM)
        try:
            connecting.settimeout(0.0)
            connecting.connect(str(_path(address)))  # it is there at once, or cannot be
            check_other_end(connecting)
        except BlockingIOError:  # more are waiting than the system lets wait
            connecting.close()
            if asyncio.get_running_loop().time() > deadline:
                raise NeighbourLost("it does not accept connections") from None
            await asyncio.sleep(0.02)
        except OSError as e:
            connecting.close()
            _remove_dead(address, e)
            raise NeighbourLost(f"it cannot be reached ({e.strerror or 'no answer'})") from None
        except BaseException:
            connecting.close()
            raise
        else:
            return connecting


def check_other_end(connected: socket.socket) -> None:
    """Raise `PermissionError` where the process at the other end of a Unix socket is another user's."""
    user = _user_at(connected)
    if user is not None and user not in (_own_user(), 0):
        raise PermissionError(errno.EPERM, "it belongs to another user")


def _user_at(connected: socket.socket) -> int | None:
    if sys.platform == "linux":
        credentials = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return struct.unpack("3i", credentials)[1]
    if sys.platform == "darwin":
        credentials = connected.getsockopt(0, _LOCAL_PEERCRED, 76)
        return _XUCRED.unpack_from(credentials)[1]
    return None


def _make_private_directory(path: Path) -> None:
    """Make a directory that only the user can enter; raise `PermissionError` where somebody else's is there."""
    path.mkdir(mode=0o700, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != _own_user():
        raise PermissionError(errno.EPERM, "it belongs to another user")
    if found.st_mode & 0o077:
        path.chmod(0o700)


def _remove_dead(address: str, error: OSError) -> None:
    """Remove a socket that nobody listens at: its process died."""
    if error.errno == errno.ECONNREFUSED:
        with suppress(OSError):
            _path(address).unlink()


def remove_left_over(address: str) -> None:
    """Remove the sockets beside one's own that processes which died have left."""
    with suppress(OSError):
        for path in list(_path(address).parent.iterdir()):
            if path.suffix == ".sock":
                _remove_if_dead(path)
            elif path.suffix == STARTING and time.time() - path.lstat().st_mtime > YOUNG_SECONDS:
                path.unlink()


def _remove_if_dead(path: Path) -> None:
    with socket.socket(_AF_UNIX, socket.SOCK_STREAM) as trying:
        trying.settimeout(0.0)
        try:
            trying.connect(str(path))
        except ConnectionRefusedError:
            with suppress(OSError):
                path.unlink()
        except OSError:
            return


def _path(address: str) -> Path:
    path = address.removeprefix(UNIX)
    if len(os.fsencode(path)) <= PATH_BYTES:
        return Path(path)
    from hashlib import sha256  # noqa: PLC0415  (few stores lie so deep)

    short = sha256(os.fsencode(path)).hexdigest()[:32]
    return Path(f"/tmp/holdfast-{_own_user()}/{short}.sock")  # noqa: S108  (whose directory that is, is looked at)


def _own_user() -> int:
    return 0 if sys.platform == "win32" else os.geteuid()
