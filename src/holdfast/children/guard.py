"""Runs a command and outlives it just long enough to leave nothing behind. A program of its own: no imports of ours.

    python -I -S guard.py LEASH COMMAND [ARGUMENT …]

LEASH is the reading end of a pipe whose other end is held by whoever started us. A `T` on it asks the command to
terminate; its end, which comes by itself when the holder dies, kills the command and everything it started. So does
the exit of the command: daemons it left behind go with it. We exit as it did, 128 + n for signal n.
"""

import os
import select
import signal
import sys
import time

assert sys.platform != "win32"  # where nobody starts it

PR_SET_CHILD_SUBREAPER = 36

KILL_SECONDS = 5.0
"""What has not gone this long after it was killed cannot be: it belongs to another user, or the kernel holds it."""


def main() -> int:
    """Run the command; return what we should exit with."""
    leash, command = int(sys.argv[1]), sys.argv[2:]
    os.set_inheritable(leash, False)  # noqa: FBT003
    become_subreaper()
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write)
    signal.signal(signal.SIGCHLD, ignore)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # our holder decides, by the leash
    restored = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD}
    try:
        child = os.posix_spawn(command[0], command, os.environ, setpgroup=0, setsigdef=restored)
    except OSError as e:
        sys.stderr.write(f"cannot start {command[0]}: {e.strerror}\n")
        return 127
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nowhere, fd)  # or the command's own end of its output would never be seen
    poll = select.poll()
    poll.register(leash, select.POLLIN)
    poll.register(wake_read, select.POLLIN)
    status = None
    while status is None:
        for fd, _ in poll.poll():
            if fd == wake_read:
                os.read(wake_read, 512)
                status = reap(child)
            elif os.read(leash, 1) == b"T":
                signal_group(child, signal.SIGTERM)
            else:
                status = kill_all(child)
                break
    kill_all(child)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def ignore(_number: int, _frame: object) -> None:
    """Do nothing: what counts is that the wake-up pipe was written to."""


def become_subreaper() -> None:
    """Make processes that lose their parent ours, so that none can slip away. Linux only."""
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415

        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def reap(child: int) -> int | None:
    """Collect whoever exited; return the command's status if it is among them."""
    status = None
    try:
        while True:
            pid, how = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == child:
                status = how
    except ChildProcessError:
        pass
    return status


def kill_all(child: int) -> int:
    """Kill the command and all its descendants, whatever groups and sessions they made. Return its status."""
    status = signal.SIGKILL.value
    signal_group(child, signal.SIGKILL)
    deadline = time.monotonic() + KILL_SECONDS
    while time.monotonic() < deadline:
        for pid in descendants(os.getpid()):
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
        try:
            while True:
                pid, how = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                if pid == child:
                    status = how
        except ChildProcessError:
            break
        time.sleep(0.002)
    return status


def signal_group(child: int, number: int) -> None:
    """Send a signal to the command's process group, if any of it is left."""
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


if __name__ == "__main__":
    sys.exit(main())
