"""The mirror image: an agent that watches its client. `ClientJudge` looks at every frame; `check_client` serves stdio.

The client talks to the demo agent, so everything there is can be tried; besides, it is asked one thing it cannot know.
"""

from __future__ import annotations

import asyncio
import json
import sys
from importlib.metadata import version as installed_version
from typing import TYPE_CHECKING, Any

from holdfast_app.check.report import Outcome, Report, Result
from holdfast_app.check.requirements import CLIENT_REQUIREMENTS
from holdfast_app.check.schemas import MessageReader, find_schemas
from holdfast_app.check.wire import members, objects

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from holdfast_app.check.schemas import Schemas
    from holdfast_app.check.wire import Json


PROBE_ID = "holdfast-check-probe"
PROBE: dict[str, Json] = {"jsonrpc": "2.0", "id": PROBE_ID, "method": "_holdfast/check_probe", "params": {}}
"""What no client knows."""

_OPENING = ("session/load", "session/resume", "session/fork")


class ClientJudge:
    """Looks at one conversation, frame by frame, and notes what the client does wrong."""

    def __init__(self, schemas: Schemas | None) -> None:
        self._schemas = schemas
        self._reader = MessageReader(schemas, 1, "client")
        self._tried: set[str] = set()
        self._wrong: dict[str, str] = {}
        self._open: dict[
            str, str | None
        ] = {}  # by id, requests of the client not answered yet: sessions they bring back
        self._asked: dict[str, tuple[str, dict[str, Json]]] = {}  # by id, what the agent asked
        self._answered: set[str] = set()
        self._sessions: set[str] = set()
        self._closed: set[str] = set()
        self._cancelled: set[str] = set()
        self.client: str = ""
        """What the client calls itself, with its version."""
        self.version: int = 1

    # What the client sends

    def take(self, line: bytes) -> None:
        """Look at a line of the client."""
        try:
            value: Json = json.loads(line)
        except (ValueError, RecursionError):
            value = None
        self._judge("client-only-frames", isinstance(value, dict), line[:200].decode(errors="replace"))
        if not isinstance(value, dict):
            return
        message = members(value)
        if message.get("method") == "initialize":
            self._greet(members(message.get("params")))
        faults = self._reader.faults(message, sent_by="client")
        if self._schemas is not None or faults:
            self._judge("client-frames-valid", not faults, faults[0] if faults else "")
        if isinstance(message.get("method"), str):
            self._take_asking(message)
        else:
            self._take_answer(message)

    def _greet(self, params: dict[str, Json]) -> None:
        self.version = 2 if params.get("protocolVersion") == 2 else 1
        self._reader.version = self.version
        about = members(params.get("info") or params.get("clientInfo"))
        self.client = " ".join(str(about[key]) for key in ("name", "version") if about.get(key))
        self._judge("client-capabilities", bool(about.get("name")), "no name")

    def _take_asking(self, message: dict[str, Json]) -> None:
        method, params = str(message["method"]), members(message.get("params"))
        if "id" in message:
            key = json.dumps(message["id"])
            if "client-initialize-first" not in self._tried:
                self._judge("client-initialize-first", method == "initialize", method)
            self._judge("client-ids", key not in self._open, f"the id {key} for {method}")
            self._open[key] = str(params.get("sessionId")) if method in _OPENING else None
        if "cwd" in params and method != "session/list":
            cwd = str(params["cwd"])
            self._judge("client-absolute-cwd", cwd.startswith("/") or cwd[1:3] in (":\\", ":/"), cwd)
        session = params.get("sessionId")
        if isinstance(session, str):
            if method not in _OPENING:  # an old session may be known from another process of the agent
                self._judge("client-known-sessions", session in self._sessions, f"{method} for {session}")
            self._take_about(method, session)

    def _take_about(self, method: str, session: str) -> None:
        if method in _OPENING:
            self._closed.discard(session)
        elif session in self._closed or method == "session/close":
            free = method in ("session/close", "session/delete", "session/list", "session/cancel")
            self._judge("client-closed-sessions", free, f"{method} for a session that was closed")
        if method == "session/close":
            self._closed.add(session)
        elif method == "session/cancel":
            self._cancelled.add(session)

    def _take_answer(self, message: dict[str, Json]) -> None:
        key = json.dumps(message.get("id"))
        asked = self._asked.get(key)
        self._judge("client-foreign-answers", asked is not None, json.dumps(message)[:200])
        if asked is None:
            return
        self._judge("client-answers", key not in self._answered, f"a second answer to {asked[0]}")
        self._answered.add(key)
        if message.get("id") == PROBE_ID:
            code = members(message.get("error")).get("code")
            self._judge("client-unknown-request", code == -32601, json.dumps(message)[:200])
        elif asked[0] == "session/request_permission" and "result" in message:
            self._take_permission(asked[1], members(members(message["result"]).get("outcome")))

    def _take_permission(self, question: dict[str, Json], outcome: dict[str, Json]) -> None:
        offered = [option.get("optionId") for option in objects(question.get("options"))]
        chosen = outcome.get("optionId")
        fits = outcome.get("outcome") == "cancelled" or (outcome.get("outcome") == "selected" and chosen in offered)
        self._judge("client-permission", fits, f"{json.dumps(outcome)} for {offered}")
        if str(question.get("sessionId")) in self._cancelled:
            self._judge("client-cancel-answers", outcome.get("outcome") == "cancelled", json.dumps(outcome))

    # What the agent sends

    def give(self, line: bytes) -> None:
        """Look at a line of the agent: it says which sessions there are, and what the client owes."""
        value: Json = json.loads(line)
        for message in objects(value) or [members(value)]:
            self._reader.faults(message, sent_by="agent")
            method, params = message.get("method"), members(message.get("params"))
            if isinstance(method, str):
                if "id" in message:
                    self._asked[json.dumps(message["id"])] = (method, params)
                    self._cancelled.discard(str(params.get("sessionId")))
                continue
            brought_back = self._open.pop(json.dumps(message.get("id")), None)
            if brought_back is not None and "result" in message:
                self._sessions.add(brought_back)
            result = members(message.get("result"))
            given = [result, *objects(result.get("sessions"))]
            self._sessions |= {row["sessionId"] for row in given if isinstance(row.get("sessionId"), str)}

    def ended(self) -> None:
        """Note the end: what was asked and not answered by now never is."""
        for key, (method, _) in self._asked.items():
            if key not in self._answered and method != "session/request_permission":
                self._judge("client-answers", fits=False, seen=f"no answer to {method}")

    # The verdict

    def _judge(self, rule: str, fits: bool, seen: str) -> None:  # noqa: FBT001
        self._tried.add(rule)
        if not fits:
            self._wrong.setdefault(rule, seen)

    def report(self) -> Report:
        """Return what was seen."""
        results = tuple(self._result(row.id, row.text) for row in CLIENT_REQUIREMENTS)
        schemas = "" if self._schemas is None else self._schemas.name
        name = self.client or "the client"
        return Report("the client of this agent", name, ("client",), schemas, installed_version("holdfast"), results)

    def _result(self, rule: str, text: str) -> Result:
        if rule in self._wrong:
            return Result(rule, self.version, Outcome.FAILED, text, self._wrong[rule])
        if rule in self._tried:
            return Result(rule, self.version, Outcome.PASSED)
        # A client that was never asked has broken nothing: what it could not show does not count.
        return Result(rule, self.version, Outcome.NOT_ADVERTISED, "", "there was no occasion")


