"""An agent of `app.tests.support.checked_agent` on stdio: ``broken_agent.py FAULT FOLDER``, without FAULT the good
one."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent.parent.parent))

from app.tests.support.checked_agent import Filter, good_agent
from holdfast.agent.port import AuthorAgent
from holdfast.server import ClientConnection, Host
from holdfast.transport import MAX_LINE_BYTES, memory_pair


async def main() -> None:
    fault, folder = sys.argv[1], Path(sys.argv[2])
    between = Filter(fault, folder / "memory")
    ours, theirs = memory_pair()
    host = Host(AuthorAgent(good_agent()), store=str(folder / "sessions.db"))
    serving = asyncio.create_task(ClientConnection(host, theirs, is_only=True).run())

    class Out:
        def lines_received(self, lines: Any) -> None:
            for line in lines:
                between.give_line(line)

        def input_ended(self, reason: object) -> None: ...

    def write(line: bytes) -> None:
        sys.stdout.buffer.write(line + b"\n")
        sys.stdout.buffer.flush()

    between.to_client = write
    between.to_agent = ours.send
    ours.open(Out())
    reader = asyncio.StreamReader(limit=MAX_LINE_BYTES * 2)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    if fault == "kill-no-orphans":
        subprocess.Popen(["sleep", "600"], start_new_session=True, stdin=-3, stdout=-3, stderr=-3)  # noqa: ASYNC220
    while line := await reader.readline():
        between.take_line(line.removesuffix(b"\n"))
    if fault == ("exit-in-turn" if between.running else "exit"):
        time.sleep(600)  # noqa: ASYNC251  (that is the fault)
    await ours.close(1.0)
    await serving
    await host.shut_down(1.0)


if __name__ == "__main__":
    asyncio.run(main())
