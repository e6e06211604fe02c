"""What a version 1 agent says of one session, as events, statefully. The other way round: `lower`.

- A chunk without a `messageId` belongs to the message before it if that is of the same kind and nothing was begun in
  between; otherwise it begins a message, whose id is made here.
- `tool_call` is the first `tool_call_update`; in both, null means nothing. What a question for permission has said of a
  call that was not announced is said with the call's first update.
- A diff has what was changed, and a patch, beside the old and the new text.
- The plan is the plan called ``plan``; an empty one is none.
- Modes and models are options with a category; those that come as options anyway are not told twice.
- What the user says is not repeated by the agent, so it is told here; a repetition is left out.
- What has no other form in version 2, known or not, stays as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

import msgspec

from holdfast.errors import InvalidParams, UsageError
from holdfast.model import Event, check_update, event_from, in_one_line, new_id, text_event
from holdfast.model.diffs import version_2_members
from holdfast.surface.v1.options import lift_commands, lift_options, option_of_models, option_of_modes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.model import Update

CHUNKS = frozenset({"agent_message_chunk", "agent_thought_chunk", "user_message_chunk"})


class _Text(msgspec.Struct, tag_field="type", tag="text", forbid_unknown_fields=True, gc=False):
    text: str


class _TextChunk(msgspec.Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    """By far the most frequent update, which nobody needs to look at twice."""

    session_update: Literal["agent_message_chunk", "agent_thought_chunk"]
    content: _Text
    message_id: str | None = None


PLAN = "plan"
"""The id of the one plan there is."""

_decode_text = msgspec.json.Decoder(_TextChunk).decode
_decode = msgspec.json.Decoder().decode


class Lifting:
    """What is known of one session by what its agent has said so far."""

    answer_ends = True
    """Whether the answer to a prompt ends its turn."""

    def __init__(self) -> None:
        self._message: str = ""  # the message that a chunk without an id goes on with…
        self._kind = ""  # …and of what kind its chunks are
        self._calls: set[str] = set()
        self._asked: dict[str, Update] = {}
        self._echo = ""  # what the user has just said and the agent may repeat
        self._options: Update = {"sessionUpdate": "config_option_update", "configOptions": []}
        self._setters: dict[str, tuple[str, str]] = {}  # options that are set by a method of their own

    def lift(self, raw: bytes) -> Sequence[Event]:
        """Return the events of an update as it came; raise `InvalidParams` for one that is malformed."""
        try:
            chunk = _decode_text(raw)
        except msgspec.DecodeError:
            pass
        else:
            return (self._text(chunk, raw),)
        update = _object(raw)
        kind: str = update["sessionUpdate"]
        return self._chunk(kind, update) if kind in CHUNKS else self._other(kind, update, raw)

    # Turns

    def lift_prompt(self, blocks: Sequence[Update]) -> Sequence[Event]:
        """Return the user's message and the beginning of the turn, which a version 1 agent does not send."""
        self._kind = ""  # what is said next is something new
        self._echo = "".join(block["text"] for block in blocks if block.get("type") == "text")
        message = {"sessionUpdate": "user_message", "messageId": new_id("msg"), "content": list(blocks)}
        return (event_from(message), event_from({"sessionUpdate": "state_update", "state": "running"}))

    def lift_end(self, answer: Update) -> Sequence[Event]:
        """Return the end of a turn, from the answer to its prompt."""
        self._kind = self._echo = ""
        end: Update = {"sessionUpdate": "state_update", "state": "idle", "stopReason": answer.get("stopReason")}
        return (event_from({**end, **{name: answer[name] for name in ("usage", "_meta") if answer.get(name)}}),)

    def lift_failure(self, stop_reason: str, error: Update) -> Sequence[Event]:
        """Return the end of a turn, from the error that answered its prompt."""
        self._kind = self._echo = ""
        end: Update = {"sessionUpdate": "state_update", "state": "idle", "stopReason": stop_reason}
        return (event_from({**end, "error": error} if stop_reason == "error" else end),)

    # Questions and options

    def lift_permission(self, call: Update) -> Sequence[Event]:
        """Return what a permission request tells of a tool call that was not announced.

        One that says what would be done announces the call (Gemini announces none otherwise, and a call that is refused
        must be in the history, too). One that says nothing of that may be about no call at all: it waits for one.
        """
        if not isinstance(key := call.get("toolCallId"), str) or key in self._calls:
            return ()
        says_what = any(call.get(name) for name in ("content", "locations", "rawInput"))
        if says_what or call.get("kind") not in (None, "other"):
            return self._call("tool_call", {"sessionUpdate": "tool_call", **call})
        self._asked[key] = call
        return ()

    def lift_configuration(self, answer: Update) -> Sequence[Event]:
        """Return the options and commands that the answer which opened a session has."""
        options = lift_options(answer.get("configOptions") or [])
        categories = {option.get("category") for option in options}
        self._setters = {}
        if "mode" not in categories and (option := option_of_modes(answer.get("modes"))) is not None:
            options.append(option)
            self._setters[option["configId"]] = ("session/set_mode", "modeId")
        if "model" not in categories and (option := option_of_models(answer.get("models"))) is not None:
            options.append(option)
            self._setters[option["configId"]] = ("session/set_model", "modelId")
        return self._set({}, options) if options else ()

    def option_request(self, option_id: str, value: str | bool) -> tuple[str, Update]:  # noqa: FBT001
        """Return the request that sets an option."""
        if option_id in self._setters:
            method, name = self._setters[option_id]
            return method, {name: value}
        params: Update = {"configId": option_id, "value": value}
        return "session/set_config_option", {**params, "type": "boolean"} if isinstance(value, bool) else params

    def lift_option_answer(self, option_id: str, value: str | bool, answer: Update) -> Sequence[Event]:  # noqa: FBT001
        """Return the options as they are after one was set, from the answer to that request."""
        if isinstance(answer.get("configOptions"), list):
            return self._set({}, self._with_own(lift_options(answer["configOptions"])))
        return self._changed("configId", option_id, value)

    # Messages

    def _text(self, chunk: _TextChunk, raw: bytes) -> Event:
        kind = chunk.session_update
        key = self._goes_on(kind, chunk.message_id)
        if chunk.message_id is None:
            return text_event(kind, key, chunk.content.text)
        return Event(kind, key, in_one_line(raw), chunk.content.text)

    def _chunk(self, kind: str, update: Update) -> Sequence[Event]:
        key: Any = update.get("messageId")
        if key is not None and not isinstance(key, str):
            raise InvalidParams(f"{kind}: `messageId` must be a string")
        if kind == "user_message_chunk" and self._is_echo(update.get("content")):
            return ()
        return (_checked({**update, "messageId": self._goes_on(kind, key)}),)

    def _goes_on(self, kind: str, key: str | None) -> str:
        """Return the id of the message that a chunk belongs to."""
        if key is None:
            key = self._message if kind == self._kind else new_id("msg")
        if kind != "user_message_chunk":
            self._echo = ""
        self._kind, self._message = kind, key
        return key

    def _is_echo(self, content: Any) -> bool:
        """Return whether the agent only repeats the prompt, which is in the history already."""
        match content:
            case {"type": "text", "text": str(text)} if text and self._echo.startswith(text):
                self._echo = self._echo[len(text) :]
                return True
            case _:
                return False

    # Everything else

    def _other(self, kind: str, update: Update, raw: bytes) -> Sequence[Event]:
        match kind:
            case "tool_call" | "tool_call_update":
                return self._call(kind, update)
            case "plan":
                return (_checked(_plan(update)),)
            case "config_option_update":
                options = self._with_own(lift_options(update.get("configOptions")))
                return self._set(update, options)
            case "current_mode_update":
                return self._mode(update)
            case "available_commands_update":
                commands = lift_commands(update.get("availableCommands"))
                return (event_from({**update, "availableCommands": commands}),)
            case _:
                return (_checked(update, raw),)

    def _call(self, kind: str, update: Update) -> Sequence[Event]:
        lifted = {name: value for name, value in update.items() if value is not None}
        lifted["sessionUpdate"] = "tool_call_update"
        if "content" in lifted:
            lifted["content"] = lift_content(lifted["content"])
        key: Any = update.get("toolCallId")
        if isinstance(key, str) and key not in self._calls:
            asked = self._asked.pop(key, {}) if kind == "tool_call_update" else {}
            lifted = {**{name: value for name, value in asked.items() if value is not None}, **lifted}
        event = _checked(lifted)
        if event.key not in self._calls:
            self._calls.add(event.key)
            self._asked.pop(event.key, None)
            self._kind = self._echo = ""  # what is said after it is a message of its own
        return (event,)

    def _mode(self, update: Update) -> Sequence[Event]:
        mode: Any = update.get("currentModeId")
        if not isinstance(mode, str):
            raise InvalidParams("current_mode_update: `currentModeId` must be a string")
        if not any(option.get("category") == "mode" for option in self._listed()):
            option = option_of_modes({"currentModeId": mode, "availableModes": [{"id": mode, "name": mode}]})
            assert option is not None
            self._setters[option["configId"]] = ("session/set_mode", "modeId")
            return self._set({}, [*self._listed(), option])
        return self._changed("category", "mode", mode)

    def _changed(self, name: str, wanted: str, value: str | bool) -> Sequence[Event]:  # noqa: FBT001
        changed = {"currentValue": value}
        listed = [option | changed if option.get(name) == wanted else option for option in self._listed()]
        return self._set({}, listed)

    def _with_own(self, options: list[Update]) -> list[Update]:
        """Add the options that the agent does not know as such: its modes and models."""
        known = {option["configId"] for option in options} | {option.get("category") for option in options}
        own = (option for option in self._listed() if option["configId"] in self._setters)
        return [*options, *(one for one in own if one["configId"] not in known and one.get("category") not in known)]

    def _set(self, update: Update, options: list[Update]) -> Sequence[Event]:
        self._options = {**update, "sessionUpdate": "config_option_update", "configOptions": options}
        return (event_from(self._options),)

    def _listed(self) -> list[Update]:
        return self._options["configOptions"]


def lift_content(content: Any) -> Any:
    """Return the content of a tool call with its diffs as version 2 has them; what is malformed stays as it is."""
    if not isinstance(content, list):
        return content
    return [_lift_item(item) for item in cast("list[Any]", content)]


def _lift_item(item: Any) -> Any:
    match item:
        case {"type": "diff", "path": str(path), "newText": str(new)}:
            old: Any = cast("Update", item).get("oldText")
            return item | version_2_members(path, old, new) if old is None or isinstance(old, str) else item
        case _:
            return item


def _plan(update: Update) -> Update:
    entries: Any = update.get("entries")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in cast("list[object]", entries)):
        raise InvalidParams("plan: `entries` must be a list of objects")
    rest = {name: value for name, value in update.items() if name not in ("sessionUpdate", "entries")}
    if not entries:
        return {"sessionUpdate": "plan_removed", "planId": PLAN, **rest}
    return {"sessionUpdate": "plan_update", "plan": {"type": "items", "planId": PLAN, "entries": entries}, **rest}


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
