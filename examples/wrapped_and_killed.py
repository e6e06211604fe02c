"""An agent of somebody else's, with sessions that hold: run it with `make demo`.

The agent (`examples/forgetful.py`) is written on the official Python SDK, stores nothing and cannot load anything. It
is wrapped, told a word, and killed with SIGKILL in the middle of an answer, the proxy with it. A second client loads
the session in a new process, has every word of it, goes on, and the agent still knows the word.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from holdfast.client import connect

FORGETFUL = str(Path(__file__).with_name("forgetful.py"))


def wrapped(store: str) -> tuple[str, ...]:
    """Return the command to put into an editor's settings."""
    return (sys.executable, "-m", "holdfast", "wrap", "--store", store, "--", sys.executable, FORGETFUL)


async def talk_and_kill(store: str, cwd: str) -> tuple[str, str]:
    """Tell the agent a word, and kill everything in the middle of an answer; return the session and what was read."""
    read = ""
    async with connect(*wrapped(store), env={"FORGETFUL_PID": f"{cwd}/pid"}) as agent:
        session = await agent.new_session(cwd)
        print("  you    │ The word is heron.")
        print("  agent  │", await session.ask_text("The word is heron."))
        print("  you    │ Count, slowly")
        try:
            async for update in session.prompt("Count, slowly"):
                read += update.text or ""
                if " 12 " in read:
                    kill_all(int(Path(cwd, "pid").read_text()))  # noqa: ASYNC240
        except Exception as e:  # noqa: BLE001
            print(f"  agent  │ {read.strip()} …")
            print(f"(killed with SIGKILL, the agent and the proxy: {str(e).splitlines()[0]})\n")
        return session.id, read


async def load_and_go_on(store: str, cwd: str, session_id: str, read: str) -> None:
    """Load the session with another client, and ask for the word."""
    async with connect(*wrapped(store), env={"FORGETFUL_PID": f"{cwd}/pid"}, protocol=1) as agent:
        session = await agent.load(session_id, cwd)
        for entry in session.history:
            if entry.entity in ("user_message", "agent_message"):
                print(f"  {'you   ' if entry.entity == 'user_message' else 'agent '} │ {entry.text().strip()}")
        loaded = "".join(entry.text() for entry in session.history if entry.entity == "agent_message")
        print(f"\nloaded by another client, every word that was read is there: {read in loaded}")
        print("  you    │ What was the word?")
        answer = ""
        async for update in session.prompt("What was the word?"):
            if update.kind == "notice":
                print("  note   │", update.update()["title"])
            answer += update.text or ""
        print("  agent  │", answer)
        assert read in loaded and "heron" in answer


def kill_all(agent: int) -> None:
    """Kill the agent and the proxy that has started it: they have no chance to save anything."""
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = entry.read_bytes()
        except OSError:
            continue
        if b"\0wrap\0" in command and FORGETFUL.encode() in command and b"guard.py" not in command:
            os.kill(int(entry.parent.name), signal.SIGKILL)
    with suppress(ProcessLookupError):  # its guard may have been faster
        os.kill(agent, signal.SIGKILL)


async def main() -> None:
    """Show it."""
    print("\n━━━ An agent of somebody else's, wrapped " + "━" * 44)
    with tempfile.TemporaryDirectory() as directory:
        store = str(Path(directory, "sessions.db"))
        session_id, read = await talk_and_kill(store, directory)
        await load_and_go_on(store, directory, session_id, read)


if __name__ == "__main__":
    asyncio.run(main())
