"""A session as a script uses it: prompts with their turns, and the history that its updates make, in either version."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.errors import HoldfastError
from holdfast.model import FINAL_STATUSES, History
from holdfast_app.check.outcomes import CheckFailed
from holdfast_app.check.wire import members, objects

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence

    from holdfast.client.dialect import Dialect
    from holdfast.model import Entry
    from holdfast_app.check.wire import Json, Response, Update, Wire

STOP_REASONS = frozenset({"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"})


class Turn(NamedTuple):
    """A turn that has ended."""

    stop_reason: str | None
    updates: list[dict[str, Json]]
    ended_at: int
    """The place of its end among all frames."""
    message_id: str | None = None
    """The id of the prompt's message, in version 2."""


class Call(NamedTuple):
    """A tool call, as far as one can expect it to be the same in a replay."""

    id: str
    title: str
    status: str

    @property
    def is_closed(self) -> bool:
        """Whether it has ended."""
        return self.status in FINAL_STATUSES


class Told(NamedTuple):
    """What a history tells: user messages, what the agent said, and tool calls."""

    user: tuple[str, ...]
    agent: str
    calls: tuple[Call, ...]
    thoughts: str = ""
    order: tuple[tuple[str, str], ...] = ()
    """What was said, as it stands in the conversation: ``user`` or ``agent``, and the text."""

    def said_before(self, prompt: str) -> str:
        """Return what the agent said before a prompt of the user."""
        at = next((at for at, (who, text) in enumerate(self.order) if who == "user" and prompt in text), None)
        return "".join(text for who, text in self.order[:at] if who == "agent").strip()


