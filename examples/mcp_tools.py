"""Tools of MCP servers, without any model: `holdfast run examples/mcp_tools.py --mcp-config mcp.json`.

The servers are those that the editor gives to the session, and those of the file. Ask it ``time get_current_time
{"timezone": "UTC"}`` to call a tool, anything else to see what there is.
"""

import json

from holdfast import Agent, Turn
from holdfast.errors import McpError

agent = Agent("switchboard", version="1.0")


@agent.prompt
async def connect(turn: Turn) -> None:
    """Call the tool that the prompt names, or say which tools there are."""
    server, tool, arguments = (*turn.text.split(maxsplit=2), "", "", "")[:3]
    known = {(it.server, it.name): it for it in await turn.session.mcp.tools()}
    if (server, tool) not in known:
        await turn.say("\n".join(f"- {it.server} {it.name}: {it.description}" for it in known.values()) or "No tools.")
        return
    if not known[server, tool].read_only and not await turn.allow(f"Call {tool} of {server}?", remember=turn.text):
        await turn.say("Then not.")
        return
    try:
        result = await turn.call_tool(server, tool, json.loads(arguments or "{}"))
    except (McpError, ValueError) as e:
        await turn.say(f"That did not work: {e}")
    else:
        await turn.say(result.text)
