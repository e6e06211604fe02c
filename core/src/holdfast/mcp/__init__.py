"""The MCP servers that a client gives to a session, as its agent uses them.

`Toolbox` holds all servers of one session. `servers` parses them from requests, `config` from a file; `secrets` keeps
their secrets out of what people read. Each server has a `ServerConnection`, whose task opens and closes it. Only
`sdk_client` and `streams` import the official SDK. It takes half a second to load, so it is loaded in a thread when a
session first names a server. Nothing here knows ACP messages or the engine.
"""

from holdfast.mcp.servers import HttpServer, Server, SseServer, StdioServer, read_servers
from holdfast.mcp.toolbox import Toolbox
from holdfast.mcp.types import McpLimits, Progress, Prompt, Resource, ServerStatus, Tool, ToolResult

__all__ = [
    "HttpServer",
    "McpLimits",
    "Progress",
    "Prompt",
    "Resource",
    "Server",
    "ServerStatus",
    "SseServer",
    "StdioServer",
    "Tool",
    "ToolResult",
    "Toolbox",
    "read_servers",
]
