"""An agent that answers what it must and is rude in one way: ``rude_agent.py MANNER [SECONDS]``.

It needs nothing but Python.

flood         sends updates without an end once it is prompted
endless-line  writes a gigabyte without a newline once it is prompted
wrong-ids     answers every request but the first under an id that nobody used
daemon        leaves a process behind that has left its group, its session and its parent: a `sleep` of SECONDS
stubborn      ignores SIGTERM and the end of its input
stderr        writes to stderr without an end

Whatever the manner, it takes methods that it does not know as done.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from typing import Any

MANNER = sys.argv[1]
UPDATE = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "pebble "}}


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def update(session: str) -> None:
    send({"method": "session/update", "params": {"sessionId": session, "update": UPDATE}})


def flood(session: str) -> None:
    while True:
        update(session)


def endless_line(_session: str) -> None:
    for _ in range(1 << 10):
        sys.stdout.write("x" * (1 << 20))
    sys.stdout.flush()


def leave_a_daemon() -> None:
    if os.fork() == 0:
        subprocess.Popen(["sleep", sys.argv[2]], start_new_session=True)
        os._exit(0)


def write_to_stderr() -> None:
    while True:
        sys.stderr.write("complaint " * 1_000)


def prompted(session: str) -> dict[str, Any]:
    {"flood": flood, "endless-line": endless_line}.get(MANNER, update)(session)
    return {"stopReason": "end_turn"}


def result(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            return {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}, "authMethods": []}
        case "session/new":
            return {"sessionId": uuid.uuid4().hex}
        case "session/prompt":
            return prompted(params["sessionId"])
        case _:
            return {}


def main() -> None:
    if MANNER == "daemon":
        leave_a_daemon()
    if MANNER == "stderr":
        threading.Thread(target=write_to_stderr, daemon=True).start()
    if MANNER == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            wrong = MANNER == "wrong-ids" and message["method"] != "initialize"
            answer = result(message["method"], message["params"])
            send({"id": f"wrong {message['id']}" if wrong else message["id"], "result": answer})
    while MANNER == "stubborn":
        time.sleep(1)


main()
