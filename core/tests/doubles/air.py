"""JetBrains AIR as a client: what the adapters that are made for it expect of it.

AIR itself is not public. Its adapters are: @agentclientprotocol/claude-agent-acp 0.100.0 (`dist/acp-agent.js`,
`dist/session-index/`) and @agentclientprotocol/codex-acp 2.6.0 (`dist/index.js`). They parse its requests, and their
comments say what it does with the answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

    from core.tests.support.acp import Client

DECLARED = (
    "sessionIndex", "loadReplayEnd", "diffPatch", "asyncTasks", "sessionFailure", "nativeSubagentSessions",
    "recommendedValue", "customInstructions",
)  # fmt: skip


class Air:
    """One connection of AIR's to one agent."""

    def __init__(self, client: Client, *declared: str) -> None:
        self.client = client
        self.declared = declared or DECLARED
        self.served: frozenset[str] = frozenset()
        """What the agent serves of the session index and the rest."""
        self.meta: dict[str, Any] = {}

    async def start(self) -> Air:
        """Introduce itself, and note what the agent serves."""
        air = {"version": 1, "capabilities": list(self.declared)}
        answer = await self.client.initialize(_meta={"jetbrains": {"air": air}})
        self.meta = answer.get("_meta") or {}
        self.served = frozenset(self.meta.get("jetbrains", {}).get("air", {}).get("capabilities", ()))
        return self

    # Steering

    @property
    def can_steer(self) -> bool:
        """Whether its composer offers to steer: a member of its own at the top of `_meta`, and no capability."""
        return self.meta.get("steering", {}).get("supported") is True

    def begin_steering(self, session: str, text: str, *, begins_turn: bool = False) -> asyncio.Future[Any]:
        """Say something to an agent at work; by default it prompts itself where none is."""
        params: dict[str, Any] = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
        if not begins_turn:
            params["_meta"] = {"steering": {"idleBehavior": "promptRequired"}}
        return self.client.begin("_session/steering", params)

    async def steer(self, session: str, text: str, *, begins_turn: bool = False) -> str:
        """Do the same, and return what became of it."""
        answer: Any = await self.begin_steering(session, text, begins_turn=begins_turn)
        return answer["outcome"]

    # The list of sessions

    async def page(self, cwd: str | None = None, cursor: str | None = None, **wanted: object) -> dict[str, Any]:
        """Ask for a page of its list, with what it wants in a place of its own."""
        params: dict[str, Any] = {"_meta": {"jetbrains": {"air": {"list": wanted}}}}
        params |= {} if cwd is None else {"cwd": cwd}
        return await self.client.ask("session/list", params if cursor is None else {**params, "cursor": cursor})

    async def row(self, session: str) -> dict[str, Any] | None:
        """Ask for what is known of one session; None if that is nothing."""
        rows = (await self.client.ask("_session/batch_get", {"sessionIds": [session]}))["sessions"]
        return rows[0] if rows else None

    async def subscribe(self, cwd: str) -> str:
        """Ask to be told what changes in the list of a directory."""
        return (await self.client.ask("_session/list/subscribe", {"cwd": cwd}))["subscriptionId"]

    def changes(self, subscription: str) -> list[dict[str, Any]]:
        """Return what it was told of that, in order."""
        told = [it["params"] for it in self.client.heard if it.get("method") == "_session/list/changes"]
        return [it for it in told if it["subscriptionId"] == subscription]

    def changed(self, subscription: str) -> dict[str, dict[str, Any]]:
        """Return by session the newest row that it was told."""
        return {row["sessionId"]: row for it in self.changes(subscription) for row in it["sessions"]}

    def removed(self, subscription: str) -> set[str]:
        """Return the sessions that it was told are gone."""
        return {session for it in self.changes(subscription) for session in it["removed"]}


def of_air(row: dict[str, Any]) -> dict[str, Any]:
    """Return what a row says for AIR alone."""
    return row["_meta"]["jetbrains"]["air"]
