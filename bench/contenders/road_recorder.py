"""Records the calls of one package's functions, in all threads. As a program: runs `holdfast` under it.

``COMMANDS REPORTS ARGUMENT …``: two descriptors, then what `holdfast` is given. A line on the first descriptor
(``start NAME``, ``stop``, ``report``) is obeyed and answered by a line on the second; ``report`` is answered by all
recordings. An agent may start and stop recordings too.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from types import FrameType

Call: TypeAlias = tuple[str, str, str | None, int]
"""The file and the name of a function, the file of its caller, and the thread it was called in."""


class Recorder:
    """Notes calls while it is told to. What a generator or a coroutine does after a wait is a call as well."""

    def __init__(self, package: str) -> None:
        spec = find_spec(package)
        assert spec is not None and spec.origin is not None
        self._directory = os.path.dirname(spec.origin) + os.sep  # noqa: PTH120
        self._calls: list[Call] | None = None
        self.recordings: dict[str, list[Call]] = {}

    def watch_threads(self) -> None:
        """Watch this thread and all that are started later."""
        threading.setprofile(self._called)
        sys.setprofile(self._called)

    def start(self, name: str) -> None:
        """Begin a recording."""
        self._calls = self.recordings[name] = []

    def stop(self) -> None:
        """End a recording."""
        self._calls = None

    def report(self) -> str:
        """Return all recordings, with the files as paths in the package."""
        skipped = len(self._directory)
        named = {
            name: [(file[skipped:], function, caller and caller[skipped:], at) for file, function, caller, at in calls]
            for name, calls in self.recordings.items()
        }
        return json.dumps(named)

    def obey(self, commands: int, reports: int) -> None:
        """Do what is said on a descriptor, and answer on another."""
        with os.fdopen(commands) as lines:
            for line in lines:
                what, *name = line.split()
                if what == "start":
                    self.start(name[0])
                elif what == "stop":
                    self.stop()
                os.write(reports, (self.report() if what == "report" else "done").encode() + b"\n")

    def _called(self, frame: FrameType, event: str, _: object) -> None:
        calls, code = self._calls, frame.f_code
        if calls is None or event != "call" or not code.co_filename.startswith(self._directory):
            return
        caller = frame.f_back.f_code.co_filename if frame.f_back is not None else ""
        inside = caller if caller.startswith(self._directory) else None
        calls.append((code.co_filename, code.co_qualname, inside, threading.get_ident()))


if __name__ == "__main__":
    sys.modules["road_recorder"] = sys.modules["__main__"]  # for agents that import it
    recorder = Recorder("holdfast")
    descriptors = int(sys.argv[1]), int(sys.argv[2])
    threading.Thread(target=recorder.obey, args=descriptors, daemon=True).start()
    recorder.watch_threads()
    from holdfast_app.cli.main import main

    sys.argv[1:] = sys.argv[3:]
    sys.exit(main())
