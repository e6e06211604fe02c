"""What the official Python SDK's client does with the agent, told once for all of its versions.

A script beside this one says how a version does each step, and runs in the environment that has that version; nothing
of Holdfast is imported. It is given a plan, as JSON, in its argument, and prints what it saw, as JSON. A plan for
`many` sessions is the whole story; otherwise it is told only as far as the prompts.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import asynccontextmanager
from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

PATIENCE = 60.0
"""No step takes longer than this."""

ENDLESS = "/stream 1000000"


class Notes:
    """What the client is told and asked."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self.capabilities: dict[str, Any] = plan["capabilities"]
        self.answers: list[str] = list(plan["answers"])
        self.asked: list[str] = []
        self._updates: list[tuple[str, dict[str, Any]]] = []
        self._news = asyncio.Event()

    def told(self, session: str, update: dict[str, Any]) -> None:
        self._updates.append((session, update))
        self._news.set()

    def choose(self, question: str, options: list[dict[str, Any]]) -> str:
        """Answer a question for permission as planned."""
        self.asked.append(question)
        wanted = self.answers.pop(0)
        return next(it["optionId"] for it in options if it["kind"] == wanted)

    def fill(self, message: str) -> dict[str, str]:
        """Fill in a form."""
        self.asked.append(message)
        return {"name": "Ada"}

    def mark(self) -> int:
        return len(self._updates)

    def since(self, mark: int, session: str) -> list[dict[str, Any]]:
        return [update for of, update in self._updates[mark:] if of == session]

    async def until(self, mark: int, session: str, wanted: Callable[[list[dict[str, Any]]], bool]) -> None:
        """Wait until what was told of a session since then has something."""
        async with asyncio.timeout(PATIENCE):
            while not wanted(self.since(mark, session)):
                self._news.clear()
                await self._news.wait()

    async def quiet(self) -> None:
        """Wait until nothing more is told: the SDK has handlers run beside, and they may come after an answer."""
        known, rounds = -1, 0
        while rounds < 20:
            rounds = rounds + 1 if len(self._updates) == known else 0
            known = len(self._updates)
            await asyncio.sleep(0.005)

    async def until_told(self, mark: int, session: str, kind: str) -> None:
        await self.until(mark, session, lambda told: any(it["sessionUpdate"] == kind for it in told))


class Peer(Protocol):
    """How a version of the SDK does each step."""

    async def initialize(self) -> int: ...
    async def new(self, cwd: str) -> tuple[str, dict[str, Any]]: ...
    async def prompt(self, session: str, text: str) -> str: ...
    async def cancel(self, session: str) -> None: ...
    async def set_mode(self, session: str, mode: str) -> None: ...
    async def set_option(self, session: str, option: str, value: str | bool) -> dict[str, Any]: ...
    async def list(self, cursor: str | None) -> tuple[list[str], str | None]: ...
    async def close(self, session: str) -> None: ...
    async def load(self, session: str, cwd: str) -> dict[str, Any]: ...
    async def resume(self, session: str, cwd: str) -> dict[str, Any]: ...
    async def fork(self, session: str, cwd: str) -> str: ...
    async def delete(self, session: str) -> None: ...
    async def leave(self) -> None: ...


