"""An engine on a store in a process of its own, told what to do line by line on stdin.

A line is a JSON array: an operation and its arguments. Each is answered by a line on stdout: ``["ok", result]`` or
``["error", type, message]``. What its watchers are told comes in between: ``["dropped", reason]``.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from core.tests.support.sessions import CWD, Recorder, ScriptedAgent, begin, ended, engine_at, history, watch
from holdfast.errors import HoldfastError


class Told(Recorder):
    def dropped(self, reason: str) -> None:
        super().dropped(reason)
        answer("dropped", reason)


def answer(*words: object) -> None:
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


async def main(place: str) -> None:
    agent = ScriptedAgent()
    loop = asyncio.get_running_loop()
    async with engine_at(place, agent) as engine:

        async def do(operation: str, *arguments: Any) -> object:
            match operation:
                case "create":
                    session = await engine.create(CWD)
                    await watch(engine, session, Told())
                    return session.id
                case "restore":
                    session = await engine.restore(arguments[0], CWD)
                    await watch(engine, session, Told())
                    return session.state.interrupted
                case "run":
                    end = await ended(begin(engine, engine.get(arguments[0]), arguments[1]))
                    return [end.reason, end.error]
                case "begin":
                    turn = begin(engine, engine.get(arguments[0]), arguments[1])
                    accepted = await turn.accepted
                    await agent.at("gate")
                    await turn.shown()  # whoever is killed before may lose what it said: nobody has seen it
                    return accepted
                case "open gate":
                    agent.gates["gate"].set()
                    turn = engine.get(arguments[0]).turn
                    return None if turn is None else (await ended(turn)).reason
                case "history":
                    return await history(engine, engine.get(arguments[0]))
                case "performed":
                    return agent.performed
                case _:
                    raise AssertionError(operation)

        while line := await loop.run_in_executor(None, sys.stdin.readline):
            try:
                answer("ok", await do(*json.loads(line)))
            except HoldfastError as e:
                answer("error", type(e).__name__, str(e))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
