"""Starts a family through Holdfast, passes its pids on, and then ends as it is told, without closing anything.

holder.py return|raise|_exit|wait [how the family behaves]
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.transport import spawn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.errors import ConnectionLost
    from holdfast.transport import Line


class Told:
    def __init__(self) -> None:
        self.line: asyncio.Future[Line] = asyncio.get_running_loop().create_future()

    def lines_received(self, lines: Sequence[Line]) -> None:
        self.line.set_result(lines[0])

    def input_ended(self, reason: ConnectionLost | None) -> None: ...


async def main() -> None:
    # Any handler of the loop's wakes it for all signals. Without one, Python may sleep through a SIGINT that comes just
    # before it begins to wait.
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, lambda: None)
    transport = await spawn(sys.executable, str(Path(__file__).with_name("family.py")), (sys.argv[2:] or ["ignore"])[0])
    transport.open(told := Told())
    line = await told.line
    assert isinstance(line, bytes)
    os.write(1, line[:-1] + b", %d]\n" % transport.pid)
    match sys.argv[1]:
        case "return":
            return
        case "raise":
            raise RuntimeError("on purpose")
        case "_exit":
            os._exit(0)
        case _:
            await asyncio.Event().wait()


asyncio.run(main())
