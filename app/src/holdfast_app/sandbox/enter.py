"""Becomes a command of another user. A program of its own: imports nothing of ours.

    python -I -S enter.py SETTINGS COMMAND [ARGUMENT …]

SETTINGS is a JSON object, all of it optional: `limits` (by the system's names), `user` ([uid, gid, groups]), `cwd`,
`make` (a directory that is made if it is missing), `private` (whether the command sees no processes but its own),
`sandbox` (how many of the command's words are bubblewrap's: it is given the environment behind them), `read` and
`write` (what the sandbox shows, as pairs of a path here and its name there), `account` (a line of /etc/passwd there).
In paths of `write` no link is followed: whoever works there could have made it.

The environment of the command is in the variable `HOLDFAST_ENVIRONMENT`, as JSON. It is not our own environment: who
chooses the command's variables must not choose those of a program that is still allowed everything (`LD_PRELOAD`).
"""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

assert sys.platform != "win32"

ENVIRONMENT = "HOLDFAST_ENVIRONMENT"

PATH_ONLY: int = getattr(os, "O_PATH", os.O_RDONLY)
"""Open a file without the right to read it, on a system that can."""

CLONE_NEWNS, CLONE_NEWPID = 0x20000, 0x20000000
MS_PRIVATE_ALL = 0x40000 | 0x4000
MS_BIND_ALL = 0x1000 | 0x4000
MS_NOSUID_NODEV = 2 | 4
MS_NOSUID_NODEV_NOEXEC = 2 | 4 | 8
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 1, 4, 38

KEYCTL = {"x86_64": 250, "aarch64": 219, "riscv64": 219}
"""By machine, the number of the system's call."""
KEYCTL_JOIN_SESSION_KEYRING = 1

STAGE = "/tmp"  # noqa: S108  (every system has it, and what we mount there nobody else sees)

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
        shown = Shown(settings.get("read") or [], settings.get("write") or [])
        if settings.get("user") and settings.get("sandbox") is not None and system is not None:
            shown.stage(system)
        account = accounts(settings.get("account"))
        change_user(settings.get("user"))
        shown.check()
        if system is not None:
            leave_keyring(system)
            gain_nothing(system)
        if settings.get("make"):
            os.makedirs(settings["make"], mode=0o700, exist_ok=True)
        os.chdir(settings.get("cwd") or "/")
        os.umask(0o077)
        become(command, environment, settings.get("sandbox"), [*shown.words(), *account])
    except OSError as e:
        named = f" {e.filename}:" if e.filename else ""
        os.write(2, os.fsencode(f"the agent cannot be started for this user:{named} {e.strerror}\n"))
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


def leave_keyring(system: Any) -> None:
    """Leave the keyring of the server's session: the keys in it are had by all who share it, whatever user they are."""
    number = KEYCTL.get(os.uname().machine)
    if number is not None and system.syscall(number, KEYCTL_JOIN_SESSION_KEYRING, None) < 0:
        code = ctypes_errno()
        if code not in (errno.ENOSYS, errno.EPERM):  # the system has no keyrings, or none for us
            raise OSError(code, "The keyring of the server cannot be left")


def gain_nothing(system: Any) -> None:
    """See to it that no program that runs as its owner gives us what we do not have."""
    if system.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(errno.EPERM, "This system lets programs gain privileges")


def ctypes_errno() -> int:
    """Return the error of the last call of the system."""
    import ctypes  # noqa: PLC0415

    return ctypes.get_errno()


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


