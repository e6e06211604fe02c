"""Has children of every kind, tells their pids on stdout as a line of JSON, and then behaves as it is told.

    family.py obey|ignore|exit|kill|stop|kill by a child|stop by a child

The last four kill or stop their guard. The children ignore every signal that can be ignored; each is a case of what
agents and their tools leave behind.
"""

from __future__ import annotations

import json
import os
import signal
import sys


def main() -> None:
    pids = [
        fork(rest),
        fork(lambda: (os.setpgid(0, 0), rest())),
        fork(lambda: (os.setsid(), rest())),
        *lineage(3),
        daemon(),
    ]
    os.write(1, json.dumps([os.getpid(), *pids]).encode() + b"\n")
    match sys.argv[1]:
        case "exit":
            os._exit(7)
        case "obey":
            while os.read(0, 1 << 16):
                pass
            os._exit(0)
        case "kill" | "stop" as what:
            os.kill(os.getppid(), signal.SIGKILL if what == "kill" else signal.SIGSTOP)
            rest()
        case "kill by a child" | "stop by a child" as what:
            guard = os.getppid()
            fork(lambda: (os.setsid(), os.kill(guard, signal.SIGKILL if what[0] == "k" else signal.SIGSTOP), rest()))
            rest()
        case _:
            rest()


def rest() -> None:
    """Do nothing, for ever, undisturbed."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    while True:
        signal.pause()


def fork(work: object) -> int:
    pid = os.fork()
    if pid == 0:
        assert callable(work)
        work()
    return pid


def lineage(generations: int) -> list[int]:
    """Have a child that has a child that has a child, and hear of all of them."""
    read, write = os.pipe()

    def beget(left: int) -> None:
        os.write(write, b"%d\n" % os.getpid())
        if left:
            fork(lambda: beget(left - 1))
        rest()

    fork(lambda: beget(generations - 1))
    with os.fdopen(read) as told:
        return [int(told.readline()) for _ in range(generations)]


def daemon() -> int:
    """Have a grandchild in a session of its own whose parent is gone, with nothing of ours open."""
    read, write = os.pipe()

    def detach() -> None:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.write(write, b"%d\n" % os.getpid())
        os.chdir("/")
        os.closerange(0, 100)
        rest()

    pid = fork(detach)
    os.waitpid(pid, 0)
    with os.fdopen(read) as told:
        return int(told.readline())


main()
