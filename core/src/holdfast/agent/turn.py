"""`Turn` as the author of an agent sees it: what was asked, and everything one can say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from holdfast.agent.decorators import called_as, unknown_name
from holdfast.agent.messages import Message
from holdfast.agent.questions import form_question, permission_question, url_question
from holdfast.agent.tools import ToolCall
from holdfast.agent.turn_output import AT_ONCE, TurnOutput, plan_entries
from holdfast.await_guard import awaited
from holdfast.model import ALLOW_OR_REJECT, ElicitationAnswer, checked_stop_reason, checked_text, new_id, text_event

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from holdfast.agent.client import ClientServices
    from holdfast.agent.session import Session
    from holdfast.engine import LiveTurn
    from holdfast.mcp import ToolResult
    from holdfast.model import Elicitation, Entry, History, PermissionOption, StopReason, ToolKind, Update
    from holdfast.workspace import Files


DEFAULT = -1.0
"""Stands for the limit that holds unless one is given."""


class Turn:
    """One turn: from a prompt to its answer."""

    __module__ = "holdfast"  # where everybody imports it from

    def __init__(self, session: Session, turn: LiveTurn, text: str) -> None:
        self.session: Session = session
        """The conversation it belongs to."""
        self.text: str = text
        """The prompt's plain text; for a slash command, what follows its name."""
        self.stop_reason: StopReason | None = None
        self._turn = turn
        self._output = TurnOutput(turn, session.cwd)
        self._messages = self._output.messages

    if not TYPE_CHECKING:  # type checkers say it too

        def __getattr__(self, name: str) -> object:
            from holdfast.agent.session import Session  # noqa: PLC0415  (a mistake)

            elsewhere = {"turn.session.{}": Session, "async with turn.tool(…) as call: await call.{}(…)": ToolCall}
            raise unknown_name("turn", self, name, elsewhere)

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
        """Say something to the user.

        Text said in a row is one message, however small the pieces. The next one begins after a tool call was opened or
        closed, a plan was shown or a thought was thought. What other tasks do meanwhile, as a tool that runs beside,
        does not cut it; tasks that talk at the same time each use a `message` of their own.

        Args:
            text: a piece of the answer.

        Raises:
            UsageError: `text` is no string.

        """
        event = text_event("agent_message_chunk", self._messages.add_to("agent_message"), text)
        if len(event.body) > AT_ONCE:
            await self._output.emit_text(event)
        elif event.plain_text and self._turn.emit(event):
            await self._turn.drain()

    async def think(self, text: str) -> None:
        """Think aloud. Shown as thought, not as answer; pieces in a row are one thought, as with `say`.

        Args:
            text: a piece of the thought.

        Raises:
            UsageError: `text` is no string.

        """
        await self._output.say(text_event("agent_thought_chunk", self._messages.add_to("agent_thought"), text))

    @called_as('async with turn.message() as message: await message.say("…")')
    def message(self, *, thought: bool = False) -> Message:
        """Begin a message by hand: ``async with turn.message() as message: await message.say("…")``.

        Args:
            thought: whether it is a thought, not an answer.

        Returns:
            The message, which is open until its ``async with`` block is left.

        """
        return Message(self._output, "agent_thought" if thought else "agent_message")

    async def rewrite(self, text: str) -> None:
        """Replace all that was said in a row so far by something else. Version 1 clients keep what they were shown.

        Args:
            text: what stands there instead.

        """
        await self._output.replace_message("agent_message", self._messages.add_to("agent_message"), text)

    async def rethink(self, text: str) -> None:
        """Replace all that was thought in a row so far, or think something whole.

        Args:
            text: what stands there instead.

        """
        await self._output.replace_message("agent_thought", self._messages.add_to("agent_thought"), text)

    async def show(self, block: Mapping[str, Any]) -> None:
        """Say a content block that is not text, as an image.

        Args:
            block: the block as the protocol has it: ``{"type": "image", "data": …, "mimeType": "image/png"}``.

        Raises:
            UsageError: it is no mapping, or not what its `type` says.

        """
        await self._output.show_block("agent_message", self._messages.add_to("agent_message"), block, "turn.show")

    @called_as('async with turn.tool("Read file", kind="read") as call:')
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

        Args:
            title: what is done, for people to read.
            kind: what kind of tool it is; editors have an icon for each.
            input: what the tool is called with, any JSON value.
            locations: the files it is about: paths, or paths with a line. Editors can follow the agent there.
            name: what programs call the tool.
            pending: whether it waits for something, as the user's permission, until `call.begin()`.
            cancellable: whether the user can cancel it alone (version 2 clients). The ``async with`` block is cancelled
                then, the turn goes on behind it, and `call.cancelled` is true.

        Returns:
            The call, which is shown when its ``async with`` block is entered, and ends with it.

        """
        return ToolCall(self._output, title, kind, input, locations, name, pending=pending, cancellable=cancellable)

    @called_as('await turn.call_tool("server", "tool", {"city": "Oslo"})')
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

        Args:
            server: the name of the server.
            tool: the name of the tool.
            arguments: what the tool is called with.
            title: what is done, for people to read; by default the names of server and tool.
            kind: what kind of tool it is.
            timeout: how many seconds the server may be silent; None is for ever.

        Returns:
            The tool's result, which the call has shown.

        Raises:
            ToolFailed: the tool gave an error. The call has failed, and says why; so with the others.
            ToolTimeout: the server was silent for too long.
            ServerUnavailable: the server is not there.

        """
        from holdfast.agent.mcp_calls import call_tool  # noqa: PLC0415  (not everybody has servers)

        shown = title or f"{server}: {tool}"
        return await call_tool(self, server, tool, arguments or {}, title=shown, kind=kind, timeout=timeout)

    @called_as('await turn.plan(["Look", ("Act", "in_progress")])')
    async def plan(
        self,
        entries: Iterable[str | tuple[str, str] | tuple[str, str, str] | Mapping[str, Any]],
        *,
        id: str = "plan",
    ) -> None:
        """Show the plan, whole.

        Args:
            entries: what is to be done: texts, or texts with a status (``pending``, ``in_progress``, ``completed``, or
                ``cancelled``: version 1 clients are shown no such entry), or with status and priority (``high``,
                ``medium``, ``low``); or each as the protocol has it: ``{"content": "Look", "status": "pending"}``.
            id: which plan, where there are several.

        Raises:
            UsageError: it is one text and no list, an entry is none of these, or there is no such status or priority.

        """
        plan = {"type": "items", "planId": id, "entries": plan_entries(entries)}
        self._output.emit({"sessionUpdate": "plan_update", "plan": plan}, "turn.plan")

    async def plan_markdown(self, text: str, *, id: str = "plan") -> None:
        """Show the plan, whole, as a Markdown text. Version 1 clients are shown it as the only entry of a plan.

        Args:
            text: the plan.
            id: which plan, where there are several.

        """
        plan = {"type": "markdown", "planId": id, "content": checked_text(text)}
        self._output.emit({"sessionUpdate": "plan_update", "plan": plan}, "turn.plan_markdown")

    async def compaction(self, summary: str) -> None:
        """Show that what was said so far has become a summary for the model. The user's history stays as it is.

        Version 1 clients are told if they asked for it.

        Args:
            summary: what the model has in its place.

        """
        content = [{"type": "text", "text": checked_text(summary)}]
        update: Update = {"compactionId": new_id("compaction"), "status": "completed", "summary": content}
        self._output.emit({"sessionUpdate": "compaction_update", **update}, "turn.compaction")

    @called_as('await turn.subagent(session_id, title="Tests")')
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

        Args:
            session_id: the id of the other session.
            title: its title.
            description: what it is for.
            state: what it does now.

        """
        about = {"title": title, "description": description, "state": None if state is None else {"state": state}}
        known = {name: value for name, value in about.items() if value is not None}
        self._output.emit({"sessionUpdate": "subagent_update", "sessionId": session_id, **known}, "turn.subagent")

    @called_as("await turn.usage(12_000, 200_000, cost=0.31)")
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

        Args:
            used: how many tokens the context holds.
            size: how many it can hold.
            cost: what the session has cost so far.
            currency: the currency of `cost`, by its ISO 4217 code.
            input_tokens: how many tokens the model has read since this was told last.
            output_tokens: how many it has written. The client is told the sums at the end of the turn, and ``holdfast
                sessions stats`` counts them.

        """
        update: Update = {"sessionUpdate": "usage_update", "used": used, "size": size}
        if cost is not None:
            update["cost"] = {"amount": cost, "currency": currency}
        self._output.emit_beside(update, "turn.usage")
        if input_tokens or output_tokens:
            self._output.add_usage(input_tokens, output_tokens)

    @called_as('await turn.notice("Out of disk space", severity="warning")')
    async def notice(
        self, title: str, description: str | None = None, *, severity: Literal["info", "warning", "error"] = "info"
    ) -> None:
        """Show the user something that is not part of the conversation and not stored.

        Args:
            title: what to tell, in a line.
            description: more of it.
            severity: how bad it is.

        """
        update: Update = {"sessionUpdate": "notice", "severity": severity, "title": title}
        shown = update if description is None else {**update, "description": description}
        self._output.emit_beside(shown, "turn.notice")

    def stop(self, reason: StopReason) -> None:
        """Set why the turn ends, where it is not because all was said.

        Args:
            reason: ``end_turn``, ``max_tokens``, ``max_turn_requests``, ``refusal`` or ``cancelled``.

        Raises:
            UsageError: there is no such reason.

        """
        self.stop_reason = checked_stop_reason(reason)

    async def keep(self, data: Any) -> None:
        """Keep a private entry: a JSON value that belongs to the history, and that no client is shown.

        It is forked, cut and deleted with the turn it was kept in; `session.kept` reads it back.

        Args:
            data: any JSON value: a str, int, float, bool, None, list, or dict with string keys.

        Raises:
            UsageError: it is something else, or has something else inside.

        """
        self._turn.keep(data)

    # Asking

    @awaited
    @called_as('if await turn.allow("Delete it?", call):')
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

        The user is shown all that `call` shows: its kind, input, locations and content.

        Args:
            question: what is asked, in a line.
            call: the tool call that it is about.
            command: the command that would be run in the session's directory, where no tool call shows it.
            description: why it is asked.
            remember: what an answer that the user gives for ever is remembered under, for this session; by default the
                question with its command.

        Returns:
            True where the user has said yes, now or for ever; False for everything else, as where nobody answers.

        Raises:
            UsageError: both a call and a command are given, or the question is no string.

        """
        chosen = await self.choose(
            question, ALLOW_OR_REJECT, call, command=command, description=description, remember=remember
        )
        return chosen is not None and chosen.kind.startswith("allow")

    @awaited
    @called_as('await turn.choose("Which?", [PermissionOption("a", "A", "allow_once")])')
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
        """Ask the user for permission with answers of one's own. Only those whose `kind` begins with ``allow`` approve.

        Args:
            question: what is asked, in a line.
            options: the answers to choose from, each with an id of its own.
            call: the tool call that it is about; as with `allow`.
            command: the command that it is about; as with `allow`.
            description: why it is asked.
            remember: what an answer for ever is remembered under; as with `allow`.

        Returns:
            The option that was chosen, None where none was.

        Raises:
            UsageError: there are no options, two have the same id, or both a call and a command are given.

        """
        about, cwd = None if call is None else call.id, self.session.cwd
        permission = permission_question(
            question, options, about, cwd, command=command, description=description, remember=remember
        )
        return permission.chosen(await self._turn.ask(permission))

    @awaited
    @called_as('await turn.ask("Who?", {"name": {"type": "string"}})')
    async def ask(
        self, message: str, fields: Mapping[str, Any], *, required: Sequence[str] = ()
    ) -> dict[str, Any] | None:
        """Ask the user to fill in a form.

        Args:
            message: what it is for.
            fields: names to JSON schemas, as ``{"name": {"type": "string"}}``.
            required: the names of the fields that must be filled in.

        Returns:
            What was filled in, which fits the schemas. None where the user declines, where the answer does not fit, or
            where the client cannot show forms.

        Raises:
            UsageError: the message is no string, `fields` is no mapping of mappings, or `required` names no field.

        """
        answer = await self._elicit(form_question(message, fields, required))
        return None if answer is None else {name: value for name, value in answer.items() if value is not None}

    @awaited
    @called_as('await turn.ask_url("Pay here", "https://example.com")')
    async def ask_url(self, message: str, url: str, *, id: str | None = None) -> bool:
        """Ask the user to go to an address.

        Args:
            message: what it is for.
            url: the address.
            id: by which `complete_url` says that the user is done there, so that the client can take the question away.

        Returns:
            Whether the user has agreed to it.

        """
        return await self._elicit(url_question(message, url, id or new_id("elicit"))) is not None

    async def complete_url(self, id: str) -> None:
        """Notify the clients that the user is done with what `ask_url` asked for.

        Args:
            id: the id that `ask_url` was given.

        """
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
        """Read all that was said in the session so far, this turn's prompt included, as its user sees it.

        Returns:
            The history. It is read from the store, so it takes longer the longer the conversation is.

        """
        return await self.session.history(self._turn.history)

    def emit(self, update: Update) -> None:
        """Show any update, as one of your own that begins with ``_``; what is said next is a new message.

        Args:
            update: the JSON object, named as in protocol version 2: ``{"sessionUpdate": "_mine/mood", …}``.

        Raises:
            UsageError: it is known to the protocol, and is not what its kind says.

        """
        self._output.emit(update)