class Session:
    """One session on one wire."""

    def __init__(self, wire: Wire, dialect: Dialect, session_id: str, roots: dict[str, Json], answer: Json) -> None:
        self.wire = wire
        self.id = session_id
        self.roots = roots
        self.answer: dict[str, Json] = members(answer)
        """What opened it: the result of session/new, load, resume or fork."""
        self._dialect = dialect
        self._version = dialect.agent.version
        self._prompts: list[tuple[int, list[dict[str, Json]]]] = []

    @property
    def ends_with_answer(self) -> bool:
        """Whether the answer to a prompt ends its turn, as in version 1."""
        return self._version == 1

    # Prompting

    def begin(self, text: str, *blocks: dict[str, Json]) -> asyncio.Future[Response]:
        """Send a prompt."""
        prompt = [{"type": "text", "text": text}, *blocks]
        self._prompts.append((len(self.wire.frames), prompt))
        return self.wire.begin("session/prompt", {"sessionId": self.id, "prompt": prompt})

    async def prompt(self, text: str, *blocks: dict[str, Json]) -> Turn:
        """Send a prompt and wait for the end of its turn.

        Raises `Refused`, `NoAnswer` or `AgentGone`.
        """
        start = len(self.wire.frames)
        return await self.end_of(self.begin(text, *blocks), start)

    async def end_of(self, prompt: asyncio.Future[Response], start: int) -> Turn:
        """Wait for the end of the turn of a prompt that was sent when there were `start` frames."""
        result = await self.wire.result(prompt, "session/prompt")
        answer = members(result)
        if self._version == 1:
            end, reason = self.wire.answered_at, answer.get("stopReason")
        else:
            end, reason = await self._idle(start)
        said = [update.body for update in self.updates(start) if update.at <= end]
        message_id = answer.get("messageId")
        return Turn(_text(reason), said, end, message_id if isinstance(message_id, str) else None)

    async def _idle(self, start: int) -> tuple[int, object]:
        """Wait for the idle state that ends a turn of version 2; return its place and its stop reason."""

        def found() -> Update | None:
            worked = False
            for update in self.updates(start):
                if update.body.get("sessionUpdate") != "state_update":
                    worked = worked or str(update.body.get("sessionUpdate")).startswith(("agent_", "tool_", "user_"))
                elif update.body.get("state") != "idle":
                    worked = True
                elif worked or update.body.get("stopReason") is not None:
                    return update
            return None

        await self.wire.until(lambda: found() is not None or self.wire.ended, self.wire.deadline)
        if (idle := found()) is None:
            raise await self.wire.silence("the turn was told to be idle", "the turn was not told to be idle", start)
        return idle.at, idle.body.get("stopReason")

    def cancel(self) -> None:
        """Cancel what runs."""
        self.wire.notify("session/cancel", {"sessionId": self.id})

    async def heard(self, pieces: int = 1, *, since: int = 0) -> bool:
        """Wait until the agent has said so many pieces; return whether it has."""
        return await self.wire.until(lambda: self.pieces(since) >= pieces or self.wire.ended, self.wire.deadline)

    def pieces(self, since: int = 0) -> int:
        """Return in how many pieces the agent has said something."""
        kinds = ("agent_message_chunk", "agent_message")
        return sum(update.body.get("sessionUpdate") in kinds for update in self.updates(since))

    # What was said

    def updates(self, since: int = 0) -> list[Update]:
        """Return the updates of this session that came after so many frames."""
        return [update for update in self.wire.updates if update.session_id == self.id and update.at > since]

    def told(self, since: int = 0, until: int | None = None) -> Told:
        """Fold what came after so many frames into what it tells.

        Raises `CheckFailed` for an update that makes no sense.
        """
        lifting = self._dialect.lifting()
        history = History()
        prompts = [prompt for prompt in self._prompts if prompt[0] >= since]
        for update in self.updates(since):
            if until is not None and update.at > until:
                break
            while prompts and prompts[0][0] < update.at:
                _apply(history, lifting.lift_prompt(prompts.pop(0)[1]))
            try:
                _apply(history, lifting.lift(json.dumps(update.body).encode()))
            except HoldfastError as e:
                raise CheckFailed("updates that make sense", f"{_brief(update.body)}: {e}") from None
        for _, blocks in prompts:
            _apply(history, lifting.lift_prompt(blocks))
        return _told(list(history))

    # Options

    def options(self) -> list[dict[str, Json]]:
        """Return the options that can be set, as the answer that opened it and later updates have them."""
        found = self.answer.get("configOptions")
        for update in self.updates():
            if update.body.get("sessionUpdate") == "config_option_update":
                found = update.body.get("configOptions", found)
        return objects(found)

    def offers(self, option_id: str, value: str) -> bool:
        """Return whether an option, or the mode, has a value that can be set."""
        modes = members(self.answer.get("modes"))
        if option_id == "mode" and any(mode.get("id") == value for mode in objects(modes.get("availableModes"))):
            return True
        named = (option for option in self.options() if option_id in (option.get("id"), option.get("configId")))
        return any(value in values_of(option) for option in named)

    async def set_option(self, option_id: str, value: str | bool) -> Json:  # noqa: FBT001
        """Set an option, or the mode of an agent that has modes and no such option; return the answer."""
        if (
            option_id == "mode"
            and "modes" in self.answer
            and not any(row.get("id") == "mode" for row in self.options())
        ):
            return await self.wire.request("session/set_mode", {"sessionId": self.id, "modeId": value})
        method, params = self._dialect.lifting().option_request(option_id, value)
        return await self.wire.request(method, {"sessionId": self.id, **params})


def values_of(option: dict[str, Json]) -> list[str]:
    """Return the values that an option offers, also those in groups."""
    found: list[str] = []
    for entry in objects(option.get("options")):
        found += [str(inner["value"]) for inner in (entry, *objects(entry.get("options"))) if "value" in inner]
    return found


def _told(entries: Sequence[Entry]) -> Told:
    order: list[tuple[str, str]] = []
    thoughts: list[str] = []
    calls: list[Call] = []
    for entry in entries:
        match entry.entity:
            case "user_message":
                order.append(("user", entry.text().strip()))
            case "agent_message":
                order.append(("agent", entry.text()))
            case "agent_thought":
                thoughts.append(entry.text())
            case "tool_call_update":
                title, status = entry.members.get("title"), entry.members.get("status")
                calls.append(Call(entry.key, str(title), str(status)))
            case _:
                pass
    user = tuple(text for who, text in order if who == "user")
    said = "".join(text for who, text in order if who == "agent")
    return Told(user, said, tuple(calls), "".join(thoughts), tuple(order))


def _apply(history: History, events: Sequence[Any]) -> None:
    for event in events:
        history.apply(event)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _brief(body: dict[str, Json]) -> str:
    return json.dumps(body, ensure_ascii=False)[:300]
