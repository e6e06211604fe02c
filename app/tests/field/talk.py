"""A session as a client of either protocol version drives it, and its history as that client holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

from app.tests.field.client import Refused

if TYPE_CHECKING:
    from app.tests.field.client import Client

ROLES = {"user": "user", "agent": "agent", "thought": "agent_thought"}


class Entry(NamedTuple):
    """One thing in a history: a message with its text, or a tool call with its status."""

    kind: str
    id: str | None
    text: str
    status: str = ""


class Talk:
    """One session in one client."""

    def __init__(self, client: Client, session: str, options: list[dict[str, Any]], since: int) -> None:
        self.client, self.session, self._since = client, session, since
        self.options = {option.get("id") or option["configId"]: option for option in options}
        self.prompts: list[str] = []

    @classmethod
    async def new(cls, client: Client) -> Self:
        """Create a session."""
        since = len(client.updates)
        answer = await client.request("session/new", _opening(client))
        return cls(client, answer["sessionId"], answer.get("configOptions") or _modes(answer), since)

    @classmethod
    async def load(cls, client: Client, session: str) -> Self:
        """Load a session with its history."""
        since = len(client.updates)
        if client.version == 2:
            params = {**_opening(client), "sessionId": session, "replayFrom": {"type": "start"}}
            answer = await client.request("session/resume", params)
        else:
            answer = await client.request("session/load", {**_opening(client), "sessionId": session})
        opened: dict[str, Any] = answer or {}
        return cls(client, session, opened.get("configOptions") or _modes(opened), since)

    async def fork(self) -> Talk:
        """Fork the session at its end."""
        since = len(self.client.updates)
        answer = await self.client.request("session/fork", {**_opening(self.client), "sessionId": self.session})
        return Talk(self.client, answer["sessionId"], answer.get("configOptions") or [], since)

    async def prompt(self, text: str) -> str:
        """Send a prompt and wait for the end of its turn; return what the agent said."""
        since = len(self.client.updates)
        await self.end_of(self.begin(text), since)
        return said(self.client.of(self.session, since))

    def begin(self, text: str) -> Any:
        """Send a prompt."""
        self.prompts.append(text)
        params = {"sessionId": self.session, "prompt": [{"type": "text", "text": text}]}
        return self.client.begin("session/prompt", params)

    async def end_of(self, answer: Any, since: int) -> str:
        """Wait for the end of a turn; return its stop reason."""
        result = await answer
        if self.client.version == 1:
            return result["stopReason"]
        await self.client.until(lambda: self._idle(since), "the turn is over")
        return str(self._idle(since)[-1].get("stopReason"))

    def _idle(self, since: int) -> list[dict[str, Any]]:
        """Return where the turn came to its end; an idle state before its beginning is that of the turn before."""
        told = self.client.of(self.session, since)
        begins = (at for at, it in enumerate(told) if it.get("state") == "running" or "message" in it["sessionUpdate"])
        return [it for it in told[next(begins, len(told)) :] if it.get("state") == "idle"]

    async def until_said(self, words: str, since: int) -> None:
        """Wait until the agent has said some words."""
        told = self.client
        await told.until(lambda: words in said(told.of(self.session, since)), f"{words!r} is said")

    def cancel(self) -> None:
        """Cancel the turn."""
        self.client.notify("session/cancel", {"sessionId": self.session})

    async def set_option(self, option: str, value: str) -> None:
        """Set an option."""
        params = {"sessionId": self.session, "configId": option, "value": value}
        if self.client.version == 2:
            params["type"] = "id"
        try:
            answer = await self.client.request("session/set_config_option", params)
            self.options = {it.get("id") or it["configId"]: it for it in answer["configOptions"]}
        except Refused:
            if option != "mode":
                raise
            await self.client.request("session/set_mode", {"sessionId": self.session, "modeId": value})

    def value(self, option: str) -> Any:
        """Return the value of an option, as this client was last told."""
        for update in reversed(self.client.of(self.session, self._since)):
            if update["sessionUpdate"] == "config_option_update":
                known = {it.get("id") or it["configId"]: it for it in update["configOptions"]}
                return known[option]["currentValue"]
            if update["sessionUpdate"] == "current_mode_update" and option == "mode" and not self.options:
                return update["currentModeId"]
        return self.options[option]["currentValue"]

    def history(self) -> list[Entry]:
        """Return the history as this client holds it."""
        return folded(self.client.of(self.session, self._since))


async def listed(client: Client) -> list[str]:
    """Return the ids of all sessions that are listed for the working directory."""
    ids: list[str] = []
    cursor = None
    while True:
        params = {"cwd": str(client.cwd)} | ({"cursor": cursor} if cursor else {})
        page = await client.request("session/list", params)
        ids += [it["sessionId"] for it in page["sessions"]]
        cursor = page.get("nextCursor")
        if not cursor:
            return ids


async def delete(client: Client, session: str) -> None:
    """Delete a session."""
    await client.request("session/delete", {"sessionId": session})


def _opening(client: Client) -> dict[str, Any]:
    return {"cwd": str(client.cwd)} | ({"mcpServers": []} if client.version == 1 else {})


def _modes(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the modes of an agent that has no options, as an option."""
    modes = answer.get("modes")
    if not modes:
        return []
    choices = [{"value": it["id"], "name": it["name"]} for it in modes["availableModes"]]
    return [{"id": "mode", "category": "mode", "currentValue": modes["currentModeId"], "options": choices}]


def text_of(content: Any) -> str:
    """Return the text of a content block, or of a list of them."""
    if isinstance(content, list):
        return "".join(map(text_of, cast("list[Any]", content)))
    return str(cast("dict[str, Any]", content).get("text", "")) if isinstance(content, dict) else ""


def said(updates: list[dict[str, Any]]) -> str:
    """Put together what the agent said."""
    return "".join(entry.text for entry in folded(updates) if entry.kind == "agent")


def folded(updates: list[dict[str, Any]]) -> list[Entry]:
    """Fold updates of either version into a history, by ids and, where there are none, by neighbourhood."""
    order: list[tuple[str, str | None, int]] = []
    texts: dict[tuple[str, str | None, int], str] = {}
    statuses: dict[tuple[str, str | None, int], str] = {}
    for update in updates:
        kind = update["sessionUpdate"]
        if kind in ("tool_call", "tool_call_update"):
            key = ("tool", update["toolCallId"], 0)
            texts[key] = update.get("title") or texts.get(key, "")
            statuses[key] = update.get("status") or statuses.get(key, "")
        elif (role := kind.removesuffix("_chunk").removesuffix("_message")) in ("user", "agent", "agent_thought"):
            id_ = update.get("messageId")
            last = order[-1] if order else None
            key = (role, id_, 0 if id_ else len(order) - (1 if last and last[:2] == (role, None) else 0))
            text = text_of(update.get("content"))
            texts[key] = texts.get(key, "") + text if kind.endswith("_chunk") else text
        else:
            continue
        if key not in order:
            order.append(key)
    return [Entry(key[0], key[1], texts[key], statuses.get(key, "")) for key in order]
