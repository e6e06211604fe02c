# ruff: noqa: T201
"""An agent with habits that real agents have, named by its arguments: what a client must live with.

It speaks raw JSON-RPC, version 1 unless it has the habit "v2", and knows nothing of ours. A prompt is obeyed word by
word: "say hello" says hello, "ask" asks for permission, "wait" waits to be cancelled.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HABITS = frozenset(sys.argv[1:])
V2 = "v2" in HABITS
Message = dict[str, Any]
OPTIONS = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]


class Odd:
    def __init__(self) -> None:
        self.heard: list[Message] = []
        self.sessions = 0
        self.asked = -1
        self.session = ""
        self.open: set[str] = set()
        self.doubled: set[str] = set()

    # The wire

    def send(self, message: Message) -> None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()

    def write(self, line: bytes) -> None:
        """Write a line that need not be JSON, nor text."""
        sys.stdout.buffer.write(line + b"\n")
        sys.stdout.buffer.flush()

    def update(self, what: str, **members: object) -> None:
        update = {"sessionUpdate": what, **members}
        for _ in range(2 if self.session in self.doubled else 1):
            self.send({"method": "session/update", "params": {"sessionId": self.session, "update": update}})

    def text(self, kind: str, text: str, **members: object) -> None:
        self.update(kind, content={"type": "text", "text": text}, **members)

    def answer(self, id_: object, result: object) -> None:
        self.send({"id": id_, "result": result})

    def refuse(self, id_: object, code: int, message: str, data: object = None) -> None:
        error: Message = {"code": code, "message": message}
        self.send({"id": id_, "error": error if data is None else {**error, "data": data}})

    def read(self) -> Message | None:
        line = sys.stdin.readline()
        if not line:
            return None
        message: Message = json.loads(line)
        self.heard.append(message)
        return message

    def ask(self, method: str, params: Message) -> Message:
        """Ask the client; ids begin with 0."""
        self.asked += 1
        self.send({"id": self.asked, "method": method, "params": params})
        while (message := self.read()) is not None:
            if "method" not in message and message.get("id") == self.asked:
                return message
        sys.exit(0)

    def until_cancelled(self) -> None:
        while (message := self.read()) is not None:
            if message.get("method") == "session/cancel" and "ignores cancel" not in HABITS:
                return

    # Its life

    def serve(self) -> None:
        if "dies at once" in HABITS:
            print("I cannot find my key", file=sys.stderr)
            sys.exit(3)
        if "dies talking" in HABITS:  # as kimi-cli does
            print("Please log in first:\n  odd login", flush=True)
            sys.exit(4)
        if "talks on stdout" in HABITS:
            print("Welcome to Odd!\n\n\x1b[1mHave fun\x1b[0m\n42\nnull")
            print(json.dumps({"level": "info", "msg": "a log line that is JSON"}), flush=True)
        if "floods stderr" in HABITS:
            for _ in range(100):
                os.write(2, b"x" * 10_000 + b"\n")
        if "ignores sigterm" in HABITS:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if "has a daemon" in HABITS:
            subprocess.Popen(["sleep", "600"], start_new_session=True, stdin=subprocess.DEVNULL)
        while (message := self.read()) is not None:
            if "id" in message and "method" in message and "says nothing" not in HABITS:
                method = getattr(self, message["method"].replace("/", "_"), None)
                if method is None:
                    self.refuse(message["id"], -32601, "what?")
                else:
                    method(message["id"], message.get("params") or {})
        while "ignores the end" in HABITS:
            time.sleep(60)

    def initialize(self, id_: object, params: Message) -> None:
        asked = params["protocolVersion"]
        if "refuses version 2" in HABITS and asked != 1:
            self.refuse(id_, -32602, "protocolVersion must be 1")
        elif V2:
            about = {"name": "odd", "version": "2"}
            session: Message = {"load": {}} if "only loads" in HABITS else {"fork": {}}
            self.answer(id_, {"protocolVersion": 2, "info": about, "capabilities": {"session": session}})
        elif "answers badly" in HABITS:
            self.write(b'{"jsonrpc": "2.0", "id": %d, "result": {"agentInfo": {"name": "\xff"}}}' % int(str(id_)))
        else:
            offered: Message = {"list": {}, "resume": {}, "fork": {}, "delete": {}, "close": {}}
            capabilities: Message = {"loadSession": True, "sessionCapabilities": offered}
            version: object = asked if "echoes the version" in HABITS else 1
            version = {"is of version 0": 0, "has a text as its version": "0.1.0"}.get(min(HABITS, default=""), version)
            self.answer(
                id_,
                {
                    "protocolVersion": version,
                    "agentCapabilities": capabilities,
                    "authMethods": [{"id": "key", "name": "A key"}],
                },
            )

    def session_new(self, id_: object, _: Message) -> None:
        if "wants a login" in HABITS:
            self.refuse(id_, -32000, "Authentication required")
            return
        self.sessions += 1
        self.session = f"s{self.sessions}"
        self.open.add(self.session)
        if "tells too early" in HABITS:
            self.update("available_commands_update", availableCommands=[{"name": "odd", "description": "Odd"}])
            self.text("agent_message_chunk", "Welcome!")
        modes = {"currentModeId": "a", "availableModes": [{"id": "a", "name": "A"}, {"id": "b", "name": "B"}]}
        if "names no session" in HABITS:
            self.answer(id_, {})
        else:
            self.answer(id_, {"sessionId": self.session} if V2 else {"sessionId": self.session, "modes": modes})

    def session_close(self, id_: object, params: Message) -> None:
        self.open.discard(params["sessionId"])
        self.doubled.discard(params["sessionId"])
        self.answer(id_, {})

    def session_fork(self, id_: object, _: Message) -> None:
        self.sessions += 1
        self.session = f"s{self.sessions}"
        if "forks silently" not in HABITS:  # opencode replays
            self.replay()
        self.answer(id_, {"sessionId": self.session})

    def session_load(self, id_: object, params: Message) -> None:
        self.session = params["sessionId"]
        if "begins anew" in HABITS:
            self.answer(id_, {"sessionId": "another"})
        elif "replays late" in HABITS:  # as Gemini does
            self.text("user_message_chunk", "Who are you?")
            self.answer(id_, None)
            gate = Path(os.environ.get("GATE", os.devnull))
            while not gate.exists():
                time.sleep(0.01)
            for piece in ("I ", "am ", "odd", "."):
                time.sleep(0.04)
                self.text("agent_message_chunk", piece)
                if "GATE" in os.environ:
                    gate.with_name("passed").touch()
        elif "replays for ever" in HABITS:
            self.answer(id_, None)
            while True:
                self.text("agent_message_chunk", "still ")
                time.sleep(0.01)
        elif "replays bytes" in HABITS:
            self.replay()
            self.raw_text(b"\xff")
            self.answer(id_, None)
        elif self.session in self.open and "refuses what is open" in HABITS:  # as Copilot does
            self.refuse(id_, -32602, "Invalid params", {"details": "Session is already open"})
        elif params["sessionId"] == "missing" and "has everything" not in HABITS:
            self.refuse(id_, -32603, "Internal error")
        else:
            if self.session in self.open and "doubles what is open" in HABITS:  # as vibe does
                self.doubled.add(self.session)
            self.open.add(self.session)
            if self.session != "missing":
                self.replay()
            self.answer(id_, None)

    def session_resume(self, id_: object, params: Message) -> None:
        self.session = params["sessionId"]
        self.replay()
        if V2:
            self.update("state_update", state="idle", stopReason="end_turn")
        self.answer(id_, {})

    def session_list(self, id_: object, params: Message) -> None:
        number = int(params.get("cursor", "0"))
        sessions = [
            {"sessionId": f"old{number}", "cwd": f"/{number}", "updatedAt": "2026-01-01T00:00:00Z", "title": None},
            {"sessionId": "twice", "cwd": "/0", "updatedAt": "yesterday"},
            {"nothing": "useful"},
        ]
        self.answer(id_, {"sessions": sessions, "nextCursor": str(min(number + 1, 3))})

    def session_delete(self, id_: object, _: Message) -> None:
        self.answer(id_, None)

    def session_set_mode(self, id_: object, _: Message) -> None:
        self.answer(id_, None)

    def raw_update(self, update: bytes) -> None:
        """Send an update that need not be UTF-8."""
        params = b'{"sessionId": "%b", "update": %b}' % (self.session.encode(), update)
        self.write(b'{"jsonrpc": "2.0", "method": "session/update", "params": %b}' % params)

    def raw_text(self, text: bytes) -> None:
        block = b'{"type": "text", "text": "%b"}' % text
        self.raw_update(b'{"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": %b}' % block)

    def replay(self) -> None:
        if "has prompts without answers" in HABITS:  # as Copilot tells them
            for text in ("One", "Two"):
                self.text("user_message_chunk", text)
        kinds = ("user_message", "agent_message") if V2 else ("user_message_chunk", "agent_message_chunk")
        for kind, text in zip(kinds, ("Who are you?", "I am odd."), strict=True):
            block = {"type": "text", "text": text}
            if V2:
                self.update(kind, messageId=f"old {kind}", content=[block])
            else:
                self.update(kind, content=block)

    def session_prompt(self, id_: object, params: Message) -> None:
        self.session = params["sessionId"]
        words = params["prompt"][0]["text"]
        if V2:
            self.prompt_v2(id_, params, words)
            return
        if "echoes the user" in HABITS:
            for piece in (words[:2], words[2:]):
                self.text("user_message_chunk", piece)
        if (end := self.obey(words)) is None:
            self.refuse(id_, -32603, "Aborted")
        elif words == "answer badly":
            self.write(b'{"jsonrpc": "2.0", "result": {"stopReason": "\xff"}, "id": %d}' % int(str(id_)))
        elif words == "answer with half an emoji":
            self.write(b'{"jsonrpc":"2.0","id":%d,"result":{"stopReason":"end_turn","x":"\\ud83d"}}' % int(str(id_)))
        elif words == "explain":
            self.refuse(id_, -32603, "Internal error", {"details": "The key has expired"})
        else:
            self.answer(id_, end)

    def prompt_v2(self, id_: object, params: Message, words: str) -> None:
        """Version 2, with the freedom it leaves an agent."""
        accepted = {"messageId": f"m{id_}"}
        if "idles first" in HABITS:  # of another client's turn, perhaps
            self.update("state_update", state="idle", stopReason="refusal")
        if "answers late" not in HABITS:
            self.answer(id_, accepted)
        if "idles after" in HABITS:
            self.update("state_update", state="running")
        self.update("user_message", messageId=f"m{id_}", content=params["prompt"])
        self.update("state_update", state="running")
        end = self.obey(words) or {"stopReason": "error", "error": {"code": -32603, "message": "Aborted"}}
        if words == "explain":
            failed = {"code": -32603, "message": "Internal error", "data": {"details": "The key has expired"}}
            end = {"stopReason": "error", "error": failed}
        if words == "end badly":
            self.raw_update(b'{"sessionUpdate": "state_update", "state": "idle", "stopReason": "\xff"}')
            return
        if "gives no reason" in HABITS:
            end = {}
        self.update("state_update", state="idle", **end)
        if "answers late" in HABITS:
            self.answer(id_, accepted)

    def obey(self, words: str) -> Message | None:
        """Do what the prompt says; None is a failure."""
        word, _, rest = words.partition(" ")
        key = {"messageId": "m"} if V2 else {}
        match word:
            case "say":
                for piece in rest:
                    self.text("agent_message_chunk", piece, **key)
            case "tool":
                self.tool()
            case "ask":
                self.text("agent_message_chunk", json.dumps(self.permission(rest)), **key)
            case "propose":
                self.propose(rest)
            case "notify":
                method, _, params = rest.partition(" ")
                self.send({"method": method, "params": json.loads(params or "{}")})
            case "bytes":
                self.raw_text(b"\xff")
                self.text("agent_message_chunk", "And on.", **key)
            case "emoji":
                self.raw_text(b"half \\ud83d")
            case "request":
                method, _, params = rest.partition(" ")
                said = self.ask(method, {"sessionId": self.session, **json.loads(params or "{}")})
                self.text("agent_message_chunk", json.dumps(said.get("result", said.get("error"))), **key)
            case "raw":
                self.send({"method": "session/update", "params": {"sessionId": self.session, **json.loads(rest)}})
            case "heard":
                self.text("agent_message_chunk", json.dumps(self.heard), **key)
            case "long":
                self.text("agent_message_chunk", "x" * int(rest), **key)
            case "wait":
                self.text("agent_message_chunk", "waiting", **key)
                self.until_cancelled()
                if "fails when cancelled" in HABITS:
                    return None
                self.text("agent_message_chunk", ", stopped", **key)
                return {"stopReason": "cancelled"}
            case "die":
                self.text("agent_message_chunk", "goodb", **key)
                print("I have seen too much", file=sys.stderr, flush=True)
                os._exit(7)
            case "fail":
                return None
            case _:
                pass
        return {"stopReason": "end_turn"}

    def permission(self, rest: str) -> object:
        """Ask for permission to do what was not announced, and do it; return the answer."""
        call = {"toolCallId": "c", "title": "Rocket", "kind": "execute"}
        subject = {"title": "May I?", "subject": {"type": "tool_call", "toolCall": call}}
        about = subject if V2 else {"toolCall": call}
        asked = {"sessionId": self.session, "options": OPTIONS[:1] if rest == "yes" else OPTIONS, **about}
        said = self.ask("session/request_permission", asked)
        self.update("tool_call_update", toolCallId="c", status="completed")
        return said.get("result") or said.get("error")

    def propose(self, known: str) -> None:
        """Ask for permission, and do nothing if it is refused: Gemini does so, and vibe where the call is known."""
        whole = {
            "title": "Write a file",
            "kind": "edit",
            "status": "pending",
            "content": [{"type": "content", "content": {"type": "text", "text": "all of it"}}],
            "locations": [{"path": "/f"}],
            "rawInput": {"path": "/f"},
        }
        call = {"toolCallId": "c", **whole}
        if known:
            self.update("tool_call", **call)
            call = {"toolCallId": "c", "title": "Write"} if known == "titled" else {"toolCallId": "c"}
        self.ask("session/request_permission", {"sessionId": self.session, "options": OPTIONS, "toolCall": call})

    def tool(self) -> None:
        self.text("agent_message_chunk", "Let me ")
        self.text("agent_message_chunk", "see. ")
        self.update("tool_call", toolCallId="c", title="Look", status="in_progress", kind=None)
        self.text("agent_message_chunk", "Well")
        self.update("tool_call_update", toolCallId="c", title=None, status="completed", content=None)
        self.text("agent_message_chunk", ".")
        self.update("plan", entries=[{"content": "Rest", "priority": "low", "status": "pending"}])
        self.text("agent_thought_chunk", "Enough.")
        self.text("agent_message_chunk", "Done.")


if __name__ == "__main__":
    Odd().serve()
