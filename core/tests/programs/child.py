"""A child that behaves badly in one way, named by its argument."""

from __future__ import annotations

import os
import signal
import sys
import time


def read_to_the_end() -> None:
    while os.read(0, 1 << 16):
        pass


def write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def leave(_number: int, _frame: object) -> None:
    sys.exit(5)


def main() -> int:
    match sys.argv[1]:
        case "flood stderr":
            for n in range(200):
                write(2, (b"%d " % n) * 10_000 + b"\n")
            write(2, b"the very last words\n")
            write(1, b"ready\n")
            read_to_the_end()
        case "flood stderr and die":
            write(2, b"x" * 1_000_000 + b"\nthe very last words\n")
            return 9
        case "die of a signal":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "last words":
            read_to_the_end()
            write(1, b"x" * 1_000_000 + b"\n")
            write(2, b"saved\n")
        case "wait for SIGTERM":
            signal.signal(signal.SIGTERM, leave)
            write(1, b"ready\n")
            while True:
                time.sleep(60)
        case "descriptors":
            write(1, " ".join(sorted(name for name in os.listdir("/proc/self/fd"))).encode() + b"\n")  # noqa: PTH208
            read_to_the_end()
        case "deaf":
            write(1, b"ready\n")
            while True:
                time.sleep(60)
        case "hang up":
            write(1, b"ready\n")
            os.close(1)
            read_to_the_end()
        case "close stdin, then fail":
            os.close(0)
            write(1, b"ready\n")
            time.sleep(1)
            return 4
        case "hang up, then fail":
            os.close(1)
            time.sleep(1)
            return 4
        case how:
            return int(how)
    return 0


sys.exit(main())
