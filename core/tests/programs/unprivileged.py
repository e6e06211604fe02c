"""Becomes nobody, and lets a shell read what it can of the environments of this process and of a guard.

    unprivileged.py readable|agent|guards

`readable` is a process as any other, `agent` one that made itself undumpable, `guards` is what stands between an agent
and its command. What the shell could read is on stdout. Everything is loaded before: nobody may read less than root.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

from holdfast.subprocesses import guard
from holdfast.subprocesses.undumpable import PR_SET_DUMPABLE, make_undumpable

READ = 'for pid in {pids}; do tr "\\0" "\\n" < /proc/$pid/environ | grep SECRET; done; echo looked'


def main() -> None:
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    # Whoever changes users is undumpable; a program that is started is not.
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
    if sys.argv[1] == "guards":
        leash, _held = os.pipe()
        parents = "$PPID $(cut -d ' ' -f 4 /proc/$PPID/stat)"
        sys.argv = ["guard.py", str(leash), "/bin/sh", "-c", READ.format(pids=parents)]
        sys.exit(guard.main())
    if sys.argv[1] == "agent":
        make_undumpable()
    subprocess.run(["/bin/sh", "-c", READ.format(pids=os.getpid())], check=True, env={"PATH": os.environ["PATH"]})


main()
