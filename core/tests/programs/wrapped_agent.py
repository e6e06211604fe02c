# ruff: noqa: T201
"""An agent to be wrapped: it keeps its sessions in a directory. Its arguments are habits of real agents that it has.

It speaks raw JSON-RPC, version 1 unless it has the habit "v2", and knows nothing of ours. A prompt is obeyed: "say
hello" says hello, "remember heron" and "recall" try its memory, which is what it was told in this session and nothing
else. Like real agents it saves the prompt when it comes and the answer when it is complete.

Environment: AGENT_HOME, the directory of its sessions; AGENT_NAME, what it calls itself.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

HABITS = frozenset(habit.replace("-", " ") for habit in sys.argv[1:])
V2 = "v2" in HABITS
HOME = Path(os.environ.get("AGENT_HOME", "."))
OWN_NAME = os.environ.get("AGENT_NAME", "wrapped")
Message = dict[str, Any]
OPTIONS: list[Message] = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once", "_meta": {"key": "y"}},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]
MODES = [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}]


class Conversation:
    """A session of the agent, as it lies in its directory."""

    def __init__(self, id_: str, cwd: str) -> None:
        self.id = id_
        self.cwd = cwd
        self.messages: list[Message] = []
        self.mode = "ask"

    @property
    def path(self) -> Path:
        return HOME / f"{self.id}.json"

    def save(self) -> None:
        if "keeps nothing" in HABITS:
            return
        kept = {"cwd": self.cwd, "messages": self.messages, "mode": self.mode}
        written = self.path.with_suffix(".new")
        written.write_text(json.dumps(kept))
        written.replace(self.path)

    @classmethod
    def open(cls, id_: str) -> Conversation | None:
        path = HOME / f"{id_}.json"
        if "/" in id_ or not path.exists():
            return None
        kept = json.loads(path.read_text())
        conversation = cls(id_, kept["cwd"])
        conversation.messages = kept["messages"]
        if "restores options" in HABITS:
            conversation.mode = kept["mode"]
        return conversation

    @property
    def context(self) -> str:
        """All that the model knows."""
        return "\n".join(message["text"] for message in self.messages)


class WrappedAgent:
    def __init__(self) -> None:
        self.heard: list[Message] = []
        self.live: dict[str, Conversation] = {}
        self.doubled: set[str] = set()
        self.at: Conversation
        self.parents: dict[str, str] = {}
        self.asked = -1
        self.count = 0
        self.answering = ""

    # The wire

    def send(self, message: Message) -> None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()

    def update(self, what: str, **members: object) -> None:
        speaks = what.startswith("agent_") and "speaks as the parent" in HABITS  # as crow does in forks
        self.update_of(
            self.parents.get(self.at.id, self.at.id) if speaks else self.at.id, {"sessionUpdate": what, **members}
        )

    def update_of(self, session: str, update: Message) -> None:
        for _ in range(2 if session in self.doubled else 1):
            self.send({"method": "session/update", "params": {"sessionId": session, "update": update}})

    def chunk(self, kind: str, text: str, key: str | None) -> None:
        named = {} if key is None else {"messageId": key}
        self.update(kind, content={"type": "text", "text": text}, **named)

    def answer(self, id_: object, result: object) -> None:
        self.send({"id": id_, "result": result})

    def refuse(self, id_: object, code: int, message: str, data: object = None) -> None:
        error: Message = {"code": code, "message": message}
        self.send({"id": id_, "error": error if data is None else {**error, "data": data}})

    def read(self) -> Message | None:
        line = sys.stdin.readline()
        if not line:
            return None
        if line.startswith("["):
            sys.exit(9)  # as ten real agents do
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

    def new_key(self) -> str | None:
        if "no message ids" in HABITS and not V2:
            return None
        self.count += 1
        return f"m{self.count}" if "counts" in HABITS else f"msg-{uuid.uuid4()}"

    # Its life

    def serve(self) -> None:
        if "exits at once" in HABITS:
            print("I cannot find my key", file=sys.stderr)
            sys.exit(3)
        if "talks on stdout" in HABITS:
            print("Welcome!\n\n\x1b[1mHave fun\x1b[0m\n42\nnull", flush=True)
        if "ignores the end" in HABITS:
            signal.signal(signal.SIGTERM, signal.SIG_IGN if "ignores sigterm" in HABITS else signal.SIG_DFL)
        if "has a daemon" in HABITS:
            daemon = subprocess.Popen(["sleep", "600"], start_new_session=True, stdin=subprocess.DEVNULL)
            (HOME / "daemon.pid").write_text(str(daemon.pid))
        (HOME / "pid").write_text(str(os.getpid()))
        with (HOME / "starts").open("a") as starts:
            starts.write("started\n")
        while (message := self.read()) is not None:
            if "id" in message and "method" in message and "never answers" not in HABITS:
                self.serve_one(message)
        while "ignores the end" in HABITS:
            time.sleep(60)

    def serve_one(self, message: Message) -> None:
        method = getattr(self, message["method"].replace("/", "_"), None)
        if method is None:
            self.refuse(message["id"], -32601, "what?")
        else:
            method(message["id"], message.get("params") or {})

    def initialize(self, id_: object, params: Message) -> None:
        names = ("list", "resume", "fork", "delete", "close")
        able: Message = {name: {} for name in names if f"no {name}" not in HABITS}
        if "takes directories" in HABITS:
            able["additionalDirectories"] = {}
        if V2:
            session: Message = {**able, "prompt": {"embeddedContext": {}}, "mcp": {"stdio": {}}}
            about = {"name": OWN_NAME, "version": "2"}
            told: Message = {"protocolVersion": 2, "info": about, "capabilities": {"session": session}}
            self.answer(id_, {**told, **self.extensions()})
            return
        capabilities: Message = {
            "loadSession": "no load" not in HABITS,
            "sessionCapabilities": able,
            "promptCapabilities": {"embeddedContext": "no resources" not in HABITS, "image": True},
        }
        version = params["protocolVersion"] if "v2 in name only" in HABITS else 1
        about = {"name": "Copilot" if "names files" in HABITS else OWN_NAME, "version": "1"}
        ways = [{"id": "key", "name": "A key", "type": "terminal", "args": ["login"]}]
        self.answer(
            id_,
            {
                "protocolVersion": version,
                "agentInfo": about,
                "agentCapabilities": capabilities,
                "authMethods": ways,
                **self.extensions(),
            },
        )

    def extensions(self) -> Message:
        """Return what adapters for JetBrains AIR say in `_meta` of their answer."""
        if "speaks to AIR" not in HABITS:
            return {}
        named = ["sessionIndex", "sessionArchive", "sessionRename", "diffPatch", "nativeSubagentSessions"]
        air = {"version": 1, "capabilities": named, "goal": {"version": 1, "controlMethod": "_session/goal"}}
        return {"_meta": {"steering": {"supported": True}, "jetbrains": {"air": air}, "own": 1}}

    def authenticate(self, id_: object, params: Message) -> None:
        if params["methodId"] != "key":
            self.refuse(id_, -32602, "no such way")
            return
        (HOME / "login").write_text("yes")
        self.answer(id_, {})

    # Sessions

    def new_id(self) -> str:
        if "counts" not in HABITS:
            return str(uuid.uuid4())
        return str(1 + len(list(HOME.glob("*.json"))))

    def options(self, conversation: Conversation) -> Message:
        if "no options" in HABITS:
            return {}
        values = [{"value": mode["id"], "name": mode["name"]} for mode in MODES]
        about = {"name": "Mode", "category": "mode", "type": "select", "currentValue": conversation.mode}
        if V2:
            return {"configOptions": [{"configId": "mode", **about, "options": values}]}
        if "has config options" in HABITS:
            return {"configOptions": [{"id": "mode", **about, "options": values}]}
        return {"modes": {"currentModeId": conversation.mode, "availableModes": MODES}}

    def session_new(self, id_: object, params: Message) -> None:
        if "wants a login" in HABITS and not (HOME / "login").exists():
            self.refuse(id_, -32000, "Authentication required")
            return
        conversation = Conversation(self.new_id(), params["cwd"])
        conversation.save()
        self.live[conversation.id] = self.at = conversation
        if "speaks early" in HABITS:
            self.update("available_commands_update", availableCommands=[{"name": "early", "description": "Bird"}])
            self.chunk("agent_message_chunk", "Hello before all.", self.new_key())
        self.answer(id_, {"sessionId": conversation.id, **self.options(conversation)})
        if "speaks early" not in HABITS:
            self.update("available_commands_update", availableCommands=[{"name": "plan", "description": "Plan"}])

    def found(self, id_: object, params: Message) -> Conversation | None:
        session = params["sessionId"]
        if session in self.live and "refuses what is open" in HABITS:
            self.refuse(id_, -32603, "already open")
            return None
        conversation = Conversation.open(session)
        if conversation is None and "knows all ids" in HABITS:
            conversation = Conversation(session, params["cwd"])
        if conversation is None:
            self.refuse(id_, -32002, "Resource not found", {"sessionId": session})
            return None
        if session in self.live:
            self.doubled.add(session)  # as vibe does
        self.live[session] = self.at = conversation
        return conversation

    def replay(self, conversation: Conversation) -> None:
        self.at = conversation
        for message in conversation.messages:
            role = message["role"]
            key = message.get("id") if "keeps ids" in HABITS else self.new_key()
            if role == "user" and "replays no users" not in HABITS:
                text = (
                    f"<system-reminder>be nice</system-reminder>\n{message['text']}"
                    if "injects" in HABITS
                    else message["text"]
                )
                self.chunk("user_message_chunk", text, None if "melts users" in HABITS and not V2 else key)
            elif role == "agent":
                self.chunk("agent_message_chunk", message["text"], key)
            elif role == "tool" and "replays no calls" not in HABITS:
                self.update(
                    "tool_call" if not V2 else "tool_call_update",
                    toolCallId=message["id"],
                    title=message["text"],
                    status="completed",
                )

    def session_load(self, id_: object, params: Message) -> None:
        conversation = self.found(id_, params)
        if conversation is None:
            return
        if "replays late" in HABITS:
            self.answer(id_, self.options(conversation))
            for message in conversation.messages:
                time.sleep(0.1)
                part = Conversation(conversation.id, conversation.cwd)
                part.messages = [message]
                self.replay(part)
            self.at = conversation
            return
        if "replays nothing" not in HABITS:
            self.replay(conversation)
        self.update("available_commands_update", availableCommands=[{"name": "plan", "description": "Plan"}])
        self.at = conversation
        self.answer(id_, self.options(conversation))

    def session_resume(self, id_: object, params: Message) -> None:
        if "refuses resume" in HABITS:
            self.refuse(id_, -32601, "what?")
            return
        conversation = self.found(id_, params)
        if conversation is None:
            return
        if "replays on resume" in HABITS or params.get("replayFrom"):
            self.replay(conversation)
        self.at = conversation
        if "warns on resume" in HABITS:  # as Codex does when another model was configured
            self.update("available_commands_update", availableCommands=[{"name": "resumed", "description": "New"}])
            self.warn()
        if V2:
            self.update("state_update", state="idle")
        self.answer(id_, self.options(conversation))
        if "warns behind resume" in HABITS:
            self.warn()
        if "replays behind resume" in HABITS:
            time.sleep(0.02)
            self.replay(conversation)

    def warn(self) -> None:
        self.chunk("agent_message_chunk", "Warning: recorded with model old but is resuming with new.", self.new_key())

    def session_fork(self, id_: object, params: Message) -> None:
        parent = self.live.get(params["sessionId"]) or Conversation.open(params["sessionId"])
        if parent is None:
            self.refuse(id_, -32002, "Resource not found")
            return
        conversation = Conversation(self.new_id(), params["cwd"])
        conversation.messages = list(parent.messages)
        conversation.save()
        self.live[conversation.id] = conversation
        self.parents[conversation.id] = parent.id
        if "replays forks" in HABITS:
            self.replay(conversation)
        if "replays forks late" in HABITS:  # as opencode does: without the first message
            part = Conversation(conversation.id, conversation.cwd)
            part.messages = conversation.messages[1:]
            self.replay(part)
        if "forks under the parent" in HABITS:
            self.replay_under(parent.id, conversation)
        self.at = conversation
        self.answer(id_, {"sessionId": conversation.id, **self.options(conversation)})

    def replay_under(self, parent: str, conversation: Conversation) -> None:
        for message in conversation.messages:
            content = {"type": "text", "text": message["text"]}
            kind = "user_message_chunk" if message["role"] == "user" else "agent_message_chunk"
            self.update_of(parent, {"sessionUpdate": kind, "messageId": self.new_key(), "content": content})

    def title_of(self, path: Path) -> str:
        given = path.with_suffix(".title")
        return given.read_text() if given.exists() else f"Title of {path.stem}"

    def session_list(self, id_: object, params: Message) -> None:
        listed = [
            {"sessionId": path.stem, "cwd": json.loads(path.read_text())["cwd"], "title": self.title_of(path)}
            for path in sorted(HOME.glob("*.json"))
        ]
        self.answer(id_, {"sessions": [one for one in listed if params.get("cwd") in (None, one["cwd"])]})

    def session_close(self, id_: object, params: Message) -> None:
        if "refuses to close" in HABITS:
            self.refuse(id_, -32603, "not now")
            return
        self.live.pop(params["sessionId"], None)
        self.answer(id_, {})

    def session_delete(self, id_: object, params: Message) -> None:
        if "keeps the deleted" not in HABITS:
            (HOME / f"{params['sessionId']}.json").unlink(missing_ok=True)
        self.answer(id_, {})

    def session_set_mode(self, id_: object, params: Message) -> None:
        self.live[params["sessionId"]].mode = params["modeId"]
        if "speaks of its mode" in HABITS:  # as Gemini does
            self.at = self.live[params["sessionId"]]
            self.chunk("agent_message_chunk", f"[MODE_UPDATE] {params['modeId']}", self.new_key())
        if "tells its options" in HABITS:
            self.at = self.live[params["sessionId"]]
            self.update("current_mode_update", currentModeId=params["modeId"])
        self.answer(id_, {})

    def session_set_config_option(self, id_: object, params: Message) -> None:
        if params["value"] not in [mode["id"] for mode in MODES]:
            self.refuse(id_, -32602, "no such value")
            return
        conversation = self.live[params["sessionId"]]
        conversation.mode = params["value"]
        self.answer(id_, self.options(conversation))

    # Turns

    def session_prompt(self, id_: object, params: Message) -> None:
        if params["sessionId"] not in self.live:
            self.refuse(id_, -32002, "Resource not found")
            return
        self.at = conversation = self.live[params["sessionId"]]
        told = [block.get("text") or block.get("resource", {}).get("text") or "" for block in params["prompt"]]
        if "names files" in HABITS:  # as Copilot does: what is attached is in a file, and the model hears its name
            told = [block.get("text") or "<tagged_files>resource.txt</tagged_files>" for block in params["prompt"]]
        key = f"user-{uuid.uuid4()}"
        conversation.messages.append({"role": "user", "text": "\n".join(told), "id": key})
        if "loses prompts" not in HABITS:
            conversation.save()
        if V2:
            self.update("user_message", messageId=key, content=params["prompt"])
            self.update("state_update", state="running")
            self.answer(id_, {"messageId": key})
        self.answering = ""
        own = params["prompt"][0].get("text", "")
        if "echoes" in HABITS:
            for word in re.findall(r"\S+\s*", own):
                self.chunk("user_message_chunk", word, None)
        if "titles itself" in HABITS and len(conversation.messages) == 1:
            self.update("session_info_update", title=told[0].split("\n")[0][:60])
        if "joins blocks" in HABITS:  # as Gemini does: what is attached is mentioned, and all is one text
            mentions = [block.get("text") or f"@{block['resource']['uri']}" for block in params["prompt"]]
            own = "".join(mentions).splitlines()[0]
        end = self.obey(own)
        if self.answering:
            conversation.messages.append({"role": "agent", "text": self.answering, "id": f"a-{uuid.uuid4()}"})
        conversation.save()
        if end is None:
            error = {"code": -32603, "message": "Internal error", "data": {"details": "the quota is used up"}}
            if V2:
                self.update("state_update", state="idle", stopReason="error", error=error)
            else:
                self.refuse(id_, -32603, "Internal error", error["data"])
        elif V2:
            self.update("state_update", state="idle", _meta={"cost": 3}, **end)
        else:
            self.answer(id_, {**end, "_meta": {"cost": 3}})
        if own.startswith("later "):
            time.sleep(0.05)
            self.say(own[6:])

    def say(self, text: str, pause: float = 0) -> None:
        key = self.new_key()
        for word in re.findall(r"\S+\s*", text):
            self.chunk("agent_message_chunk", word, key)
            self.answering += word
            time.sleep(pause)

    def obey(self, words: str) -> Message | None:  # noqa: PLR0915
        """Do what the prompt says; None is a failure."""
        word, _, rest = words.partition(" ")
        match word:
            case "remember":
                self.say("Noted.")
            case "recall":
                known = re.findall(r"remember (\w+)", self.at.context)
                self.say(" ".join(dict.fromkeys(known)) or "nothing")
            case "prompts":  # the user's messages, as the agent was sent them
                self.say(json.dumps([message["text"] for message in self.at.messages if message["role"] == "user"]))
            case "/plan":
                self.say(f"A plan {rest}." if len(self.heard[-1]["params"]["prompt"]) == 1 else "What?")
            case "seeds":
                self.say(str(self.at.context.count("conversation so far")))
            case "say":
                self.say(rest)
            case "slowly":
                self.say(rest, pause=0.02)
            case "count":
                self.say("".join(f"w{rest}.{at} " for at in range(200)) + "done.", pause=0.0005)
            case "mode":
                self.say(self.at.mode)
            case "change":
                self.at.mode = rest
                self.update("current_mode_update", currentModeId=rest)
            case "title":
                self.update("session_info_update", title=rest)
            case "tool":
                self.tool()
            case "open":
                self.update_call("Never done", status="in_progress")
                self.say("And on.")
            case "announce":
                return self.propose(known=True)
            case "propose":
                return self.propose(known=False)
            case "request":
                method, _, params = rest.partition(" ")
                said = self.ask(method, {"sessionId": self.at.id, **json.loads(params or "{}")})
                self.say(json.dumps(said.get("result", said.get("error"))))
            case "run":
                self.run_in_terminal(rest)
            case "shell":
                done = subprocess.run(["/bin/sh", "-c", rest], capture_output=True, text=True, check=False)
                self.say(f"{done.stdout}{done.stderr}.")
            case "raw":
                self.update_of(self.at.id, json.loads(rest))
            case "raws":
                for update in json.loads(rest):
                    self.update_of(self.at.id, update)
                self.say("waiting ")
                return self.wait()
            case "notify":
                method, _, params = rest.partition(" ")
                self.send({"method": method, "params": {"sessionId": self.at.id, **json.loads(params or "{}")}})
            case "heard":
                self.say(json.dumps([message for message in self.heard if message.get("method") == rest]))
            case "flood":
                for _ in range(int(rest)):
                    self.chunk("agent_message_chunk", "x" * 1000, "flood")
                self.answering = "flooded"
            case "long":
                self.chunk("agent_message_chunk", "x" * int(rest), self.new_key())
            case "batch":
                sys.stdout.write('[{"jsonrpc":"2.0","method":"session/update","params":{}}]\n')
                self.say("sent")
            case "cancellable":
                key = self.update_call("Dig", status="in_progress", capabilities={"cancel": {}})
                while (message := self.read()) is not None and message.get("method") != "tool_call/cancel":
                    pass
                self.answer((message or {}).get("id"), {})
                self.update("tool_call_update", toolCallId=key, status="cancelled", capabilities=None)
            case "wait":
                self.say("waiting ")
                return self.wait()
            case "stderr":
                os.write(2, json.loads(rest).encode())
            case "die":
                self.say("goodb")
                print("I have seen too much", json.loads(rest or '""'), file=sys.stderr, flush=True)
                os._exit(7)
            case "fail":
                return None
            case _:
                pass
        return {"stopReason": "end_turn"}

    def _session_steering(self, id_: object, params: Message) -> None:
        """Take what comes while no turn runs, as adapters do: they leave it, or begin a turn that they do not end."""
        if params.get("_meta", {}).get("steering", {}).get("idleBehavior") == "promptRequired":
            self.answer(id_, {"outcome": "promptRequired", "reason": "noRunningTurn"})
            return
        self.answer(id_, {"outcome": "startedNewTurn"})
        self.say("A turn of my own.")

    def _session_rename(self, id_: object, params: Message) -> None:
        (HOME / f"{params['sessionId']}.title").write_text(params["title"])
        self.answer(id_, {})

    def steered(self, message: Message) -> bool:
        """Take what comes into the running turn; return whether that ends it."""
        text = message["params"]["prompt"][0]["text"]
        if text == "too late":  # as if the turn had ended just now
            self._session_steering(message["id"], message["params"])
            return True
        if text == "fail":
            self.answer(message["id"], {"outcome": "failed"})
            return False
        self.at.messages.append({"role": "agent", "text": self.answering, "id": f"a-{uuid.uuid4()}"})
        self.at.messages.append({"role": "user", "text": text, "id": f"user-{uuid.uuid4()}"})
        self.answering = ""
        if "answers late" not in HABITS:
            self.answer(message["id"], {"outcome": "injected"})
        if V2 or "echoes" in HABITS:  # as Codex does in version 2
            self.chunk("user_message_chunk", text, self.new_key())
        self.say(f"Aye: {text}. ")
        if "answers late" in HABITS:
            self.answer(message["id"], {"outcome": "injected"})
        return text == "enough"

    def wait(self) -> Message | None:
        while (message := self.read()) is not None:
            if message.get("method") == "_session/steering" and "ignores steering" in HABITS:
                self.say("Not now. ")
                continue
            if message.get("method") == "_session/steering" and self.steered(message):
                return {"stopReason": "end_turn"}
            if message.get("method") == "session/cancel" and "ignores cancel" not in HABITS:
                break
        else:
            while "ignores the end" in HABITS:
                time.sleep(60)
            sys.exit(0)
        self.say("stopped")
        return {"stopReason": "end_turn" if "ends cancelled turns" in HABITS else "cancelled"}

    def update_call(self, title: str, **members: object) -> str:
        key = f"call-{uuid.uuid4()}"
        kind = "tool_call_update" if V2 else "tool_call"
        self.update(kind, toolCallId=key, title=title, kind="execute", **members)
        self.at.messages.append({"role": "tool", "text": title, "id": key})
        return key

    def tool(self) -> None:
        self.say("Let me see. ")
        key = self.update_call("Look", status="in_progress", rawInput={"at": "/x"})
        content = [{"type": "content", "content": {"type": "text", "text": "seen"}}]
        self.update("tool_call_update", toolCallId=key, status="completed", content=content)
        self.say("Done.")

    def propose(self, *, known: bool) -> Message | None:
        """Ask for permission; a call that is known is asked about by its id alone, as vibe does."""
        key = f"call-{uuid.uuid4()}"
        whole = {"toolCallId": key, "title": "Write a file", "kind": "edit", "rawInput": {"path": "/f"}}
        call = whole
        if known:
            self.update("tool_call_update" if V2 else "tool_call", **whole, status="pending")
            call = {"toolCallId": key}
        about: Message = {"toolCall": call}
        if V2:
            about = {"title": "May I?", "subject": {"type": "tool_call", "toolCall": call}}
        about |= {"options": OPTIONS, "_meta": {"agent": "x"}}
        said = self.ask("session/request_permission", {"sessionId": self.at.id, **about})
        result: Message = said.get("result") or {}
        outcome: Message = result.get("outcome") or {}
        if outcome.get("optionId") == "yes":
            self.update("tool_call_update", toolCallId=key, status="completed")
        self.say(json.dumps(outcome))
        return {"stopReason": "end_turn"}

    def run_in_terminal(self, command: str) -> None:
        session = {"sessionId": self.at.id}
        made = self.ask("terminal/create", {**session, "command": "/bin/sh", "args": ["-c", command]})
        if "error" in made:
            self.say(json.dumps(made["error"]))
            return
        terminal = {**session, "terminalId": made["result"]["terminalId"]}
        content = [{"type": "terminal", "terminalId": terminal["terminalId"]}]
        key = self.update_call(command, status="in_progress", content=content)
        self.ask("terminal/wait_for_exit", terminal)
        printed = self.ask("terminal/output", terminal)["result"]["output"]
        self.ask("terminal/release", terminal)
        self.update("tool_call_update", toolCallId=key, status="completed")
        self.say(printed)


if __name__ == "__main__":
    WrappedAgent().serve()
