"""`Turn` as the author of an agent sees it: what was asked, and everything one can say."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

from holdfast.agent.messages import Message, OpenMessages
from holdfast.agent.tools import ToolCall, checked_block
from holdfast.errors import UsageError
from holdfast.model import (
    ALLOW_OR_REJECT,
    Elicitation,
    ElicitationAnswer,
    Permission,
    checked_event,
    checked_stop_reason,
    new_id,
    text_event,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence

    from holdfast.agent.client import ClientServices
    from holdfast.agent.messages import MessageKind
    from holdfast.agent.session import Session
    from holdfast.engine import LiveTurn
    from holdfast.mcp import ToolResult
    from holdfast.model import Entry, Event, History, PermissionOption, StopReason, ToolKind, Update
    from holdfast.workspace import Files


DEFAULT = -1.0
"""Stands for the limit that holds unless one is given."""


class Turn:
    """One turn: from a prompt to its answer."""

    def __init__(self, session: Session, turn: LiveTurn, text: str) -> None:
        self.session = session
        self.text = text
        """The prompt's plain text; for a slash command, what follows its name."""
        self.stop_reason: StopReason | None = None
        self._turn = turn
        self._messages = OpenMessages()

    @property
    def client(self) -> ClientServices | None:
        """The client that prompted: its files and terminals, as far as it offers them, and requests of one's own."""
        return self.session.services(self._turn)

    @property
    def prompt(self) -> Sequence[Update]:
        """The prompt's content blocks."""
        return self._turn.prompt

    @property
    def meta(self) -> Mapping[str, Any]:
        """The `_meta` of the prompt: what the client sent beside it, empty where that is nothing."""
        return self._turn.meta or {}

    @property
    def files(self) -> Files:
        """The files in the session's roots; what lies outside is refused."""
        return self.session.files()

    @property
    def cancelled(self) -> bool:
        """Whether the user wants it to stop. Awaits are interrupted anyway; loops that never wait look here."""
        return self._turn.cancelled

    @property
    def is_over(self) -> bool:
        """Whether nothing more can be said in it."""
        return not self._turn.running

    # Saying

    async def say(self, text: str) -> None:
        """Say something; raise `UsageError` for what is no string.

        Text said in a row is one message, however small the pieces. The next one begins after a tool call was opened
        or closed, a plan was shown or a thought was thought. What other tasks do meanwhile, as a tool that runs beside,
        does not cut it; tasks that talk at the same time each use a `message` of their own.
        """
        event = text_event("agent_message_chunk", self._messages.add_to("agent_message"), text)
        if event.plain_text:
            self._turn.emit(event)
        if self._turn.congested:
            await self._turn.drain()

    async def think(self, text: str) -> None:
        """Think aloud. Shown as thought, not as answer; pieces in a row are one thought, as with `say`."""
        event = text_event("agent_thought_chunk", self._messages.add_to("agent_thought"), text)
        if event.plain_text:
            self._turn.emit(event)
        if self._turn.congested:
            await self._turn.drain()

    def message(self, *, thought: bool = False) -> Message:
        """Begin a message by hand: ``async with turn.message() as message: await message.say("…")``."""
        return Message(self, "agent_thought" if thought else "agent_message")

    async def rewrite(self, text: str) -> None:
        """Replace all that was said in a row so far by something else. Version 1 clients keep what they were shown."""
        self.replace_message("agent_message", self._messages.add_to("agent_message"), text)

    async def rethink(self, text: str) -> None:
        """Replace all that was thought in a row so far, or think something whole."""
        self.replace_message("agent_thought", self._messages.add_to("agent_thought"), text)

    async def show(self, block: Mapping[str, Any]) -> None:
        """Say a content block that is not text, as an image."""
        await self.show_block("agent_message", self._messages.add_to("agent_message"), block)

    def tool(
        self,
        title: str,
        *,
        kind: ToolKind = "other",
        input: object = None,
        locations: Sequence[str | tuple[str, int]] = (),
        name: str | None = None,
        pending: bool = False,
        cancellable: bool = False,
    ) -> ToolCall:
        """Use a tool, visibly: ``async with turn.tool("Read file", kind="read") as call``.

        `name` is what programs call the tool. One that is `pending` waits for something, as the user's permission,
        until `call.begin()`. One that is `cancellable` can be cancelled by the user alone (version 2 clients): the
        ``async with`` block is cancelled then, the turn goes on behind it, and `call.cancelled` is true.
        """
        return ToolCall(self, title, kind, input, locations, name, pending=pending, cancellable=cancellable)

    async def call_tool(
        self,
        server: str,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        title: str | None = None,
        kind: ToolKind = "other",
        timeout: float | None = DEFAULT,  # noqa: ASYNC109
    ) -> ToolResult:
        """Call a tool of an MCP server, visibly: its progress, content and output are shown as a tool call.

        Raises what `session.mcp.call` raises; the tool call has failed then, and says why.
        """
        from holdfast.agent.mcp_calls import call_tool  # noqa: PLC0415  (not everybody has servers)

        shown = title or f"{server}: {tool}"
        return await call_tool(self, server, tool, arguments or {}, title=shown, kind=kind, timeout=timeout)

    async def plan(self, entries: Iterable[str | tuple[str, str] | tuple[str, str, str]], *, id: str = "plan") -> None:
        """Show the plan, whole: its entries, or entries with status, or with status and priority."""
        given = [(entry,) if isinstance(entry, str) else entry for entry in entries]
        full = [(*members, *("pending", "medium")[len(members) - 1 :]) for members in given]
        listed = [{"content": content, "status": status, "priority": priority} for content, status, priority in full]
        self.emit({"sessionUpdate": "plan_update", "plan": {"type": "items", "planId": id, "entries": listed}})

    async def plan_markdown(self, text: str, *, id: str = "plan") -> None:
        """Show the plan, whole, as a Markdown text. Version 1 clients are shown it as the only entry of a plan."""
        self.emit({"sessionUpdate": "plan_update", "plan": {"type": "markdown", "planId": id, "content": text}})

    async def compaction(self, summary: str) -> None:
        """Show that what was said so far has become this summary for the model. The user's history stays as it is.

        Version 1 clients are told if they asked for it.
        """
        content = [{"type": "text", "text": summary}]
        update: Update = {"compactionId": new_id("compaction"), "status": "completed", "summary": content}
        self.emit({"sessionUpdate": "compaction_update", **update})

    async def subagent(
        self,
        session_id: str,
        *,
        title: str | None = None,
        description: str | None = None,
        state: Literal["running", "idle"] | None = None,
    ) -> None:
        """Show another session that this one has started, and again what has changed of that.

        The protocol calls this unstable; version 1 clients are told if they asked for it.
        """
        about = {"title": title, "description": description, "state": None if state is None else {"state": state}}
        known = {name: value for name, value in about.items() if value is not None}
        self.emit({"sessionUpdate": "subagent_update", "sessionId": session_id, **known})

    async def usage(
        self,
        used: int,
        size: int,
        *,
        cost: float | None = None,
        currency: str = "USD",
        input_tokens: int = 0,
        output_tokens: int = 0,
    ) -> None:
        """Show how much of the model's context is used, and what the session has cost so far.

        `input_tokens` and `output_tokens` are what was taken since they were told last; the client is told their sum at
        the end of the turn, and `holdfast sessions stats` counts them.
        """
        update: Update = {"sessionUpdate": "usage_update", "used": used, "size": size}
        if cost is not None:
            update["cost"] = {"amount": cost, "currency": currency}
        self._emit(update)
        if input_tokens or output_tokens:
            before: Update = self._turn.answer.get("usage", {})
            taken = before.get("inputTokens", 0) + input_tokens, before.get("outputTokens", 0) + output_tokens
            usage = {"totalTokens": sum(taken), "inputTokens": taken[0], "outputTokens": taken[1]}
            self._turn.answer = {**self._turn.answer, "usage": usage}

    async def notice(
        self, title: str, description: str | None = None, *, severity: Literal["info", "warning", "error"] = "info"
    ) -> None:
        """Show the user something that is not part of the conversation and not stored."""
        update: Update = {"sessionUpdate": "notice", "severity": severity, "title": title}
        self._emit(update if description is None else {**update, "description": description})

    def stop(self, reason: StopReason) -> None:
        """Set why the turn ends, where it is not because all was said; raise `UsageError` for an unknown reason."""
        self.stop_reason = checked_stop_reason(reason)

    async def keep(self, data: Any) -> None:
        """Keep a private entry: a JSON value that belongs to the history, and that no client is shown.

        It is forked, cut and deleted with the turn it was kept in; `session.kept` reads it back.
        """
        self._turn.keep(data)

    # Asking

    async def allow(
        self,
        question: str,
        call: ToolCall | None = None,
        *,
        command: str | None = None,
        description: str | None = None,
        remember: str | None = None,
    ) -> bool:
        """Ask the user for permission. Nothing but a clear yes is one.

        The user is shown all that `call` shows: its kind, input, locations and content; or the `command` that would be
        run in the session's directory, where no tool call shows it. `description` says why it is asked. An answer the
        user gives for ever is remembered, for this session, under `remember` (unless said otherwise, the question
        with its command).
        """
        chosen = await self.choose(
            question, ALLOW_OR_REJECT, call, command=command, description=description, remember=remember
        )
        return chosen is not None and chosen.kind.startswith("allow")

    async def choose(
        self,
        question: str,
        options: Sequence[PermissionOption],
        call: ToolCall | None = None,
        *,
        command: str | None = None,
        description: str | None = None,
        remember: str | None = None,
    ) -> PermissionOption | None:
        """Ask the user for permission with answers of one's own; return the one that was chosen, or None.

        Only an option whose `kind` begins with ``allow`` is an approval. The rest is as with `allow`.
        """
        if not options or len({option.id for option in options}) < len(options):
            raise UsageError("a question needs options to choose from, each with an id of its own")
        if call is not None and command is not None:
            raise UsageError("a question is about a tool call or about a command; let the call show the command")
        operation = command and {"type": "command", "command": _checked_text(command), "cwd": self.session.cwd}
        permission = Permission(
            _checked_text(question),
            {} if call is None else {"toolCallId": call.id},
            tuple(options),
            subject=remember or "\n".join(filter(None, (question, command))),
            description=None if description is None else _checked_text(description),
            operation=operation or None,
        )
        return permission.chosen(await self._turn.ask(permission))

    async def ask(
        self, message: str, fields: Mapping[str, Any], *, required: Sequence[str] = ()
    ) -> dict[str, Any] | None:
        """Ask the user to fill in a form: names to JSON schemas, as ``{"name": {"type": "string"}}``.

        Return what was filled in, which fits the schemas; None where the user declines, where the answer does not fit,
        or where the client cannot show forms.
        """
        schema: Update = {"type": "object", "properties": {name: dict(field) for name, field in fields.items()}}
        if required:
            schema["required"] = list(required)
        params = {"mode": "form", "message": _checked_text(message), "requestedSchema": schema}
        answer = await self._elicit(Elicitation("form", params))
        return None if answer is None else {name: value for name, value in answer.items() if value is not None}

    async def ask_url(self, message: str, url: str, *, id: str | None = None) -> bool:
        """Ask the user to go to an address; return whether that was agreed to.

        With an `id`, call `complete_url` when the user is done there, so that the client can take the question away.
        """
        params = {"mode": "url", "message": _checked_text(message), "url": url, "elicitationId": id or new_id("elicit")}
        return await self._elicit(Elicitation("url", params)) is not None

    async def complete_url(self, id: str) -> None:
        """Notify the clients that what `ask_url` asked for under this id is done."""
        await self._turn.shown()
        for attachment in self._turn.session.attachments:
            if "url" in attachment.client.elicitation:
                attachment.client.notify("elicitation/complete", {"elicitationId": id})

    async def _elicit(self, question: Elicitation) -> dict[str, Any] | None:
        answer = await self._turn.ask(question)
        return (answer.content or {}) if isinstance(answer, ElicitationAnswer) and answer.action == "accept" else None

    # Looking back

    @property
    def said(self) -> Iterable[Entry]:
        """What was said in this turn so far."""
        return self._turn.history

    async def history(self) -> History:
        """Read all that was said in the session so far, this turn's prompt included, as its user sees it."""
        return await self.session.history(self._turn.history)

    # For the parts of a turn

    def absolute(self, path: str) -> str:
        """Return a path made absolute, as clients want paths."""
        return path if os.path.isabs(path) else os.path.normpath(os.path.join(self.session.cwd, path))  # noqa: PTH117, PTH118

    def emit(self, update: Update) -> None:
        """Emit any update, named as in the newest protocol version; what is said next is a new message."""
        self._messages.end()
        self._emit(update)

    def emit_beside(self, update: Update) -> None:
        """Emit an update that does not end the message which is being said."""
        self._emit(update)

    def emit_in_background(self, update: Update) -> None:
        """Emit an update of work that goes on beside the turns: in whatever turn runs now, or between turns."""
        self._turn.session.emit(checked_event(update))

    def work_in_background(self, item: Update, stop: Callable[[], Awaitable[None]]) -> None:
        """List work that goes on beside the turns, until `end_in_background`; `stop` makes it end."""
        self._turn.session.work_in_background(item, stop)

    def end_in_background(self, id: str) -> None:
        """List work no longer."""
        if self._turn.session.background is not None:
            self._turn.session.background.end(id)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Start something that is finished before the process ends in order."""
        self._turn.session.start(work)

    def offer_cancel(self, id: str, cancel: Callable[[], None]) -> None:
        """Allow clients to cancel a tool call or a terminal by itself."""
        self._turn.cancels[id] = cancel

    def withdraw_cancel(self, id: str) -> None:
        """Allow that no longer."""
        self._turn.cancels.pop(id, None)

    def end_messages(self) -> None:
        """End the message that is being said: the next text begins a new one."""
        self._messages.end()

    async def say_event(self, event: Event) -> None:
        """Emit a piece of a message."""
        self._turn.emit(event)
        await self.give_way()

    async def show_block(self, kind: MessageKind, message_id: str, block: Mapping[str, Any]) -> None:
        """Add a content block to a message."""
        self._emit({"sessionUpdate": f"{kind}_chunk", "messageId": message_id, "content": checked_block(block)})
        await self.give_way()

    def replace_message(self, kind: MessageKind, message_id: str, text: str) -> None:
        """Replace all of a message by a text."""
        self._emit({"sessionUpdate": kind, "messageId": message_id, "content": [{"type": "text", "text": text}]})

    async def give_way(self) -> None:
        """Wait while everybody who watches is behind."""
        if self._turn.congested:
            await self._turn.drain()

    def _emit(self, update: Update) -> None:
        self._turn.emit(checked_event(update))


def _checked_text(text: str) -> str:
    """Return a question as it is; raise `UsageError` where it is no text."""
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]  (what agent code says is unknown)
        raise UsageError(f"a question must be a string, not {type(text).__name__}")
    return text
