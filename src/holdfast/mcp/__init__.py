"""The MCP servers a client gives to a session, as its agent uses them.

`Toolbox` is all servers of one session; `servers` reads them from the wire, `config` from a file. Each connection has
one task that opens and closes it (`connection`), and only `wire`, `pipes` and `web` know the official SDK: it takes
half a second to load, so it is loaded, beside the event loop, when a session first names a server. Nothing here knows
ACP messages or the engine.
"""

from holdfast.mcp.servers import HttpServer, Server, SseServer, StdioServer, read_servers
from holdfast.mcp.toolbox import Toolbox
from holdfast.mcp.values import Limits, Progress, Prompt, Resource, ServerStatus, Tool, ToolResult

__all__ = [
    "HttpServer",
    "Limits",
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
