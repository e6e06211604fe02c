"""Commands an agent runs, shown as they run."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from holdfast.children import start
from holdfast.model import new_id
from holdfast.transport.descriptors import open_input

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.agent.tools import ToolCall
    from holdfast.model import Update

KILL_AFTER = 2.0
"""A command that is told to stop has this long to do so."""


SHOWN_BYTES = 512 << 10
"""So much of a command's output is shown as it comes; all that is shown is stored…"""

LAST_BYTES = 64 << 10
"""…and of what comes behind it so much, the last of it, when the command has ended."""


class Finished(NamedTuple):
    """A command that has ended: its exit status (128 + n: signal n, as in a shell), and the last of its output."""

    status: int
    output: bytes

    @property
    def text(self) -> str:
        """The output as text."""
        return self.output.decode(errors="replace")


async def run_in_terminal(
    call: ToolCall,
    command: tuple[str, ...],
    cwd: str,
    env: Mapping[str, str] | None,
    limit: int,
    *,
    cancellable: bool = False,
) -> Finished:
    """Run a command, show it in a tool call, and wait for its end."""
    terminal = new_id("term")
    ended = asyncio.Event()
    kept: deque[bytes] = deque()
    size = shown = left_out = 0

    def said(**members: object) -> Update:
        return {"sessionUpdate": "terminal_update", "terminalId": terminal, **members}

    def read(chunk: bytes) -> None:
        nonlocal size, shown, left_out
        if not chunk:
            ended.set()
            return
        kept.append(chunk)
        size += len(chunk)
        while kept and size - len(kept[0]) >= limit:
            size -= len(kept.popleft())
        if left_out or shown + len(chunk) > SHOWN_BYTES:
            left_out += len(chunk)
        else:
            shown += len(chunk)
            show(chunk)

    def show(chunk: bytes) -> None:
        data = b64encode(chunk).decode()
        call.emit({"sessionUpdate": "terminal_output_chunk", "terminalId": terminal, "data": data})

    def stop() -> None:
        child.terminate()
        asyncio.get_running_loop().call_later(KILL_AFTER, child.kill)

    child = start(command, cwd=cwd, env=env, stdin=False, stderr=False)
    output = open_input(child.stdout, read)
    controls: Update = {"capabilities": {"cancel": {}}} if cancellable else {}
    call.emit(said(command=" ".join(command), cwd=cwd, **controls))
    await call.add_terminal(terminal)
    if cancellable:
        call.offer_cancel(terminal, stop)
    try:
        output.resume()
        await ended.wait()
        await child.wait()
    except asyncio.CancelledError:
        child.terminate()
        await child.wait(KILL_AFTER)
        raise
    finally:
        child.kill()
        output.close()
        if left_out:
            last = b"".join(kept)[-min(left_out, LAST_BYTES) :]
            show(b"\n[... %d bytes are not shown ...]\n" % (left_out - len(last)) + last)
        call.withdraw_cancel(terminal)
        call.emit(said(exitStatus=_exit_status(child.returncode), **dict.fromkeys(controls)))
    assert child.returncode is not None
    return Finished(child.returncode, b"".join(kept)[-limit:])


def _exit_status(code: int | None) -> Update:
    if code is None:
        return {}
    return {"exitCode": code} if code <= 128 else {"signal": str(code - 128)}
