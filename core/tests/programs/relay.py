"""Carries bytes between its own stdin and stdout and a socket, so that a test can hold both ends of a process."""

from __future__ import annotations

import os
import socket
import sys
import threading


def carry(source: int, target: int) -> None:
    while chunk := os.read(source, 1 << 16):
        view = memoryview(chunk)
        while view:
            view = view[os.write(target, view) :]


def to_stdout(connection: socket.socket) -> None:
    try:
        carry(connection.fileno(), 1)
    finally:
        os._exit(0)  # the other end is closed: so is our stdout, and nobody needs us


with socket.socket(socket.AF_UNIX) as connected:
    connected.connect(sys.argv[1])
    threading.Thread(target=to_stdout, args=[connected], daemon=True).start()
    carry(0, connected.fileno())
