"""Starts a command as `holdfast serve --bubblewrap` starts one, as root or as nobody.

    in_sandbox.py root|nobody PYTHON HOME READ COMMAND [ARGUMENT …]

PYTHON is one that nobody can start: ours may lie where root alone can look. HOME is the home of the principal, READ a
file that it may read. In the command's arguments `{key}` is the number of a key that this process has in the keyring of
its session, and `{pid}` is the number of this process.
"""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
import sys

from holdfast.errors import UsageError
from holdfast.workspace.allowed import AllowedDirectories
from holdfast_app.sandbox import Launcher

ADD_KEY = {"x86_64": 248, "aarch64": 217}
JOIN = {"x86_64": 250, "aarch64": 219}
SESSION_KEYRING = -3


def main() -> int:
    who, python, home, read, *command = sys.argv[1:]
    if who == "nobody" and os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        sys.executable = python
    os.environ["HOLDFAST_TEST_SECRET"] = "of the server"
    key = key_in_session()
    try:
        launcher = Launcher(sandbox=True, home=home, read=[read], directories=lambda _: AllowedDirectories([home]))
        getattr(launcher, "try_out", lambda: None)()
    except UsageError as e:
        sys.stdout.write(f"REFUSED: {e}\n")
        return 3
    filled = [word.replace("{key}", str(key)).replace("{pid}", str(os.getpid())) for word in command]
    prepared = launcher.prepare("ada", filled)
    return subprocess.run(prepared.command, env=prepared.env, cwd=prepared.cwd, check=False).returncode


def key_in_session() -> int:
    """Put a key into the keyring of this session; return its number, 0 if this system has no keys."""
    libc = ctypes.CDLL(None, use_errno=True)
    if platform.machine() not in ADD_KEY:
        return 0
    libc.syscall(JOIN[platform.machine()], 1, None)
    made = libc.syscall(ADD_KEY[platform.machine()], b"user", b"holdfast-test", b"a secret", 8, SESSION_KEYRING)
    return max(made, 0)


sys.exit(main())
