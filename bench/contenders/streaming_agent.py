"""The agent behind every proxy: it writes lines that were encoded before, so that nothing but the proxy costs anything.

A prompt ``burst N`` sends N updates, one system call each; ``timed N MS`` sends N with a pause after each, and the time
of day in each, in nanoseconds.
"""

from __future__ import annotations

import json
import os
import sys
import time

SESSION = "0123456789abcdef0123456789abcdef"
ANSWERS = {
    "initialize": {"protocolVersion": 1, "agentCapabilities": {"loadSession": False}},
    "session/new": {"sessionId": SESSION},
    "session/prompt": {"stopReason": "end_turn"},
}


def update(text: str) -> bytes:
    content = {"type": "text", "text": text}
    params = {"sessionId": SESSION, "update": {"sessionUpdate": "agent_message_chunk", "content": content}}
    return json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params}).encode() + b"\n"


def stream(text: str) -> None:
    what, *numbers = text.split()
    line = update("a few words of an answer, say 32")
    for _ in range(int(numbers[0])):
        if what == "timed":
            time.sleep(int(numbers[1]) / 1000)
            line = update(f"sent at {time.monotonic_ns()} ")
        os.write(1, line)


for request in map(json.loads, sys.stdin):
    if request.get("method") == "session/prompt":
        stream(request["params"]["prompt"][-1]["text"])
    if "id" in request:
        answer = {"jsonrpc": "2.0", "id": request["id"], "result": ANSWERS.get(request.get("method"), {})}
        os.write(1, json.dumps(answer).encode() + b"\n")
