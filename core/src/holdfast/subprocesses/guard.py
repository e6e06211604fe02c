"""Runs a command, and kills everything it started when it ends. A program of its own: imports nothing of ours.

    python -I -S guard.py LEASH COMMAND [ARGUMENT …]

LEASH is the reading end of a pipe whose other end is held by whoever started us. A `T` on it asks the command to
terminate. Its end, which comes by itself when the holder dies, kills the command and everything it started. So does
the exit of the command: daemons that it left behind are killed with it. We exit as the command did, 128 + n for
signal n.

On Linux two processes do this, one the child of the other, because a command can kill or stop its guard (P8). The
inner guard starts the command. The outer guard continues an inner one that was stopped, and kills everything if it
was killed; the inner one does so if the outer one was killed. The kernel continues both when their parent dies, so a
stopped guard does its work when the holder is gone, and kills the command when the inner guard dies. What remains: a
command that kills both guards at once leaves its own children behind. No process can be kept from killing another of
the same user.
"""

import os
import select
import signal
import sys
import time

assert sys.platform != "win32"

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36

KILL_SECONDS = 5.0
"""A process that is still there so long after it was killed cannot be: another user's, or held by the kernel."""

GRACE_SECONDS = 1.0
"""How long the inner guard may take to kill everything before the outer one does it."""

IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""Our holder decides when we end, by the leash."""

RESTORED = (*IGNORED, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD, signal.SIGCONT)
"""The command gets these as every program does."""


def main() -> int:
    """Run the command; return the status to exit with."""
    leash, command = int(sys.argv[1]), sys.argv[2:]
    os.set_inheritable(leash, False)  # noqa: FBT003
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    if sys.platform != "linux":
        return guard(leash, command, os.getppid())
    prctl(PR_SET_DUMPABLE, 0)  # our environment is the command's, and may hold secrets (P10)
    prctl(PR_SET_CHILD_SUBREAPER, 1)  # processes that lose their parent become ours, so that none slips away
    prctl(PR_SET_PDEATHSIG, signal.SIGCONT)
    outer = os.getpid()
    inner = os.fork()
    if inner == 0:
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        prctl(PR_SET_PDEATHSIG, signal.SIGCONT)
        os._exit(guard(leash, command, outer))
    return guard_the_guard(leash, inner)


def guard(leash: int, command: list[str], parent: int) -> int:
    """Start the command and wait for its end, for that of the leash, or for that of our parent."""
    wake = wake_on(signal.SIGCHLD, signal.SIGCONT)
    child = start(command)
    close_standard_streams()
    poll = select.poll()
    poll.register(leash, select.POLLIN)
    poll.register(wake, select.POLLIN)
    status = None
    while status is None:
        for fd, _ in poll.poll():
            if fd == wake:
                os.read(wake, 512)
                status = reap(child) if os.getppid() == parent else kill_group(child)
            elif os.read(leash, 1) == b"T":
                signal_group(child, signal.SIGTERM)
            else:
                status = kill_group(child)
            if status is not None:
                break
    kill_group(child)
    return exit_code(status)


def guard_the_guard(leash: int, inner: int) -> int:
    """Wait for the end of the inner guard, and do its work if it cannot."""
    wake = wake_on(signal.SIGCHLD, signal.SIGCONT)
    close_standard_streams()
    poll = select.poll()
    poll.register(leash, 0)  # only its end: what is written to it is for the inner guard
    poll.register(wake, select.POLLIN)
    deadline = None
    while True:
        # Looked at before each wait: an inner guard whose command is quick may be gone before we could be woken.
        status = reap(inner, keep_running=True)
        if status is None and deadline is not None and time.monotonic() > deadline:
            status = kill_all(inner)
        if status is not None:
            kill_all(inner)  # what it left behind is ours now
            return exit_code(status)
        for fd, _ in poll.poll(None if deadline is None else 20):
            if fd == wake:
                os.read(wake, 512)
            else:
                poll.unregister(leash)
                deadline = time.monotonic() + GRACE_SECONDS


def start(command: list[str]) -> int:
    """Start the command in a process group of its own; return its pid."""
    guard_pid = os.getpid()
    child = os.fork()
    if child != 0:
        return child
    try:
        os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        for number in RESTORED:
            signal.signal(number, signal.SIG_DFL)
        if sys.platform == "linux":
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != guard_pid:
                os._exit(127)
        os.execve(command[0], command, os.environ)  # noqa: S606
    except OSError as e:
        os.write(2, os.fsencode(f"cannot start {command[0]}: {e.strerror}\n"))
    os._exit(127)


def wake_on(*numbers: int) -> int:
    """Return a descriptor that becomes readable with each of these signals."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for number in numbers:
        signal.signal(number, ignore)
    return read


def ignore(_number: int, _frame: object) -> None:
    """Do nothing: the descriptor of `wake_on` was written to."""


def close_standard_streams() -> None:
    """Let go of the command's pipes: as long as we hold them, nobody sees that the command has closed them."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nowhere, fd)
    os.close(nowhere)


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process. Linux only."""
    import ctypes  # noqa: PLC0415

    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def reap(child: int, *, keep_running: bool = False) -> int | None:
    """Collect whoever exited; return the status of the child if it has. With `keep_running` it cannot be stopped."""
    status = None
    try:
        while True:
            pid, how = os.waitpid(-1, os.WNOHANG | (os.WUNTRACED if keep_running else 0))
            if pid == 0:
                break
            if os.WIFSTOPPED(how):
                os.kill(pid, signal.SIGCONT)
            elif pid == child:
                status = how
    except ChildProcessError:
        pass
    return status


def kill_group(child: int) -> int:
    """Kill the child's process group, then all our descendants. Return the child's status."""
    signal_group(child, signal.SIGKILL)
    return kill_all(child)


def kill_all(child: int) -> int:
    """Kill all our descendants, whatever groups and sessions they made. Return the child's status."""
    status = signal.SIGKILL.value
    deadline = time.monotonic() + KILL_SECONDS
    while time.monotonic() < deadline:
        try:
            while True:
                pid, how = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                if pid == child:
                    status = how
        except ChildProcessError:
            break
        for pid in descendants(os.getpid()):
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
        time.sleep(0.002)
    return status


def signal_group(child: int, number: int) -> None:
    """Send a signal to the child's process group, if any of it is left."""
    try:
        os.killpg(child, number)
    except (ProcessLookupError, PermissionError):
        pass


def descendants(root: int) -> list[int]:
    """List the processes below a process. Empty where there is no /proc to read them from."""
    children: dict[int, list[int]] = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    for name in names:
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as stat:
                    parent = int(stat.read().rpartition(b")")[2].split()[1])
            except (OSError, IndexError, ValueError):
                continue
            children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    level = [root]
    while level:
        level = [child for parent in level for child in children.get(parent, [])]
        found += level
    return found


def exit_code(status: int) -> int:
    """Return the exit status that says how a process ended."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
