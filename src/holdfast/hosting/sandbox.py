"""The command line of bubblewrap for one principal: what of this machine an agent sees, and nothing else (H11)."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from holdfast.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

SYSTEM = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/alternatives", "/etc/ca-certificates",
    "/etc/crypto-policies", "/etc/group", "/etc/hosts", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
    "/etc/localtime", "/etc/nsswitch.conf", "/etc/passwd", "/etc/pki", "/etc/resolv.conf", "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
)  # fmt: skip
"""What programs need to run and to reach the network. Not the whole of /etc: keys of servers lie there."""


def find_bubblewrap() -> str:
    """Return where bubblewrap is; raise `UsageError` where it is not installed."""
    program = shutil.which("bwrap")
    if program is None:
        raise UsageError("bubblewrap is not installed: install the package `bubblewrap`, or choose another launcher")
    return program


def sandboxed(program: str, *, read: Iterable[str], write: Iterable[str], cwd: str) -> list[str]:
    """Return the words of bubblewrap that stand before a command.

    The command sees the system's programs and the directories `read`, writes to those of `write` and to a /tmp of its
    own, has processes, users and a /proc of its own, and the network of the machine.
    """
    words = [program, "--unshare-all", "--share-net", "--die-with-parent", "--new-session", "--cap-drop", "ALL",
             "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]  # noqa: S108  # fmt: skip
    for directory in (*SYSTEM, *read):
        words += ["--ro-bind-try", directory, directory]
    for directory in write:
        words += ["--bind", directory, directory]
    return [*words, "--chdir", cwd]
