"""Becomes an agent, and writes down every line that goes to it and comes from it.

``record.py DIRECTORY COMMAND…``: whoever starts this has started the agent itself, and can kill it; a process beside it
carries the bytes. Lines to the agent are noted with ``<``, lines from it with ``>``, in a file of their own, which is
locked until the agent is gone; what the agent writes to stderr goes to another.
"""

from __future__ import annotations

import fcntl
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO


class Recording:
    """Where lines are written down, by two threads."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._lock = threading.Lock()

    def carry(self, mark: bytes, source: int, target: int) -> None:
        """Carry whole lines to the end; each is written down before it is passed on.

        Who is killed in mid-sentence while its pipe is full leaves half a line, which client libraries complain of.
        """
        with open(source, "rb") as lines, open(target, "wb") as out:
            for line in lines:
                if not line.endswith(b"\n"):
                    break
                with self._lock:
                    self._file.write(mark + line)
                    self._file.flush()
                out.write(line)
                out.flush()


def carry_in(recording: Recording, to_agent: int) -> None:
    with suppress(ConnectionError):  # the agent was killed
        recording.carry(b"<", 0, to_agent)


def carry_both(recording: Recording, to_agent: int, from_agent: int) -> None:
    threading.Thread(target=carry_in, args=(recording, to_agent), daemon=True).start()
    with suppress(ConnectionError):
        recording.carry(b">", from_agent, 1)
    os._exit(0)  # the agent is gone, or the client: nobody needs us


def main(directory: Path, command: list[str]) -> None:
    (agent_reads, to_agent), (from_agent, agent_writes) = os.pipe(), os.pipe()
    name = f"{len(list(directory.glob('*.frames')))}"
    file = (directory / f"{name}.frames").open("xb")
    fcntl.flock(file, fcntl.LOCK_EX)
    if (child := os.fork()) == 0:
        if os.fork() == 0:  # twice, so that the agent has no child it does not know
            os.close(agent_reads)
            os.close(agent_writes)
            carry_both(Recording(file), to_agent, from_agent)
        os._exit(0)
    os.waitpid(child, 0)
    os.dup2(agent_reads, 0)
    os.dup2(agent_writes, 1)
    os.dup2(os.open(directory / f"{name}.stderr", os.O_WRONLY | os.O_CREAT, 0o600), 2)
    os.execvp(command[0], command)


main(Path(sys.argv[1]), sys.argv[2:])