def check_client(files: Mapping[str, Path], schemas: Path | None) -> int:
    """Be an agent on stdin and stdout; write the report when the client has left. Return the status to exit with.

    Args:
        files: where to write the report as ``json``, ``junit``, ``html`` and ``markdown``; on stderr if nowhere.
        schemas: the folder of an official SDK, for its schemas.

    """
    judge = ClientJudge(find_schemas(schemas))
    asyncio.run(_serve(judge))
    judge.ended()
    report = judge.report()
    from holdfast_app.check.written_reports import write_reports  # noqa: PLC0415  (a client waits for its agent's start)

    write_reports(report, files)
    if not files:
        from holdfast_app.check.documents import markdown  # noqa: PLC0415

        sys.stderr.write(markdown(report))
    return 1 if report.failures() else 0


async def _serve(judge: ClientJudge) -> None:
    from holdfast.agent.port import AuthorAgent  # noqa: PLC0415  (checks of agents need none of it)
    from holdfast.server import ClientConnection, Host  # noqa: PLC0415
    from holdfast.testing.demo_agent import agent  # noqa: PLC0415
    from holdfast.transport import memory_pair, open_stdio  # noqa: PLC0415

    ours, theirs = memory_pair()
    host = Host(AuthorAgent(agent), store=":memory:")
    serving = asyncio.create_task(ClientConnection(host, theirs, is_only=True).run(), name="strict counterpart")
    between = _Between(judge, open_stdio(), ours)
    await between.run()
    await serving
    await host.shut_down(1.0)


class _Between:
    """Passes lines on between the client and the agent, past the judge."""

    def __init__(self, judge: ClientJudge, client: Any, agent: Any) -> None:
        self._judge = judge
        self._client = client
        self._agent = agent
        self._left = asyncio.Event()
        self._probed = False

    async def run(self) -> None:
        """Pass lines on until the client has left."""
        self._client.open(_Ear(self._from_client, self._left.set))
        self._agent.open(_Ear(self._from_agent, self._left.set))
        await self._left.wait()
        await self._agent.close(1.0)
        await self._client.close(1.0)

    def _from_client(self, line: bytes) -> None:
        self._judge.take(line)
        if PROBE_ID.encode() not in line:
            self._agent.send(line)

    def _from_agent(self, line: bytes) -> None:
        self._judge.give(line)
        self._client.send(line)
        if not self._probed and b'"sessionId"' in line:
            self._probed = True
            probe = json.dumps(PROBE).encode()
            self._judge.give(probe)
            self._client.send(probe)


class _Ear:
    """Receives the lines of a transport."""

    def __init__(self, on_line: Any, on_end: Any) -> None:
        self._on_line = on_line
        self._on_end = on_end

    def lines_received(self, lines: Any) -> None:
        """Take lines; one that is too long cannot be judged."""
        for line in lines:
            if isinstance(line, bytes):
                self._on_line(line)

    def input_ended(self, reason: object) -> None:
        """Note the end."""
        del reason
        self._on_end()
