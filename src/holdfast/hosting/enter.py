"""Becomes a command of another user. A program of its own: imports nothing of ours.

    python -I -S enter.py SETTINGS COMMAND [ARGUMENT …]

SETTINGS is a JSON object, all of it optional: `limits` (by the system's names), `user` ([uid, gid, groups]), `cwd`,
`make` (a directory that is made if it is missing), `private` (whether the command sees no processes but its own),
`sandbox` (how many of the command's words are bubblewrap's: it is given the environment behind them).

The environment of the command is in the variable `HOLDFAST_ENVIRONMENT`, as JSON. It is not our own environment: who
chooses the command's variables must not choose those of a program that is still allowed everything (`LD_PRELOAD`).
"""

from __future__ import annotations

import errno
import json
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

assert sys.platform != "win32"

ENVIRONMENT = "HOLDFAST_ENVIRONMENT"

CLONE_NEWNS, CLONE_NEWPID = 0x20000, 0x20000000
MS_PRIVATE_ALL = 0x40000 | 0x4000
MS_NOSUID_NODEV_NOEXEC = 2 | 4 | 8
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 1, 4, 38

IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""The command is asked to end, and we end when it has."""


def main() -> int:
    """Enter, and become the command; return a status where that is not possible."""
    settings, command = json.loads(sys.argv[1]), sys.argv[2:]
    environment = json.loads(os.environ.pop(ENVIRONMENT, "{}"))
    system: Any = None
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415  (now: another user may not be able to read it)

        system = ctypes.CDLL(None, use_errno=True)
    try:
        set_limits(settings.get("limits") or {})
        if settings.get("private") and system is not None:
            hide_other_processes(system)
        change_user(settings.get("user"))
        if system is not None:
            system.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if settings.get("make"):
            os.makedirs(settings["make"], mode=0o700, exist_ok=True)
        os.chdir(settings.get("cwd") or "/")
        os.umask(0o077)
        become(command, environment, settings.get("sandbox"))
    except OSError as e:
        named = f" {e.filename}" if e.filename else ""
        os.write(2, os.fsencode(f"the agent cannot be started for this user:{named}: {e.strerror}\n"))
    return 126


def set_limits(limits: dict[str, int]) -> None:
    """Hold this process, and what it becomes, to limits; never to more than it has."""
    import resource  # noqa: PLC0415

    for name, value in limits.items():
        which = getattr(resource, name, None)
        if which is not None:
            hard = resource.getrlimit(which)[1]
            allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(which, (allowed, allowed))


def change_user(user: tuple[int, int, list[int]] | None) -> None:
    """Become another user for good, with its groups alone."""
    if user is not None:
        uid, gid, groups = user
        os.setgroups(groups)
        os.setgid(gid)
        os.setuid(uid)


def hide_other_processes(system: Any) -> None:
    """Go on as a process that sees only its own descendants; whoever called stays behind and waits for it.

    Where the system does not let us, the names of other processes are seen; their memory and environment are not.
    """
    if system.unshare(CLONE_NEWNS | CLONE_NEWPID) != 0:
        os.write(2, b"the agent sees the names of other processes: this system does not let us hide them\n")
        return
    wait_for(os.fork(), first=False)
    system.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    system.mount(b"none", b"/", None, MS_PRIVATE_ALL, None)
    if system.mount(b"proc", b"/proc", b"proc", MS_NOSUID_NODEV_NOEXEC, None) != 0:
        raise OSError(errno.EPERM, "cannot be mounted anew", "/proc")
    wait_for(os.fork(), first=True)


def wait_for(child: int, *, first: bool) -> None:
    """Wait for the end of a child and exit as it did; return at once in the child itself.

    The first process of a namespace collects whoever lost its parent; with it all others end.
    """
    if child == 0:
        return
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nowhere, fd)
    while True:
        pid, how = os.waitpid(-1 if first else child, 0)
        if pid == child:
            code = os.waitstatus_to_exitcode(how)
            os._exit(code if code >= 0 else 128 - code)


def become(command: list[str], environment: dict[str, str], sandbox: int | None) -> None:
    """Execute the command, with its environment."""
    if sandbox is None:
        os.execvpe(command[0], command, environment)  # noqa: S606
    words = ["--clearenv"]
    for name, value in environment.items():
        words += ["--setenv", name, value]
    # By a descriptor: the arguments of a process are read by everybody.
    assert sys.platform == "linux"
    held = os.memfd_create("environment", 0)
    os.write(held, b"\0".join(map(os.fsencode, words)) + b"\0")
    os.lseek(held, 0, os.SEEK_SET)
    given = [*command[:sandbox], "--args", str(held), *command[sandbox:]]
    os.execve(given[0], given, {"PATH": environment.get("PATH", os.defpath)})  # noqa: S606


if __name__ == "__main__":
    sys.exit(main())
