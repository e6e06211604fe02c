"""Tries the known ways out of a sandbox, from the inside; a program of its own.

    sandbox_attacks.py HOST_PID KEY

HOST_PID is a process outside, KEY the number of a key in the keyring of the session outside. Prints one line of JSON
for each attempt: its name, and what it won; null if it won nothing. No attempt that succeeds does any harm: what is
written is what was there before.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

HOST_PID, KEY = int(sys.argv[1]), int(sys.argv[2])

LIBC = ctypes.CDLL(None, use_errno=True)
NUMBERS = {
    "x86_64": {"keyctl": 250, "init_module": 175, "bpf": 321, "name_to_handle_at": 303, "open_by_handle_at": 304},
    "aarch64": {"keyctl": 219, "init_module": 105, "bpf": 280, "name_to_handle_at": 264, "open_by_handle_at": 265},
}
CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_RDONLY, MS_REMOUNT, MS_BIND = 1, 32, 4096
PTRACE_ATTACH, PTRACE_DETACH = 16, 17
TIOCSTI = 0x5412


def call(name: str, *arguments: object) -> int:
    """Make a call of the system by its number; -1 if it is refused."""
    number = NUMBERS.get(platform.machine(), {}).get(name)
    return -1 if number is None else LIBC.syscall(number, *arguments)


def won(result: int) -> str | None:
    return "the system allowed it" if result >= 0 else None


def be_root() -> str | None:
    seen = {*os.getresuid(), *os.getresgid(), *os.getgroups()}
    for become in (os.setuid, os.setgid):
        with suppress(OSError):
            become(0)
            return "became root"
    return "is root" if 0 in seen else None


def have_capabilities() -> str | None:
    lines = [line.split() for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("Cap")]
    held = [name for name, value in lines if int(value, 16)]
    return ", ".join(held) or None


def gain_privileges() -> str | None:
    """A program that runs as its owner would give them."""
    if "NoNewPrivs:\t1" not in Path("/proc/self/status").read_text():
        return "programs that run as their owner do"
    marked = [path for path in Path("/usr/bin").iterdir() if path.is_file() and path.stat().st_mode & stat.S_ISUID]
    for path in marked:
        if (
            path.name == "su"
            and subprocess.run([path, "-c", "true"], input=b"", capture_output=True, check=False).returncode == 0
        ):
            return "su gave root"
    return None


def write_core_pattern() -> str | None:
    path = Path("/proc/sys/kernel/core_pattern")
    return written(path)


def written(path: Path) -> str | None:
    """Write what stands there already."""
    with suppress(OSError):
        before = path.read_bytes()
        with path.open("r+b", buffering=0) as file:
            file.write(before)
        return f"wrote {path}"
    return None


def write_settings() -> str | None:
    for directory, _, names in os.walk("/proc/sys"):
        for name in names:
            with suppress(OSError):
                os.close(os.open(f"{directory}/{name}", os.O_WRONLY))
                return f"{directory}/{name} is open for writing"
    return None


def write_kernel_files() -> str | None:
    places = ("/proc/sysrq-trigger", "/proc/irq", "/proc/fs", "/proc/bus", "/proc/1/oom_score_adj")
    for place in places:
        files = [place] if not Path(place).is_dir() else [str(path) for path in Path(place).rglob("*")]
        for path in files:
            with suppress(OSError):
                os.close(os.open(path, os.O_WRONLY))
                if path != "/proc/1/oom_score_adj":
                    return f"{path} is open for writing"
    return None


def read_kernel_memory() -> str | None:
    for path in ("/proc/kcore", "/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg", "/proc/kmsg", "/proc/keys"):
        with suppress(OSError), Path(path).open("rb", buffering=0) as file:
            if file.read(16):
                return f"read {path}"
    return None


def see_sys() -> str | None:
    return "/sys is there" if Path("/sys/kernel").exists() else None


def mount_something() -> str | None:
    home = os.environ["HOME"].encode()
    for source, kind in ((b"none", b"tmpfs"), (b"none", b"proc"), (b"none", b"sysfs"), (b"none", b"cgroup2")):
        if LIBC.mount(source, home, kind, 0, None) == 0:
            return f"mounted {kind.decode()}"
    return won(LIBC.mount(b"/usr", home, None, MS_BIND, None))


def uncover_settings() -> str | None:
    if LIBC.mount(None, b"/proc/sys", None, MS_REMOUNT | MS_BIND, None) == 0:
        return "mounted /proc/sys for writing"
    return won(LIBC.umount2(b"/proc/sys", 2))


def write_system() -> str | None:
    for path in ("/usr/bin/holdfast-was-here", "/etc/holdfast-was-here", "/lib/holdfast-was-here"):
        with suppress(OSError):
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT))
            if not path.startswith("/etc"):  # that directory is the sandbox's own
                return f"made {path}"
    for path in ("/etc/passwd", "/etc/hosts", "/usr/bin/env"):
        with suppress(OSError):
            os.close(os.open(path, os.O_WRONLY))
            return f"{path} is open for writing"
    return None


def make_namespaces() -> str | None:
    """In one of its own a process has all capabilities, and with them most of the kernel to attack."""
    for kind in (CLONE_NEWUSER, CLONE_NEWUSER | CLONE_NEWNS, CLONE_NEWNS):
        if in_child(lambda kind=kind: LIBC.unshare(kind)):
            return f"made a namespace ({kind:#x})"
    return None


def in_child(attempt: Callable[[], int]) -> bool:
    """Return whether an attempt succeeds in a process of its own."""
    pid = os.fork()
    if pid == 0:
        os._exit(0 if attempt() >= 0 else 1)
    return os.waitpid(pid, 0)[1] == 0


def enter_namespaces() -> str | None:
    for pid in (1, HOST_PID):
        for kind in ("mnt", "user", "pid", "ipc"):
            theirs, ours = Path(f"/proc/{pid}/ns/{kind}"), Path(f"/proc/self/ns/{kind}")
            with suppress(OSError):
                fd = os.open(theirs, os.O_RDONLY)
                if theirs.readlink() != ours.readlink() and in_child(lambda fd=fd: LIBC.setns(fd, 0)):
                    return f"entered {kind} of {pid}"
    return None


def change_root() -> str | None:
    with suppress(OSError):
        os.chroot(os.environ["HOME"])
        return "changed the root"
    return won(LIBC.syscall(155, b"/tmp", b"/tmp")) if platform.machine() == "x86_64" else None


def climb_out() -> str | None:
    """By the descriptors and the roots of other processes."""
    for process in Path("/proc").glob("[0-9]*"):
        for link in (process / "root", process / "cwd", *list_of(process / "fd")):
            with suppress(OSError):
                if (link / "root/.bashrc").exists() or (link / "etc/shadow").exists():
                    return f"the machine is seen through {link}"
    return None


def list_of(directory: Path) -> list[Path]:
    try:
        return list(directory.iterdir())
    except OSError:
        return []


def make_devices() -> str | None:
    for name, kind, major, minor in (
        ("disk", stat.S_IFBLK, 8, 0),
        ("disk2", stat.S_IFBLK, 254, 0),
        ("mem", stat.S_IFCHR, 1, 1),
    ):
        for place in (os.environ["HOME"], "/tmp", "/dev"):
            with suppress(OSError):
                os.mknod(f"{place}/{name}", kind | 0o600, os.makedev(major, minor))
                return f"made {place}/{name}"
    return None


def open_devices() -> str | None:
    known = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "console"}
    for directory, _, names in os.walk("/dev"):
        for name in names:
            path = Path(directory, name)
            is_device = stat.S_ISBLK(path.lstat().st_mode) or stat.S_ISCHR(path.lstat().st_mode)
            if is_device and name not in known and directory != "/dev/pts":
                return f"sees {path}"
    return None


def open_by_handle() -> str | None:
    """A handle of a file names it without a path, also one that the sandbox does not show."""
    handle = (ctypes.c_ubyte * 136)()
    ctypes.cast(handle, ctypes.POINTER(ctypes.c_uint))[0] = 128
    mount = ctypes.c_int()
    if call("name_to_handle_at", -100, b"/usr", ctypes.byref(handle), ctypes.byref(mount), 0) != 0:
        return None
    fd = os.open("/usr", os.O_RDONLY)
    return won(call("open_by_handle_at", fd, ctypes.byref(handle), os.O_RDONLY))


def trace_host() -> str | None:
    if LIBC.ptrace(PTRACE_ATTACH, HOST_PID, None, None) == 0:
        LIBC.ptrace(PTRACE_DETACH, HOST_PID, None, None)
        return "attached to a process outside"
    with suppress(OSError):
        os.kill(HOST_PID, 0)
        return "may send signals to a process outside"
    return "sees a process outside" if Path(f"/proc/{HOST_PID}").exists() else None


def read_secrets_of_others() -> str | None:
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if b"HOLDFAST_TEST_SECRET" in (process / "environ").read_bytes():
                return f"read the environment of {process.name}"
    return None


def read_keys() -> str | None:
    held = ctypes.create_string_buffer(64)
    if call("keyctl", 11, KEY, held, 64) >= 0:
        return f"read {held.value!r}"
    for keyring in (-3, -4, -5):  # of the session, of the user, of the user's sessions
        if call("keyctl", 10, keyring, b"user", b"holdfast-test", 0) >= 0:
            return f"found a key in keyring {keyring}"
    return won(call("keyctl", 8, KEY, -2))


def load_code() -> str | None:
    if call("init_module", b"", 0, b"") >= 0:
        return "loaded a module"
    attributes = (ctypes.c_uint * 32)(17, 2)  # a program of a kind that only the mighty load
    return won(call("bpf", 5, ctypes.byref(attributes), ctypes.sizeof(attributes)))


def rule_machine() -> str | None:
    if LIBC.sethostname(platform.node().encode(), len(platform.node())) == 0:
        return "named the machine"
    LIBC.reboot(0)  # no such command: whoever may not is refused before it is looked at
    ctypes.set_errno(0)
    if LIBC.syscall(169 if platform.machine() == "x86_64" else 142, 0, 0, 0, 0) < 0 and ctypes.get_errno() == 22:
        return "may restart the machine"
    return won(LIBC.iopl(3)) if platform.machine() == "x86_64" else None


def type_for_user() -> str | None:
    """Put words into the terminal that the server was started from."""
    import fcntl

    for terminal in ("/dev/tty", "/dev/console"):
        with suppress(OSError):
            fd = os.open(terminal, os.O_RDWR)
            fcntl.ioctl(fd, TIOCSTI, b" ")
            return f"typed into {terminal}"
    return None


def see_others_files() -> str | None:
    for path in ("/root", "/home", "/var", "/etc/shadow", "/etc/ssh", "/run", "/boot", "/proc/1/root/etc/shadow"):
        with suppress(OSError):
            if not os.environ["HOME"].startswith(f"{path}/"):
                os.close(os.open(path, os.O_RDONLY))
                return f"opened {path}"
    return None


ATTEMPTS: tuple[Callable[[], str | None], ...] = (
    be_root, have_capabilities, gain_privileges, write_core_pattern, write_settings, write_kernel_files,
    read_kernel_memory, see_sys, mount_something, uncover_settings, write_system, make_namespaces, enter_namespaces,
    change_root, climb_out, make_devices, open_devices, open_by_handle, trace_host, read_secrets_of_others, read_keys,
    load_code, rule_machine, type_for_user, see_others_files,
)  # fmt: skip


def main() -> None:
    for attempt in ATTEMPTS:
        try:
            outcome = attempt()
        except OSError:
            outcome = None
        sys.stdout.write(json.dumps({"tried": attempt.__name__, "won": outcome}) + "\n")
        sys.stdout.flush()
    # What a user of the machine could run afterwards, with the rights of whoever owns it.
    left = Path(os.environ["HOME"], "left")
    left.write_bytes(Path("/bin/sh").read_bytes())
    left.chmod(0o4755)


main()
