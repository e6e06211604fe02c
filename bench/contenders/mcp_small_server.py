"""An MCP server that is there at once: the standard library's JSON, and a handshake."""

import json
import sys

for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "initialize":
        version = message["params"]["protocolVersion"]
        about = {"protocolVersion": version, "capabilities": {}, "serverInfo": {"name": "small", "version": "0"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": about}), flush=True)
    elif "id" in message:
        error = {"code": -32601, "message": "no such method"}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}), flush=True)