class Shown:
    """The files and directories that a sandbox shows, besides the system's."""

    def __init__(self, read: list[tuple[str, str]], write: list[tuple[str, str]]) -> None:
        self.read: list[tuple[str, str]] = read
        self.write: list[tuple[str, str]] = write

    def stage(self, system: Any) -> None:
        """Put them where another user finds them, whatever they lie in; nobody but us sees them there.

        What is opened here is what the sandbox shows: nobody can put something else in its place any more.
        """
        if system.unshare(CLONE_NEWNS) != 0 or system.mount(b"none", b"/", None, MS_PRIVATE_ALL, None) != 0:
            raise OSError(errno.EPERM, "This system makes no sandbox for another user")
        opened = [(os.open(path, PATH_ONLY), path) for path, _ in self.read if os.path.exists(path)]
        opened += [(open_without_links(path), path) for path, _ in self.write]
        if system.mount(b"none", os.fsencode(STAGE), b"tmpfs", MS_NOSUID_NODEV, b"mode=0755") != 0:
            raise OSError(errno.EPERM, "cannot be mounted anew", STAGE)
        staged: dict[str, str] = {}
        for number, (fd, path) in enumerate(opened):
            staged[path] = there = f"{STAGE}/{number}"
            if stat.S_ISDIR(os.fstat(fd).st_mode):
                os.mkdir(there)
            else:
                os.close(os.open(there, os.O_WRONLY | os.O_CREAT))
            if system.mount(b"/proc/self/fd/%d" % fd, os.fsencode(there), None, MS_BIND_ALL, None) != 0:
                raise OSError(errno.EPERM, "cannot be shown to the agent", path)
            os.close(fd)
        self.read = [(staged[path], name) for path, name in self.read if path in staged]
        self.write = [(staged[path], name) for path, name in self.write]

    def check(self) -> None:
        """Raise `OSError` for a directory that the user we are now cannot use."""
        for path, name in self.write:
            if not os.access(path, os.R_OK | os.X_OK):
                ours = f"{os.getuid()}:{os.getgid()}"
                raise OSError(
                    errno.EACCES, f"belongs to another user; give it to the agent's: chown -R {ours} {name}", name
                )

    def words(self) -> list[str]:
        """Return the words of bubblewrap which show them."""
        words: list[str] = []
        for path, name in self.read:
            words += ["--ro-bind-try", path, name]
        for path, name in self.write:
            words += ["--bind", path, name]
        return words


def open_without_links(path: str) -> int:
    """Open a directory in whose absolute path nothing is a link."""
    here = os.open("/", PATH_ONLY)
    for name in filter(None, path.split("/")):
        try:
            there = os.open(name, PATH_ONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
        except OSError as e:
            raise OSError(e.errno, e.strerror, path) from None
        finally:
            os.close(here)
        here = there
    return here


def accounts(line: str | None) -> list[str]:
    """Return the words of bubblewrap which add an account to those of the system: programs look up who they are."""
    if line is None:
        return []
    name, _, uid = line.split(":")[:3]
    words: list[str] = []
    for path, more in (("/etc/passwd", line), ("/etc/group", f"{name}:x:{uid}:")):
        try:
            with open(path, "rb") as file:
                known = file.read()
        except FileNotFoundError:
            known = b""
        words += ["--ro-bind-data", str(in_memory(known + os.fsencode(more) + b"\n")), path]
    return words


def in_memory(data: bytes) -> int:
    """Return a descriptor from which a program that we become reads some data: its arguments everybody can read."""
    assert sys.platform == "linux"
    held = os.memfd_create("given", 0)
    with open(held, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(held, 0, os.SEEK_SET)
    return held


def become(command: list[str], environment: dict[str, str], sandbox: int | None, more: list[str]) -> None:
    """Execute the command, with its environment; `more` are further words for the sandbox."""
    if sandbox is None:
        os.execvpe(command[0], command, environment)  # noqa: S606
    words = [*more, "--clearenv"]
    for name, value in environment.items():
        words += ["--setenv", name, value]
    held = in_memory(b"\0".join(map(os.fsencode, words)) + b"\0")
    given = [*command[:sandbox], "--args", str(held), *command[sandbox:]]
    os.execve(given[0], given, {"PATH": environment.get("PATH", os.defpath)})  # noqa: S606


if __name__ == "__main__":
    sys.exit(main())
