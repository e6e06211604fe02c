"""What a version 2 agent says of one session, as events: as it is. Events have the shape of its updates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

import msgspec

from holdfast.errors import InvalidParams, UsageError
from holdfast.model import Event, check_update, event_from, in_one_line

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
        """Make events of an update as it came; refuse one that is not what it says it is."""
        try:
            chunk = _decode_text(raw)
        except msgspec.DecodeError:
            pass
        else:
            return (Event(chunk.session_update, chunk.message_id, in_one_line(raw), chunk.content.text),)
        return (_checked(_object(raw), raw),)

    # Turns: the agent tells all of them by itself

    def said(self, blocks: Sequence[Update]) -> Sequence[Event]:
        """Say nothing: the agent repeats what the user said."""
        del blocks
        return ()

    def answered(self, answer: Update) -> Sequence[Event]:
        """Say nothing: the answer to a prompt is its beginning."""
        del answer
        return ()

    def failed(self, stop_reason: str, error: Update) -> Sequence[Event]:
        """Say nothing: a prompt that was refused has changed nothing."""
        del stop_reason, error
        return ()

    # Questions and options

    def asked(self, call: Update) -> Sequence[Event]:
        """Take what a question for permission says of the tool call it is about, as an update of it."""
        return (_checked({"sessionUpdate": "tool_call_update", **call}),)

    def configured(self, answer: Update) -> Sequence[Event]:
        """Say what the answer that opened a session tells of it."""
        updates: list[Update] = []
        if isinstance(answer.get("configOptions"), list):
            updates.append({"sessionUpdate": "config_option_update", "configOptions": answer["configOptions"]})
        if isinstance(answer.get("availableCommands"), list):
            commands = answer["availableCommands"]
            updates.append({"sessionUpdate": "available_commands_update", "availableCommands": commands})
        return [event_from(it) for it in updates]

    def setting(self, option_id: str, value: str | bool) -> tuple[str, Update]:  # noqa: FBT001
        """Say which request sets an option."""
        type_ = "boolean" if isinstance(value, bool) else "id"
        return "session/set_config_option", {"configId": option_id, "type": type_, "value": value}

    def was_set(self, option_id: str, value: str | bool, answer: Update) -> Sequence[Event]:  # noqa: FBT001
        """Say what there is to set once it was."""
        del option_id, value
        return self.configured(answer)


def _checked(update: Update, raw: bytes | None = None) -> Event:
    try:
        check_update(update)
    except UsageError as e:
        raise InvalidParams(str(e)) from None
    return event_from(update, raw)


def _object(raw: bytes) -> Update:
    """Read an update of whatever kind; numbers exist that JSON can write and nobody can read."""
    try:
        update: Any = _decode(raw)
    except msgspec.DecodeError as e:
        raise InvalidParams(f"An update cannot be read: {e}") from None
    if not isinstance(update, dict) or not isinstance(cast("Update", update).get("sessionUpdate"), str):
        raise InvalidParams("An update must say what it is: a string as `sessionUpdate`")
    return cast("Update", update)
