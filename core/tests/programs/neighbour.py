"""Another process at a store: does what it is told, one JSON line each, and answers with one."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any

from holdfast.errors import HoldfastError
from holdfast.format import Line
from holdfast.model import Scope, SessionInfo, SessionState, new_session_id
from holdfast.store import Changes, open_store

if TYPE_CHECKING:
    from holdfast.store import Claim, Store, TurnLog


class Neighbour:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._claims: dict[str, Claim] = {}
        self._logs: dict[str, TurnLog] = {}

    async def do(self, what: str, session: str = "", text: str = "") -> object:
        match what:
            case "create":
                info = SessionInfo(new_session_id(), "/work", (), None, 1, 1, archived=False, messages=0)
                self._claims[info.id] = await self._store.create(info, SessionState())
                return info.id
            case "claim":
                claimed = await self._store.claim(session)
                self._claims[session] = claimed.claim
                return None if claimed.broken is None else [line.decode() for line in claimed.broken.lines]
            case "begin":
                self._logs[session] = await self._store.begin(self._claims[session], [said(text)], Changes())
            case "begin_lazily":
                claim = self._claims[session]
                self._logs[session] = await self._store.begin(claim, [said(text)], Changes(), durable=False)
            case "append":
                kept = self._logs[session].append(said(text) + b"\n")
                if kept is not None:
                    await kept
            case "sync":
                await self._logs[session].sync()
            case "seal":
                await self._store.seal(self._claims[session], [Line(said(text), text)], Changes(), messages=1)
            case "save":
                await self._store.save(self._claims[session], Changes(title=text))
            case "fork":
                info = SessionInfo(new_session_id(), "/work", (), None, 1, 1, archived=False, messages=1)
                claim = self._claims[session]
                await self._store.fork(claim, info, SessionState(), up_to=None, lines=[])
                return info.id
            case "release":
                await self._store.release(self._claims[session])
            case "delete":
                await self._store.delete(session)
            case "prune":
                return await self._store.prune(1 << 60)
            case "list":
                page = await self._store.list(Scope(), cwd=None, archived="include", cursor=None, limit=50)
                return [info.id for info in page.sessions]
            case _:
                raise ValueError(what)
        return None


def said(text: str) -> bytes:
    update = {"sessionUpdate": "agent_message", "messageId": text, "content": [{"type": "text", "text": text}]}
    return json.dumps(update).encode()


async def main() -> None:
    loop = asyncio.get_running_loop()
    neighbour: Neighbour | None = None
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        asked: dict[str, Any] = json.loads(line)
        try:
            if asked["what"] == "open":
                neighbour = Neighbour(await open_store(asked["text"]))
                answer = {"done": None}
            else:
                assert neighbour is not None
                answer = {"done": await neighbour.do(**asked)}
        except HoldfastError as e:
            answer = {"error": type(e).__name__, "message": str(e)}
        print(json.dumps(answer), flush=True)  # noqa: T201


asyncio.run(main())