class Story:
    """The story, and the report of it."""

    def __init__(self, plan: dict[str, Any], join: Callable[[Notes, asyncio.subprocess.Process], Peer]) -> None:
        self._plan = plan
        self._cwd: str = plan["cwd"]
        self._join = join
        self._notes = Notes(plan)
        self.report: dict[str, Any] = {"turns": [], "exits": []}

    @asynccontextmanager
    async def _agent(self) -> AsyncGenerator[tuple[Peer, asyncio.subprocess.Process]]:
        if "remote" in self._plan:
            transport = cast("Any", SimpleNamespace(stdin=await remote_transport(self._plan["remote"]), stdout=None))
            peer = self._join(self._notes, transport)
            self.report["version"] = await peer.initialize()
            yield peer, transport
            await peer.leave()
            return
        process = await asyncio.create_subprocess_exec(
            *self._plan["agent"], stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=1 << 24
        )
        peer = self._join(self._notes, process)
        self.report["version"] = await peer.initialize()
        yield peer, process
        await peer.leave()
        assert process.stdin is not None
        process.stdin.close()
        async with asyncio.timeout(PATIENCE):
            self.report["exits"].append(await process.wait())

    async def tell(self) -> None:
        async with self._agent() as (peer, process):
            session = await self._talk(peer)
            if "remote" in self._plan:
                await self._list(peer)
                broken = session
            else:
                broken = await self._list_and_break(peer, process) if self._plan["many"] else None
        if broken is None:
            return
        async with self._agent() as (peer, _):
            await self._restore(peer, session, broken)

    async def _talk(self, peer: Peer) -> str:
        session, self.report["options"] = await peer.new(self._cwd)
        if self._plan["many"]:
            await self._notes.until_told(0, session, "available_commands_update")
        self.report["announced"] = self._notes.since(0, session)
        for text in self._plan["prompts"]:
            await self._prompt(peer, session, text)
        if self._plan["many"]:
            await self._cancel(peer, session)
            await peer.set_mode(session, "auto")
            await peer.set_option(session, "tone", "pirate")
            self.report["set"] = await peer.set_option(session, "verbose", value=True)
            await peer.close(session)
        self.report["asked"] = self._notes.asked
        return session

    async def _prompt(self, peer: Peer, session: str, text: str) -> None:
        mark = self._notes.mark()
        stop = await peer.prompt(session, text)
        await self._notes.quiet()
        self._note(text, stop, self._notes.since(mark, session))

    def _note(self, text: str, stop: str, told: list[dict[str, Any]]) -> None:
        kinds = sorted({it["sessionUpdate"] for it in told})
        self.report["turns"].append(
            {"prompt": text, "stop": stop, "kinds": kinds, "text": said(told, "agent"), "calls": calls(told)}
        )

    async def _cancel(self, peer: Peer, session: str) -> None:
        mark = self._notes.mark()
        turn = asyncio.create_task(peer.prompt(session, ENDLESS))
        await self._notes.until(mark, session, lambda told: " 20 " in said(told, "agent"))
        await peer.cancel(session)
        stop = await turn
        await self._notes.quiet()
        self._note(ENDLESS, stop, self._notes.since(mark, session))

    async def _list(self, peer: Peer) -> None:
        for n in range(self._plan["many"]):
            session, _ = await peer.new(self._cwd)
            await peer.prompt(session, f"Number {n}")
        cursor = None
        pages: list[list[str]] = []
        while not pages or cursor is not None:
            page, cursor = await peer.list(cursor)
            pages.append(page)
        self.report["pages"] = pages

    async def _list_and_break(self, peer: Peer, process: asyncio.subprocess.Process) -> str:
        """List sessions, and kill the agent in the middle of an answer."""
        await self._list(peer)
        session, _ = await peer.new(self._cwd)
        mark = self._notes.mark()
        turn = asyncio.create_task(peer.prompt(session, ENDLESS))
        await self._notes.until(mark, session, lambda told: " 200 " in said(told, "agent"))
        process.send_signal(signal.SIGKILL)
        await process.wait()
        turn.cancel()
        await asyncio.gather(turn, return_exceptions=True)
        self.report["seen"] = said(self._notes.since(mark, session), "agent")
        return session

    async def _restore(self, peer: Peer, session: str, broken: str) -> None:
        for name, id_ in (("broken", broken), ("loaded", session)):
            mark = self._notes.mark()
            options = await peer.load(id_, self._cwd)
            await self._notes.until_told(mark, id_, "session_info_update")
            await self._notes.quiet()
            told = self._notes.since(mark, id_)
            self.report[name] = {
                "options": options,
                "user": said(told, "user"),
                "text": said(told, "agent"),
                "calls": calls(told),
                "kinds": sorted({it["sessionUpdate"] for it in told}),
            }
        await peer.close(session)
        mark = self._notes.mark()
        self.report["resumed"] = await peer.resume(session, self._cwd)
        await self._notes.until_told(mark, session, "available_commands_update")
        await self._notes.quiet()
        self.report["resumed_told"] = sorted({it["sessionUpdate"] for it in self._notes.since(mark, session)})
        fork = await peer.fork(session, self._cwd)
        self.report["forks"] = fork != session
        for it in (session, fork):
            await self._prompt(peer, it, "/history")
        await peer.delete(session)
        self.report["listed"] = [session in (await peer.list(None))[0], fork in (await peer.list(None))[0]]
        try:
            await peer.load(session, self._cwd)
        except Exception as e:  # noqa: BLE001  (each version has its own)
            self.report["gone"] = getattr(e, "code", str(e))


async def remote_transport(remote: dict[str, str]) -> Any:
    """Connect to a server as the SDK's own transports do."""
    headers = {"Authorization": f"Bearer {remote['token']}"}
    if remote["way"] == "http":  # the pre-release alone has these
        return import_module("acp.http.client").create_http_stream(remote["url"], headers=headers)
    url = remote["url"].replace("http", "ws", 1)
    return await import_module("acp.ws.client").create_websocket_stream(url, headers=headers)


def said(told: list[dict[str, Any]], role: str) -> str:
    """Put together what somebody has said."""
    text = ""
    for it in told:
        if it["sessionUpdate"] == f"{role}_message_chunk":
            text += it["content"].get("text", "")
        elif it["sessionUpdate"] == f"{role}_message":
            text += "".join(block.get("text", "") for block in it.get("content") or ())
    return text


def calls(told: list[dict[str, Any]]) -> list[str]:
    """Say how each tool call stands, in their order."""
    status: dict[str, str] = {}
    for it in told:
        if "toolCallId" in it:
            status[it["toolCallId"]] = it.get("status") or status[it["toolCallId"]]
    return list(status.values())


def run(join: Callable[[Notes, asyncio.subprocess.Process], Peer]) -> None:
    """Tell the story of the plan in our argument, and print the report."""
    story = Story(json.loads(sys.argv[1]), join)
    asyncio.run(story.tell())
    sys.stdout.write(json.dumps(story.report))
    sys.stdout.flush()
    os._exit(0)
