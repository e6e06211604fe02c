"""What a version 2 agent says of one session, as events: as it is, since events have the shape of its updates.

Only types that agents leave out of their commands are added: a client would find the whole update malformed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

import msgspec

from holdfast.errors import InvalidParams, UsageError
from holdfast.model import Event, check_update, event_from, in_one_line
from holdfast.surface.v2.options import lift_commands

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.model import Update


class _Text(msgspec.Struct, tag_field="type", tag="text", forbid_unknown_fields=True, gc=False):
    text: str


class _TextChunk(msgspec.Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    """By far the most frequent update, which nobody needs to look at twice."""

    session_update: Literal["agent_message_chunk", "agent_thought_chunk", "user_message_chunk"]
    message_id: str
    content: _Text


_decode_text = msgspec.json.Decoder(_TextChunk).decode
_decode = msgspec.json.Decoder().decode


class Lifting:
    """What is known of one session by what its agent has said so far: in version 2, nothing needs to be."""

    answer_ends = False
    """Whether the answer to a prompt ends its turn."""

    def lift(self, raw: bytes) -> Sequence[Event]:
        """Return the events of an update as it came; raise `InvalidParams` for one that is malformed."""
        try:
            chunk = _decode_text(raw)
        except msgspec.DecodeError:
            pass
        else:
            return (Event(chunk.session_update, chunk.message_id, in_one_line(raw), chunk.content.text),)
        update = _object(raw)
        commands = update.get("availableCommands")
        if update["sessionUpdate"] == "available_commands_update" and isinstance(commands, list):
            lifted = lift_commands(cast("list[Any]", commands))
            if lifted != commands:
                return (_checked({**update, "availableCommands": lifted}),)
        return (_checked(update, raw),)

    # Turns: the agent tells all of them by itself

    def lift_prompt(self, blocks: Sequence[Update]) -> Sequence[Event]:
        """Return nothing: the agent sends the user's message itself."""
        del blocks
        return ()

    def lift_end(self, answer: Update) -> Sequence[Event]:
        """Return nothing: the answer to a prompt is the beginning of its turn."""
        del answer
        return ()

    def lift_failure(self, stop_reason: str, error: Update) -> Sequence[Event]:
        """Return nothing: a prompt that was refused has changed nothing."""
        del stop_reason, error
        return ()

    # Questions and options

    def lift_permission(self, call: Update) -> Sequence[Event]:
        """Return what a permission request tells of its tool call, as an update of that call."""
        return (_checked({"sessionUpdate": "tool_call_update", **call}),)

    def lift_configuration(self, answer: Update) -> Sequence[Event]:
        """Return the options and commands that the answer which opened a session has."""
        updates: list[Update] = []
        if isinstance(answer.get("configOptions"), list):
            updates.append({"sessionUpdate": "config_option_update", "configOptions": answer["configOptions"]})
        if isinstance(answer.get("availableCommands"), list):
            commands = lift_commands(answer["availableCommands"])
            updates.append({"sessionUpdate": "available_commands_update", "availableCommands": commands})
        return [event_from(update) for update in updates]

    def option_request(self, option_id: str, value: str | bool) -> tuple[str, Update]:  # noqa: FBT001
        """Return the request that sets an option."""
        type_ = "boolean" if isinstance(value, bool) else "id"
        return "session/set_config_option", {"configId": option_id, "type": type_, "value": value}

    def lift_option_answer(self, option_id: str, value: str | bool, answer: Update) -> Sequence[Event]:  # noqa: FBT001
        """Return the options as they are after one was set, from the answer to that request."""
        del option_id, value
        return self.lift_configuration(answer)


def _checked(update: Update, raw: bytes | None = None) -> Event:
    try:
        check_update(update)
    except UsageError as e:
        raise InvalidParams(str(e)) from None
    return event_from(update, raw)


def _object(raw: bytes) -> Update:
    """Decode an update; raise `InvalidParams` for what is no JSON object, or has a number that cannot be decoded."""
    try:
        update: Any = _decode(raw)
    except msgspec.DecodeError as e:
        raise InvalidParams(f"An update cannot be read: {e}") from None
    if not isinstance(update, dict) or not isinstance(cast("Update", update).get("sessionUpdate"), str):
        raise InvalidParams("An update must say what it is: a string as `sessionUpdate`")
    return cast("Update", update)
