"""Somebody else on this machine: becomes nobody, then connects to a socket, or listens at one.

    stranger.py connect|listen PATH

Has to be started by root. What became of it is on stdout: the name of an error, ``cut off``, or ``listening``.
Everything is loaded before: nobody may read less than root.
"""

# ruff: noqa: T201

from __future__ import annotations

import errno
import os
import socket
import sys


def main() -> None:
    what, path = sys.argv[1:]
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    with socket.socket(socket.AF_UNIX) as used:
        if what == "listen":
            used.bind(path)
            used.listen()
            print("listening", flush=True)
            sys.stdin.read()
            return
        used.settimeout(60)
        try:
            used.connect(path)
            used.sendall(b'{"jsonrpc":"2.0","id":1,"method":"hello","params":{"version":1}}\n')
            print(used.recv(1_000) or "cut off")
        except OSError as e:
            print("cut off" if e.errno in (errno.EPIPE, errno.ECONNRESET) else errno.errorcode[e.errno or 0])


main()
