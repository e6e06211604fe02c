"""An MCP server, by hand, that behaves as it is told. Its tools are the same however it behaves.

    mcp_server.py [silent|exit|blab|brief|listless|garbage|gush|stderr|deaf|family|modern] …

With `MARKS` in its environment it appends its pid, and those of its children, to that file, a line each; with `HEARD`
the methods of all that it is told or asked, and what comes of its nagging.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from base64 import b64encode
from pathlib import Path
from typing import Any
from urllib.parse import quote

MANNERS = frozenset(sys.argv[1:])

TOOLS = (
    "echo", "env", "cwd", "wait", "progress", "creep", "hurry", "crash", "flood", "long", "fail", "refuse", "elicit",
    "visit", "nag", "roots", "whisper", "parting",
)  # fmt: skip

HINTS = {"cwd": {"readOnlyHint": True}, "crash": {"readOnlyHint": True, "destructiveHint": True}}
"""What is said of some tools; of the last, what cannot be."""


def main() -> None:
    mark(os.getpid())
    if "family" in MANNERS:
        have_children()
    while len(Path(os.environ.get("MARKS", os.devnull)).read_text().split()) < int(os.environ.get("TOGETHER", "0")):
        time.sleep(0.01)  # none begins before all are there
    if "deaf" in MANNERS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "stderr" in MANNERS:
        for n in range(80_000):
            sys.stderr.write(f"{n} is a line nobody reads, of a server that says a lot\n")
        sys.stderr.write("the very last words\n")
        sys.stderr.flush()
    if "blab" in MANNERS:
        said = " ".join(sys.argv)
        sys.stderr.write(f"{said}\n{quote(said)}\n{b64encode(said.encode()).decode()}\n")
        sys.stderr.flush()
    if "exit" in MANNERS:
        sys.stderr.write(f"the key {os.environ.get('KEY')} does not fit\n")
        sys.exit(3)
    if "garbage" in MANNERS:
        os.write(
            1, b"Welcome to the server!\n\n\xff\xfe\n{\n[]\nnull\n42\n" + b"x" * 100_000 + b'\n{"jsonrpc": "2.0"}\n'
        )
    if "gush" in MANNERS:
        flood("garbage", 20)
    for text in sys.stdin:
        if "silent" not in MANNERS:
            hear(json.loads(text))
    while "deaf" in MANNERS:
        signal.pause()


def mark(pid: int) -> None:
    if "MARKS" in os.environ:
        with Path(os.environ["MARKS"]).open("a") as file:
            file.write(f"{pid}\n")


def have_children() -> None:
    """One in our group, one in a session of its own, one whose parent is gone."""
    for manner in ("group", "session", "orphan"):
        if (pid := os.fork()) != 0:
            if manner == "orphan":
                os.waitpid(pid, 0)
            continue
        if manner != "group":
            os.setsid()
        if manner == "orphan" and os.fork():
            os._exit(0)
        mark(os.getpid())
        os.closerange(0, 3)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            signal.pause()


def say(message: dict[str, Any]) -> None:
    if "garbage" in MANNERS:
        os.write(1, b"debug: about to answer\n")
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer(id_: object, result: object) -> None:
    say({"id": id_, "result": result})


def refuse(id_: object, code: int, message: str, data: object = None) -> None:
    say({"id": id_, "error": {"code": code, "message": message, "data": data}})


def hear(message: dict[str, Any]) -> None:
    if "method" in message:
        note(message["method"])
    match message.get("method"):
        case "initialize" if "modern" in MANNERS:
            refuse(message["id"], -32022, "no handshakes", {"supported": ["2026-07-28"], "requested": "2025-11-25"})
        case "server/discover":
            capabilities: dict[str, Any] = {"tools": {}}
            found: dict[str, Any] = {
                "supportedVersions": ["2026-07-28"],
                "capabilities": capabilities,
                "resultType": "complete",
            }
            answer(message["id"], {**found, "ttlMs": 0, "cacheScope": "private"})
        case "initialize":
            offers: dict[str, Any] = {"tools": {}, "resources": {}, "prompts": {}}
            version = message["params"]["protocolVersion"]
            info = {"name": "hostile", "version": "0"}
            answer(message["id"], {"protocolVersion": version, "capabilities": offers, "serverInfo": info})
            if "brief" in MANNERS:
                os._exit(4)
        case "tools/list" if "listless" in MANNERS:
            refuse(message["id"], -32603, "I have lost my list")
        case "tools/list":
            tools = [{"name": it, "inputSchema": {"type": "object"}, "annotations": HINTS.get(it)} for it in TOOLS]
            half = tools[:5] if not message.get("params", {}).get("cursor") else tools[5:]
            page: dict[str, Any] = {"tools": half} if half != tools[:5] else {"tools": half, "nextCursor": "5"}
            if "modern" in MANNERS:
                page |= {"ttlMs": 0, "cacheScope": "private", "resultType": "complete"}
            answer(message["id"], page)
        case "resources/list":
            answer(message["id"], {"resources": [{"uri": "test://a", "name": "a", "mimeType": "text/plain"}]})
        case "resources/read":
            answer(message["id"], {"contents": [{"uri": message["params"]["uri"], "text": "read"}]})
        case "prompts/list":
            answer(message["id"], {"prompts": [{"name": "greet", "arguments": [{"name": "who", "required": True}]}]})
        case "prompts/get":
            text = f"Greet {message['params']['arguments']['who']}"
            answer(message["id"], {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]})
        case "tools/call":
            call(message["id"], message["params"])
        case "notifications/cancelled":
            mark(-int(message["params"]["requestId"]))
        case _:
            if "id" in message and "method" in message:
                refuse(message["id"], -32601, "no such method")


def call(id_: Any, params: dict[str, Any]) -> None:  # noqa: PLR0915
    arguments: dict[str, Any] = params.get("arguments", {})
    match params["name"]:
        case "echo":
            done(id_, str(arguments.get("text")))
        case "env":
            done(id_, json.dumps(dict(os.environ)))
        case "cwd":
            done(id_, str(Path.cwd()))
        case "wait":
            mark(0)  # nobody will ever hear more of this
        case "progress":
            for n in (1, 2, 3):
                tell_progress(params, n, 3, f"step {n}")
                time.sleep(0.12)
            done(id_, "done")
        case "creep":
            for n in range(5):
                tell_progress(params, n, None, None)
                time.sleep(arguments["pause"])
            done(id_, "done")
        case "hurry":
            for n in range(int(arguments["steps"])):
                tell_progress(params, n, None, None)
            for _ in range(2):
                hear(json.loads(sys.stdin.readline()))  # something else first
            done(id_, "done")
        case "parting":
            about = {"progressToken": params["_meta"]["progressToken"], "progress": 1}
            told = line({"method": "notifications/progress", "params": about})
            os.write(1, told + line({"id": id_, "result": {"content": []}}) + told)
        case "crash":
            sys.stderr.write(f"I had {os.environ.get('KEY')} and it broke me\n")
            sys.stderr.flush()
            os._exit(9)
        case "flood":
            flood(arguments["of"], int(arguments.get("megabytes", 100)), params["_meta"]["progressToken"])
            done(id_, "flooded")
        case "long":
            done(id_, "z" * (20 << 20))
        case "fail":
            said = [{"type": "text", "text": f"{os.environ.get('KEY')} is wrong"}]
            answer(id_, {"content": said, "isError": True})
        case "refuse":
            refuse(id_, -32000, f"not with {os.environ.get('KEY')}")
        case "elicit":
            schema = {"type": "object", "properties": {"name": {"type": "string"}}}
            said = ask("elicitation/create", {"message": "Who?", "requestedSchema": schema})
            done(id_, json.dumps(said))
        case "visit":
            about = {"mode": "url", "message": "Sign in", "url": "https://a.test/sign-in", "elicitationId": "visit-1"}
            done(id_, json.dumps(ask("elicitation/create", about)))
        case "nag":
            done(id_, json.dumps(nag(int(arguments["times"]))))
        case "roots":
            done(id_, json.dumps(ask("roots/list", {})))
        case "whisper":
            sys.stderr.write(str(arguments.get("text")))
            sys.stderr.flush()
            done(id_, "")
        case other:
            refuse(id_, -32602, f"no tool {other}")


def flood(of: str, megabytes: int, token: object = None) -> None:
    """Say a lot, in pieces of 100 KB, none of which is worth anything to anybody."""
    long = "x" * 100_000
    match of:
        case "messages":
            piece = line({"method": "notifications/message", "params": {"level": "info", "data": long}})
        case "progress":
            about = {"progressToken": token, "progress": 1, "message": long}
            piece = line({"method": "notifications/progress", "params": about})
        case "answers":
            piece = line({"id": 1_000_000, "result": {"text": long}})
        case "requests":
            piece = line({"id": "again", "method": "roots/list", "params": {"_meta": {"why": long}}})
        case "short notifications":
            piece = line({"method": "notifications/tools/list_changed"}) * 1_000
        case "short requests":
            piece = line({"id": "again", "method": "roots/list"}) * 1_000
        case "short lines":
            piece = b"x\n" * 50_000
        case "one line":
            piece = long.encode()
        case "nothing":
            piece = b""
        case _:
            piece = long.encode() + b"\n"
    for _ in range(megabytes * 10):
        view = memoryview(piece)
        while view:
            view = view[os.write(2 if of == "stderr" else 1, view) :]


def line(message: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


def done(id_: object, text: str) -> None:
    answer(id_, {"content": [{"type": "text", "text": text}]})


def tell_progress(params: dict[str, Any], n: int, total: int | None, text: str | None) -> None:
    token = params["_meta"]["progressToken"]
    about = {"progressToken": token, "progress": n, "total": total, "message": text}
    say({"method": "notifications/progress", "params": {k: v for k, v in about.items() if v is not None}})


def ask(method: str, params: dict[str, Any]) -> object:
    """Ask the client; give its answer, whole."""
    say({"id": "asked", "method": method, "params": params})
    for text in sys.stdin:
        message = json.loads(text)
        if message.get("id") == "asked" and "method" not in message:
            return message.get("result") or message.get("error")
        hear(message)
    return None


def note(heard: str) -> None:
    if "HEARD" in os.environ:
        with Path(os.environ["HEARD"]).open("a") as file:
            file.write(f"{heard}\n")


def nag(times: int) -> list[str]:
    """Ask so many things at once; give what came of them, in the order in which that came."""
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    for n in range(times):
        say({"id": f"nag {n}", "method": "elicitation/create", "params": {"message": "?", "requestedSchema": schema}})
    heard: list[str] = []
    while len(heard) < times:
        message = json.loads(sys.stdin.readline())
        if str(message.get("id")).startswith("nag"):
            heard.append(message["result"]["action"])
            note(" ".join(heard))
    return heard


main()
