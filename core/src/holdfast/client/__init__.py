"""Drive any ACP agent from Python, in either protocol version.

::

    async with holdfast.connect("gemini", "--acp") as agent:            # a command; or an `Agent` of this process
        session = await agent.new_session(cwd=Path.cwd())
        async for update in session.prompt("Explain this repo"):        # ends with the turn
            print(update)
        print(session.history.markdown())
        async for info in agent.sessions():
            print(info.id, info.title)

- `connect(*command)` starts the agent and asks it for version 2; one that answers in version 1 is spoken to in that.
  When the block is left, what is still running is ended, the agent's process and its children with it.
- `Connection` is the agent: `agent` (its name), `protocol`, `capabilities`, `can("load")`, `auth_methods`,
  `authenticate`, `logout`, `new_session`, `load`, `resume`, `fork`, `sessions`, `delete`, `request`, `notify`.
- `ClientSession` is one conversation: `prompt`, `ask_text`, `cancel`, `updates`, `history`, `title`, `mode`/`modes`,
  `model`/`models`, `options`, `commands`, `usage`, `set_mode`, `set_model`, `set_option`, `fork`, `close`.
- `ClientTurn` is a turn: iterate over it for updates, or `await` it for its stop reason. Leaving it early (``break``,
  an exception, a cancelled task) cancels it; inside ``async with session.prompt(…) as turn`` its end is waited for.
- `SessionUpdate` is an update, in version 2's shape whatever the agent speaks: `kind`, `key`, `text` (of a piece of a
  message) and `update()`, the JSON object. The last one of a turn is the idle `state_update`.

What the agent asks of us is refused unless `connect` is told otherwise:

- ``permissions``: ``"deny"``, ``"allow"`` or ``async (session, Permission) -> option id | True | False | None``
- ``questions``: ``async (session | None, Elicitation) -> dict (a form's content) | ElicitationAnswer | None (no)``
- ``files``: True for the session's own directories, or the directories that may be read and written instead
- ``terminals``: True to run the agent's commands, in the session's directories, until the session ends
- ``on_request``, ``on_notification``: functions for methods that are not of the protocol

Nothing here knows stores or engines; an agent of this process is served by `in_process`, which is loaded only then.
"""

from holdfast.client.connecting import connect
from holdfast.client.connection import AgentInfo, Connection
from holdfast.client.history import SessionHistory
from holdfast.client.listed_session import ListedSession
from holdfast.client.session import ClientSession
from holdfast.client.turn import ClientTurn
from holdfast.client.updates import SessionUpdate, UpdateStream

__all__ = [
    "AgentInfo",
    "ClientSession",
    "ClientTurn",
    "Connection",
    "ListedSession",
    "SessionHistory",
    "SessionUpdate",
    "UpdateStream",
    "connect",
]

for _public in (ClientSession, ClientTurn, Connection, connect):
    _public.__module__ = "holdfast"  # where everybody imports them from
for _public in (AgentInfo, ListedSession, SessionHistory, SessionUpdate, UpdateStream):
    _public.__module__ = "holdfast.client"
