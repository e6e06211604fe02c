"""The sandbox of bubblewrap for one principal: what of this machine an agent sees, as whom, and nothing else (H11).

In it an agent has no capability and can get none, is never root, makes no further user namespaces, and sees no
setting of the kernel that it could write. A server that runs as root gives each principal a user id of its own, which
no account of the machine has: a file that the agent leaves on the disk is never root's, even if it runs as its owner.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

from holdfast.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SYSTEM = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/alternatives", "/etc/ca-certificates",
    "/etc/crypto-policies", "/etc/group", "/etc/hosts", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
    "/etc/localtime", "/etc/nsswitch.conf", "/etc/passwd", "/etc/pki", "/etc/resolv.conf", "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
)  # fmt: skip
"""What programs need to run and to reach the network. Not the whole of /etc: keys of servers lie there."""

_READ_ONLY = ("/proc/sys",)
"""Settings of the kernel. A sandbox in which they could be written is not started."""

_READ_ONLY_IF_THERE = ("/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi", "/proc/scsi")

_HIDDEN_IF_THERE = (
    "/proc/kcore", "/proc/keys", "/proc/key-users", "/proc/kmsg", "/proc/latency_stats", "/proc/sched_debug",
    "/proc/timer_list", "/proc/timer_stats",
)  # fmt: skip
"""What tells of the whole machine."""

FIRST_USER, USERS = 0x7000_0000, 0x0FFF_0000
"""User ids that no system gives to anybody (systemd's list of ranges has them as unused)."""

_TRY = "cat /proc/self/status /proc/self/mountinfo"
_TRY_SECONDS = 60


def find_bubblewrap() -> str:
    """Return where bubblewrap is; raise `UsageError` if it is not installed, or too old."""
    program = shutil.which("bwrap")
    if program is None:
        raise UsageError("bubblewrap is not installed: install the package `bubblewrap`, or choose another launcher")
    known = subprocess.run([program, "--help"], capture_output=True, text=True, check=False)
    if "--disable-userns" not in known.stdout:
        raise UsageError("this bubblewrap is too old: install version 0.8 or newer, or choose another launcher")
    return program


def user_of(principal: str) -> int:
    """Return the user id that a principal's agent has in the sandbox of a server that runs as root."""
    drawn = int.from_bytes(hashlib.blake2b(principal.encode(errors="surrogatepass"), digest_size=8).digest(), "big")
    return FIRST_USER + drawn % USERS


def sandboxed(program: str, *, cwd: str) -> list[str]:
    """Return the words of bubblewrap that stand before a command; what else it sees is added when it is started.

    The command sees the system's programs, has a /tmp, processes, users and a /proc of its own, and the network of the
    machine.
    """
    words = [program, "--unshare-all", "--unshare-user", "--disable-userns", "--share-net", "--die-with-parent",
             "--new-session", "--cap-drop", "ALL", "--proc", "/proc", "--dev", "/dev",
             "--tmpfs", "/tmp"]  # noqa: S108  # fmt: skip
    for path in _READ_ONLY:
        words += ["--ro-bind", path, path]
    for path in _READ_ONLY_IF_THERE:
        words += ["--ro-bind-try", path, path]
    for path in filter(os.path.isfile, _HIDDEN_IF_THERE):
        words += ["--ro-bind", os.devnull, path]
    for path in SYSTEM:
        words += ["--ro-bind-try", path, path]
    return [*words, "--chdir", cwd]


def try_sandbox(command: Sequence[str], env: Mapping[str, str]) -> None:
    """Start what tells of the sandbox that it is in; raise `UsageError` if this system cannot have one that holds.

    `command` starts the command behind it in a sandbox, with the environment `env`.
    """
    try:
        tried = subprocess.run(
            [*command, "/bin/sh", "-c", _TRY],
            env=env, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            timeout=_TRY_SECONDS,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as e:
        raise _no_sandbox(str(e)) from None
    if tried.returncode != 0:
        raise _no_sandbox(tried.stderr.strip().splitlines()[-1] if tried.stderr.strip() else f"exit {tried.returncode}")
    if wrong := hole_in(tried.stdout):
        raise _no_sandbox(wrong)


def hole_in(seen: str) -> str | None:
    """Return what is wrong with a sandbox, by the status and the mounts of a process in it; None if nothing is."""
    status = dict(line.split(":\t", 1) for line in seen.splitlines() if ":\t" in line)
    if "0" in status.get("Uid", "0").split():
        return "the agent would be root"
    held = [name for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb") if int(status.get(name, "1"), 16)]
    if held:
        return f"the agent would have capabilities ({', '.join(held)})"
    if status.get("NoNewPrivs") != "1":
        return "the agent could gain privileges"
    mounts = dict(line.split()[4:6] for line in seen.splitlines() if " - " in line)
    for path in _READ_ONLY:
        if "ro" not in mounts.get(path, "").split(","):
            return f"{path} could be written"
    return "the agent would see /sys" if "/sys" in mounts else None


def _no_sandbox(why: str) -> UsageError:
    return UsageError(
        f"this system cannot run agents in a sandbox: {why}. Bubblewrap needs namespaces of users for those who are not"
        " root; choose another launcher if there are none"
    )
