"""`BREAKS`: for each requirement of `holdfast check`, how the good agent is made to break it, and nothing else."""

from __future__ import annotations

import copy
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.tests.support.checked_agent import NO_SESSION
from holdfast_app.check.wire import members, objects

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.tests.support.checked_agent import Filter, Message

    Passing = Callable[[Filter, Message], list[Message]]


@dataclass
class Break:
    """What one broken agent does with lines and messages of the client, and with those of the agent."""

    line: Callable[[Filter, bytes], bool] | None = None
    """Whether a line of the client is swallowed."""
    takes: Passing | None = None
    gives: Passing | None = None


NOT_BROKEN = Break()
BREAKS: dict[str, Break] = {}


def taking(requirement: str) -> Callable[[Passing], Passing]:
    def register(function: Passing) -> Passing:
        BREAKS.setdefault(requirement, Break()).takes = function
        return function

    return register


def giving(requirement: str) -> Callable[[Passing], Passing]:
    def register(function: Passing) -> Passing:
        BREAKS.setdefault(requirement, Break()).gives = function
        return function

    return register


def swallowing(requirement: str, holds: Callable[[bytes], bool], answer: bytes | None = None) -> None:
    """Break a requirement by swallowing lines, perhaps with an answer that is wrong."""

    def swallow(agent: Filter, line: bytes) -> bool:
        if holds(line) and answer is not None:
            agent.to_client(answer)
        return holds(line)

    BREAKS[requirement] = Break(line=swallow)


def answering(requirement: str, method: str, change: Callable[[Filter, Message, Message], Any]) -> None:
    """Break a requirement by changing the result of a method; the change gets the result and the params."""

    @giving(requirement)
    def gives(agent: Filter, message: Message) -> list[Message]:
        if agent.method_of(message) == method and "result" in message:
            changed = change(agent, members(message["result"]), agent.asked(message))
            return [message if changed is None else {**message, "result": changed}]
        return [message]


def updating(requirement: str, change: Callable[[Filter, Message, Message], list[Message]]) -> None:
    """Break a requirement by changing updates; the change gets the update and the whole message."""

    @giving(requirement)
    def gives(agent: Filter, message: Message) -> list[Message]:
        update = agent.update(message)
        if not update:
            return [message]
        return [
            {**message, "params": {**message["params"], "update": changed}}
            for changed in change(agent, update, message)
        ]


def requesting(requirement: str, method: str, act: Passing) -> None:
    """Break a requirement by what is done with a request of the client."""

    @taking(requirement)
    def takes(agent: Filter, message: Message) -> list[Message]:
        return act(agent, message) if message.get("method") == method else [message]


def kind_of(update: Message) -> str:
    return str(update.get("sessionUpdate"))


def without(value: Message, *names: str) -> Message:
    return {name: inner for name, inner in value.items() if name not in names}


def replaying(agent: Filter, message: Message) -> bool:
    return agent.session_of(message) in agent.loading


def is_load(message: Message) -> bool:
    params = members(message.get("params"))
    return message.get("method") == "session/load" or (
        message.get("method") == "session/resume" and "replayFrom" in params
    )


def is_resume(message: Message) -> bool:
    return message.get("method") == "session/resume" and "replayFrom" not in members(message.get("params"))


# Connecting

answering("initialize", "initialize", lambda _agent, _result, _params: {"hello": 1})
answering(
    "version-asked",
    "initialize",
    lambda _agent, result, params: {**result, "protocolVersion": 7} if params["protocolVersion"] in (1, 2) else result,
)
answering(
    "version-unknown",
    "initialize",
    lambda _agent, result, params: {**result, "protocolVersion": params["protocolVersion"]},
)


def _body_of_version_1(_agent: Filter, result: Message, _params: Message) -> Message:
    if result["protocolVersion"] == 1:
        return result
    return {"protocolVersion": 2, "agentInfo": result["info"], "agentCapabilities": {}}


answering("version-body", "initialize", _body_of_version_1)


def _nameless(agent: Filter, result: Message, _params: Message) -> Message:
    return {**result, "agentInfo" if agent.version == 1 else "info": {"name": "", "version": ""}}


answering("named", "initialize", _nameless)


def _only_once(agent: Filter, message: Message) -> list[Message]:
    if agent.notes.setdefault("greeted", message["id"]) == message["id"]:
        return [message]
    return agent.refuse(message, -32600)


requesting("initialize-twice", "initialize", _only_once)


@taking("before-initialize")
def _before_initialize(agent: Filter, message: Message) -> list[Message]:
    if message.get("method") == "initialize":
        agent.notes["greeted"] = True
    if message.get("method") == "session/new" and "greeted" not in agent.notes:
        return agent.reply(message, {"sessionId": "early"})
    return [message]


@taking("pipelined")
def _pipelined(agent: Filter, message: Message) -> list[Message]:
    return agent.refuse(message) if message.get("id") == "b" else [message]


# The wire

answering("frames-valid", "initialize", lambda _agent, result, _params: {**result, "authMethods": "none"})


@giving("only-frames")
def _prints(agent: Filter, message: Message) -> list[Message]:
    if agent.method_of(message) == "initialize":
        agent.to_client(b"Welcome to the agent!")
    return [message]


requesting("unknown-method", "holdfast/no_such_method", lambda agent, message: agent.reply(message, {}))
requesting("extension-method", "_holdfast/no_such_extension", lambda agent, message: agent.reply(message, {}))


@taking("unknown-notification")
def _complains(agent: Filter, message: Message) -> list[Message]:
    if "no_such_notification" in str(message.get("method")):
        agent.tell({"jsonrpc": "2.0", "id": None, "error": {"code": -32601, "message": "what?"}})
    return [message]


@giving("ids-unchanged")
def _counts_from_one(_agent: Filter, message: Message) -> list[Message]:
    return [{**message, "id": None} if message.get("id") == 0 and "method" not in message else message]


@giving("ids-64-bit")
def _rounds(_agent: Filter, message: Message) -> list[Message]:
    id_ = message.get("id")
    return [{**message, "id": int(float(id_))} if isinstance(id_, int) and id_ > 1 << 60 else message]


@giving("answered-once")
def _twice(agent: Filter, message: Message) -> list[Message]:
    return [message, message] if agent.method_of(message) == "session/new" else [message]


# Creating and prompting


def _same_id(agent: Filter, result: Message, _params: Message) -> Message:
    return {**result, "sessionId": agent.notes.setdefault("first", result["sessionId"])}


answering("new", "session/new", _same_id)


SECOND = "session-2"
"""So every process of an agent calls the second session that it creates."""


@giving("new-ids")
def _counts_from_one_in_each_process(agent: Filter, message: Message) -> list[Message]:
    if agent.method_of(message) == "session/new" and "result" in message:
        agent.notes["sessions"] = agent.notes.get("sessions", 0) + 1
        if agent.notes["sessions"] == 2:
            agent.notes["second"] = message["result"]["sessionId"]
    return [json.loads(json.dumps(message).replace(agent.notes.get("second", SECOND), SECOND))]


@taking("new-ids")
def _knows_its_own(agent: Filter, message: Message) -> list[Message]:
    return [json.loads(json.dumps(message).replace(SECOND, agent.notes.get("second", SECOND)))]


def _with_cwd(agent: Filter, message: Message) -> list[Message]:
    params = message["params"]
    relative = agent.fault == "new-relative-cwd" and not str(params.get("cwd", "/")).startswith("/")
    missing = agent.fault == "new-without-cwd" and "cwd" not in params and "_meta" not in params
    if relative or missing:
        params = {**params, "cwd": "/"}
    elif agent.fault == "new-relative-roots" and params.get("additionalDirectories") == ["some/where"]:
        params = without(params, "additionalDirectories")
    elif agent.fault == "meta-apart" and "_meta" in params:
        params = {**params, **params["_meta"]}
    return [{**message, "params": params}]


for _fault in ("new-relative-cwd", "new-without-cwd", "new-relative-roots", "meta-apart"):
    requesting(_fault, "session/new", _with_cwd)


@giving("named-first")
def _too_early(agent: Filter, message: Message) -> list[Message]:
    if agent.method_of(message) != "session/new" or "result" not in message:
        return [message]
    update: Message = {"sessionUpdate": "available_commands_update", "availableCommands": []}
    early: Message = {"sessionId": message["result"]["sessionId"], "update": update}
    return [{"jsonrpc": "2.0", "method": "session/update", "params": early}, message]


@giving("prompt-ends")
def _never_ends(agent: Filter, message: Message) -> list[Message]:
    ends = agent.update(message).get("state") == "idle"
    answers = agent.version == 1 and agent.method_of(message) == "session/prompt" and "result" in message
    return [] if ends or answers else [message]


updating(
    "prompt-answers", lambda _agent, update, _message: [] if kind_of(update).startswith("agent_message") else [update]
)


def _other_id(agent: Filter, update: Message, message: Message) -> list[Message]:
    if kind_of(update).startswith("user_message") and not replaying(agent, message):
        return [{**update, "messageId": "another"}]
    return [update]


updating("prompt-acknowledged", _other_id)
updating("prompt-states", lambda _agent, update, _message: [] if update.get("state") == "running" else [update])


@giving("nothing-after-end")
def _late(agent: Filter, message: Message) -> list[Message]:
    held: list[Message] = agent.notes.setdefault("held", [])
    update = agent.update(message)
    if kind_of(update) == "agent_message_chunk" and not replaying(agent, message):
        agent.notes["held"] = [message]
        return held
    ends = (update.get("state") == "idle" and "stopReason" in update) or (
        agent.version == 1 and agent.method_of(message) == "session/prompt"
    )
    if ends:
        agent.notes["held"] = []
        return [message, *held]
    return [message]


@taking("own-updates")
def _notes_the_last(agent: Filter, message: Message) -> list[Message]:
    if message.get("method") == "session/prompt":
        agent.notes["last"] = agent.session_of(message)
    return [message]


@giving("own-updates")
def _under_the_last(agent: Filter, message: Message) -> list[Message]:
    """Tell all that is said under the session that was asked last."""
    if not kind_of(agent.update(message)).startswith("agent_message") or replaying(agent, message):
        return [message]
    return [{**message, "params": {**message["params"], "sessionId": agent.notes["last"]}}]


def _any_session(agent: Filter, message: Message) -> list[Message]:
    if message["params"]["sessionId"] != NO_SESSION:
        return [message]
    return agent.reply(message, {"stopReason": "end_turn"} if agent.version == 1 else {"messageId": "m"})


requesting("prompt-unknown-session", "session/prompt", _any_session)


def _ignores_images(_agent: Filter, message: Message) -> list[Message]:
    blocks = [block for block in message["params"]["prompt"] if block.get("type") != "image"]
    return [{**message, "params": {**message["params"], "prompt": blocks}}]


requesting("prompt-not-advertised", "session/prompt", _ignores_images)
updating(
    "message-ids",
    lambda agent, update, _message: [without(update, "messageId") if agent.version == 1 else update],
)


@taking("two-prompts")
def _one_at_a_time(agent: Filter, message: Message) -> list[Message]:
    if message.get("method") != "session/prompt":
        return [message]
    session = agent.session_of(message)
    busy = agent.notes.get("busy") == session and session in agent.running
    agent.notes["busy"] = session
    return agent.refuse(message) if busy else [message]


@giving("two-prompts")
def _free_again(agent: Filter, message: Message) -> list[Message]:
    if "stopReason" in members(message.get("result")) or "stopReason" in agent.update(message):
        agent.notes.pop("busy", None)
    return [message]


# Cancelling


def _with_reason(message: Message, was: str, now: str) -> Message:
    text = json.dumps(message)
    return json.loads(text.replace(f'"stopReason": "{was}"', f'"stopReason": "{now}"'))


@giving("cancel")
def _end_turn_after_cancel(_agent: Filter, message: Message) -> list[Message]:
    return [_with_reason(message, "cancelled", "end_turn")]


@taking("cancel-idle")
def _remembers_cancel(agent: Filter, message: Message) -> list[Message]:
    if message.get("method") == "session/cancel" and agent.session_of(message) not in agent.running:
        agent.notes["cancel"] = True
    return [message]


@giving("cancel-idle")
def _cancelled_later(agent: Filter, message: Message) -> list[Message]:
    return [_with_reason(message, "end_turn", "cancelled") if agent.notes.get("cancel") else message]


@giving("usable-after-cancel")
def _notes_cancel(agent: Filter, message: Message) -> list[Message]:
    if '"stopReason": "cancelled"' in json.dumps(message):
        agent.notes["cancelled"] = True
    return [message]


requesting(
    "usable-after-cancel",
    "session/prompt",
    lambda agent, message: agent.refuse(message) if agent.notes.get("cancelled") else [message],
)


# Tools and permissions


def _untitled(_agent: Filter, update: Message, _message: Message) -> list[Message]:
    if not kind_of(update).startswith("tool_call") or "chunk" in kind_of(update):
        return [update]
    return [{**without(update, "title"), "sessionUpdate": "tool_call_update"}]


updating("tool-call-announced", _untitled)
updating(
    "tool-call-closed",
    lambda _agent, update, _message: [{**update, "status": "in_progress"} if "status" in update else update],
)


def _changed_question(change: Callable[[Message], Message]) -> Passing:
    def gives(_agent: Filter, message: Message) -> list[Message]:
        if message.get("method") != "session/request_permission":
            return [message]
        return [{**message, "params": change(copy.deepcopy(message["params"]))}]

    return gives


def _only_yes(params: Message) -> Message:
    return {**params, "options": [each for each in params["options"] if each["kind"].startswith("allow")]}


def _without_kind(params: Message) -> Message:
    call = params.get("toolCall") or params["subject"]["toolCall"]
    call.pop("kind", None)
    return params


giving("permission-options")(_changed_question(_only_yes))
giving("permission-call")(_changed_question(_without_kind))


@giving("permission-rejected")
def _notes_question(agent: Filter, message: Message) -> list[Message]:
    if message.get("method") == "session/request_permission":
        kinds = {each["kind"]: each["optionId"] for each in message["params"]["options"]}
        agent.notes["yes"] = kinds["allow_once"]
    return [message]


@taking("permission-rejected")
def _takes_no_for_yes(agent: Filter, message: Message) -> list[Message]:
    if members(members(message.get("result")).get("outcome")).get("outcome") != "selected":
        return [message]
    return [{**message, "result": {"outcome": {"outcome": "selected", "optionId": agent.notes["yes"]}}}]


@giving("permission-cancelled")
def _ends_anyway(agent: Filter, message: Message) -> list[Message]:
    if message.get("method") == "session/request_permission":
        agent.notes["asked"] = True
    return [_with_reason(message, "cancelled", "end_turn") if agent.notes.get("asked") else message]


# Loading and resuming


@taking("load")
def _cannot_load(agent: Filter, message: Message) -> list[Message]:
    return agent.refuse(message) if is_load(message) else [message]


def _dropping(*prefixes: str) -> Callable[[Filter, Message, Message], list[Message]]:
    def change(agent: Filter, update: Message, message: Message) -> list[Message]:
        return [] if replaying(agent, message) and kind_of(update).startswith(prefixes) else [update]

    return change


updating("load-user-messages", _dropping("user_message"))
updating("load-agent-messages", _dropping("agent_message"))
updating("load-tool-calls", _dropping("tool_call"))


updating("load-thoughts", _dropping("agent_thought"))


@giving("load-order")
def _answers_after_all_prompts(agent: Filter, message: Message) -> list[Message]:
    held: list[Message] = agent.notes.setdefault("held", [])
    if replaying(agent, message) and kind_of(agent.update(message)).startswith("agent_message"):
        held.append(message)
        return []
    if agent.method_of(message) in ("session/load", "session/resume"):
        agent.notes["held"] = []
        return [*held, message]
    return [message]


def _new_ids(agent: Filter, update: Message, message: Message) -> list[Message]:
    if not replaying(agent, message):
        return [update]
    ids = {name: f"again-{update[name]}" for name in ("messageId", "toolCallId") if name in update}
    return [{**update, **ids}]


updating("load-ids", _new_ids)


@giving("load-before-answer")
def _after_the_answer(agent: Filter, message: Message) -> list[Message]:
    held: list[Message] = agent.notes.setdefault("held", [])
    if replaying(agent, message) and kind_of(agent.update(message)).startswith("agent_message"):
        agent.notes["held"] = [message]
        return held
    if agent.method_of(message) in ("session/load", "session/resume") and held:
        agent.notes["held"] = []
        return [message, *held]
    return [message]


def _user_twice(agent: Filter, update: Message, message: Message) -> list[Message]:
    if replaying(agent, message) and kind_of(update).startswith("user_message"):
        return [update, {**update, "messageId": f"again-{update['messageId']}"}]
    return [update]


updating("load-once", _user_twice)


def _adds_a_reminder(agent: Filter, update: Message, message: Message) -> list[Message]:
    if not replaying(agent, message) or not str(update.get("sessionUpdate")).startswith("user_message"):
        return [update]
    reminder = {"type": "text", "text": " <reminder>Today is Monday.</reminder>"}
    if isinstance(update.get("content"), list):
        return [{**update, "content": [*update["content"], reminder]}]
    return [update, {**update, "content": reminder}]


updating("load-own-words", _adds_a_reminder)


@taking("load-cancelled")
def _notes_cancels(agent: Filter, message: Message) -> list[Message]:
    if message.get("method") == "session/cancel":
        agent.remember(f"{agent.session_of(message)}.cancelled", "yes")
    return [message]


def _forgets_what_was_cancelled(agent: Filter, update: Message, message: Message) -> list[Message]:
    cancelled = agent.remembered(f"{agent.session_of(message)}.cancelled") is not None
    forgotten = cancelled and str(update.get("sessionUpdate")).startswith("agent_message")
    return [] if forgotten and replaying(agent, message) else [update]


updating("load-cancelled", _forgets_what_was_cancelled)


@taking("load-unknown")
def _loads_anything(agent: Filter, message: Message) -> list[Message]:
    unknown = is_load(message) and agent.session_of(message) == NO_SESSION
    return agent.reply(message, {}) if unknown else [message]


@taking("resume-unknown")
def _resumes_anything(agent: Filter, message: Message) -> list[Message]:
    unknown = is_resume(message) and agent.session_of(message) == NO_SESSION
    return agent.reply(message, {}) if unknown else [message]


@taking("load-goes-on")
def _loaded_is_dead(agent: Filter, message: Message) -> list[Message]:
    if is_load(message):
        agent.notes["loaded"] = True
    dead = message.get("method") == "session/prompt" and "loaded" in agent.notes
    return agent.refuse(message) if dead else [message]


@taking("resume-goes-on")
def _resumed_is_dead(agent: Filter, message: Message) -> list[Message]:
    if is_resume(message):
        agent.notes["resumed"] = True
    dead = message.get("method") == "session/prompt" and "resumed" in agent.notes
    return agent.refuse(message) if dead else [message]


@taking("load-blank")
def _blank_is_lost(agent: Filter, message: Message) -> list[Message]:
    blank = is_load(message) and agent.remembered(agent.session_of(message)) is None
    return agent.refuse(message, -32002) if blank else [message]


@taking("resume")
def _cannot_resume(agent: Filter, message: Message) -> list[Message]:
    return agent.refuse(message) if is_resume(message) else [message]


@giving("resume-silent")
def _replays(agent: Filter, message: Message) -> list[Message]:
    asked = agent.asked(message)
    if agent.method_of(message) != "session/resume" or "replayFrom" in asked or "result" not in message:
        return [message]
    chunk = {"sessionUpdate": "user_message_chunk", "messageId": "past", "content": {"type": "text", "text": "past"}}
    update = {"sessionId": asked["sessionId"], "update": chunk}
    return [{"jsonrpc": "2.0", "method": "session/update", "params": update}, message]


# Listing

answering("list", "session/list", lambda _agent, result, _params: {**without(result, "nextCursor"), "sessions": []})
requesting(
    "list-cwd", "session/list", lambda _agent, message: [{**message, "params": without(message["params"], "cwd")}]
)
answering(
    "list-newest-first",
    "session/list",
    lambda _agent, result, _params: {**result, "sessions": result["sessions"][::-1]},
)


@taking("list-pages")
def _next_page(agent: Filter, message: Message) -> list[Message]:
    if message.get("method") == "session/prompt":
        agent.notes.setdefault("talked", set()).add(agent.session_of(message))
    if message.get("method") == "session/list" and message["params"].get("cursor") == "next":
        return agent.reply(message, agent.notes["next"])
    return [message]


def _row_on_two_pages(agent: Filter, result: Message, _params: Message) -> Message:
    """Give small pages where this process has three sessions; the second begins with the last row of the first."""
    rows = result["sessions"]
    if len(agent.notes.get("talked", ())) <= 2:
        return result
    agent.notes["next"] = {**result, "sessions": rows[1:]}
    return {**result, "sessions": rows[:2], "nextCursor": "next"}


answering("list-pages", "session/list", _row_on_two_pages)
answering(
    "list-times",
    "session/list",
    lambda _agent, result, _params: {
        **result, "sessions": [{**row, "updatedAt": "yesterday"} for row in result["sessions"]]
    },
)  # fmt: skip


def _any_cursor(_agent: Filter, message: Message) -> list[Message]:
    params = message["params"]
    unknown = params.get("cursor") == "holdfast-check-no-such-cursor"
    return [{**message, "params": without(params, "cursor") if unknown else params}]


requesting("list-bad-cursor", "session/list", _any_cursor)
answering(
    "list-title",
    "session/list",
    lambda _agent, result, _params: {**result, "sessions": [without(row, "title") for row in result["sessions"]]},
)


# Modes and options


def _mode_nowhere(_agent: Filter, result: Message, _params: Message) -> Message:
    return {**result, "modes": {**result["modes"], "currentModeId": "nowhere"}} if "modes" in result else result


answering("mode-offered", "session/new", _mode_nowhere)
requesting("set-mode", "session/set_mode", lambda agent, message: agent.refuse(message))


def _any_mode(agent: Filter, message: Message) -> list[Message]:
    return agent.reply(message, {}) if "no-such" in message["params"]["modeId"] else [message]


requesting("set-mode-unknown", "session/set_mode", _any_mode)
answering(
    "options-complete",
    "session/set_config_option",
    lambda _agent, result, params: {
        **result,
        "configOptions": [
            row for row in result["configOptions"] if params["configId"] in (row.get("id"), row.get("configId"))
        ],
    },
)


def _with_values(options: list[Message], value: str | None) -> list[Message]:
    return [{**each, "currentValue": value or each["options"][0]["value"]} for each in options]


answering(
    "options",
    "session/set_config_option",
    lambda _agent, result, _params: {**result, "configOptions": _with_values(result["configOptions"], None)},
)


@taking("options-unknown")
def _sets_anything(agent: Filter, message: Message) -> list[Message]:
    unknown = "no-such" in json.dumps(message.get("params"))
    if message.get("method") == "session/set_config_option" and unknown:
        return agent.reply(message, {"configOptions": agent.notes["options"]})
    return [message]


answering(
    "options-unknown",
    "session/new",
    lambda agent, result, _params: agent.notes.update(options=result.get("configOptions")),
)


@giving("options-restored")
def _forgets_options(agent: Filter, message: Message) -> list[Message]:
    update = agent.update(message)
    if kind_of(update) == "config_option_update" and not agent.running:
        update["configOptions"] = _with_values(update["configOptions"], None)
    result = members(message.get("result"))
    restored = agent.method_of(message) in ("session/load", "session/resume")
    if restored and objects(result.get("configOptions")):
        result["configOptions"] = _with_values(result["configOptions"], None)
    return [message]


# Forking

answering("fork", "session/fork", lambda _agent, result, params: {**result, "sessionId": params["sessionId"]})


def _fork_of_nothing(_agent: Filter, message: Message) -> list[Message]:
    return [{**message, "method": "session/new", "params": without(message["params"], "sessionId")}]


requesting("fork-history", "session/fork", _fork_of_nothing)


def _note_fork(agent: Filter, result: Message, params: Message) -> None:
    agent.notes["fork"], agent.notes["parent"] = result["sessionId"], params["sessionId"]


answering("fork-isolated", "session/fork", _note_fork)


@taking("fork-isolated")
def _talks_in_the_parent(agent: Filter, message: Message) -> list[Message]:
    if message.get("method") != "session/prompt" or agent.session_of(message) != agent.notes.get("fork"):
        return [message]
    return [{**message, "params": {**message["params"], "sessionId": agent.notes["parent"]}}]


_note_fork_answer = BREAKS["fork-isolated"].gives


@giving("fork-isolated")
def _as_the_fork(agent: Filter, message: Message) -> list[Message]:
    if agent.session_of(message) == agent.notes.get("parent") and agent.notes.get("fork") in agent.running:
        return [{**message, "params": {**message["params"], "sessionId": agent.notes["fork"]}}]
    assert _note_fork_answer is not None
    return _note_fork_answer(agent, message)


@giving("fork-own-id")
def _under_the_parent(agent: Filter, message: Message) -> list[Message]:
    if agent.method_of(message) == "session/fork":
        _note_fork(agent, message["result"], agent.asked(message))
    forked = agent.session_of(message) == agent.notes.get("fork")
    if forked and kind_of(agent.update(message)).startswith("agent_message"):
        return [{**message, "params": {**message["params"], "sessionId": agent.notes["parent"]}}]
    return [message]


# Ending


@taking("close")
def _closed_is_lost(agent: Filter, message: Message) -> list[Message]:
    if message.get("method") == "session/close":
        agent.notes["closed"] = agent.session_of(message)
    lost = is_load(message) and agent.notes.get("closed") == agent.session_of(message)
    return agent.refuse(message, -32002) if lost else [message]


@giving("close-quiet")
def _talks_on(agent: Filter, message: Message) -> list[Message]:
    if agent.method_of(message) != "session/close":
        return [message]
    chunk = {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": {"type": "text", "text": "and"}}
    late = {"sessionId": agent.asked(message)["sessionId"], "update": chunk}
    return [message, {"jsonrpc": "2.0", "method": "session/update", "params": late}]


requesting("delete", "session/delete", lambda agent, message: agent.reply(message, {}))


def _not_twice(agent: Filter, message: Message) -> list[Message]:
    session = agent.session_of(message)
    again = agent.notes.get("deleted") == session
    agent.notes["deleted"] = session
    return agent.refuse(message, -32002) if again else [message]


requesting("delete-twice", "session/delete", _not_twice)


@taking("id-not-reused")
def _notes_deleted(agent: Filter, message: Message) -> list[Message]:
    if message.get("method") == "session/delete":
        agent.notes["deleted"] = agent.session_of(message)
    return [message]


@giving("id-not-reused")
def _reuses(agent: Filter, message: Message) -> list[Message]:
    if agent.method_of(message) == "session/new" and "deleted" in agent.notes and "result" in message:
        agent.notes["made"] = message["result"]["sessionId"]
        agent.notes["again"] = agent.notes.pop("deleted")
        return [{**message, "result": {**message["result"], "sessionId": agent.notes["again"]}}]
    if "made" in agent.notes and agent.session_of(message) == agent.notes["made"]:
        return [{**message, "params": {**message["params"], "sessionId": agent.notes["again"]}}]
    return [message]


# After a kill: sessions whose turn was running when their process died


def _was_killed(agent: Filter, message: Message) -> bool:
    session = agent.session_of(message)
    return replaying(agent, message) and agent.remembered(session) == "running"


def _last_dropped(prefix: str) -> Passing:
    """Drop the last message of a kind from the replay of a session that was killed."""

    def gives(agent: Filter, message: Message) -> list[Message]:
        update = agent.update(message)
        if not _was_killed(agent, message) or not kind_of(update).startswith(prefix):
            return [message]
        held: list[Message] = agent.notes.get("held", [])
        if held and agent.update(held[0]).get("messageId") == update.get("messageId"):
            agent.notes["held"] = [*held, message]
            return []
        agent.notes["held"] = [message]
        return held

    return gives


@giving("kill-earlier")
def _first_dropped(agent: Filter, message: Message) -> list[Message]:
    """Drop the first user message from the replay of a session that was killed, if it has two."""
    if agent.method_of(message) in ("session/load", "session/resume"):
        return [*agent.notes.pop("held", []), message]
    update = agent.update(message)
    if not _was_killed(agent, message) or not kind_of(update).startswith("user_message"):
        return [message]
    first = agent.notes.setdefault("first", update.get("messageId"))
    if update.get("messageId") == first:
        agent.notes.setdefault("held", []).append(message)
        return []
    agent.notes["held"] = []
    return [message]


giving("kill-prompt")(_last_dropped("user_message"))
giving("kill-answer")(_last_dropped("agent_message"))


@taking("kill-goes-on")
def _killed_is_dead(agent: Filter, message: Message) -> list[Message]:
    if is_load(message) and agent.remembered(agent.session_of(message)) == "running":
        agent.notes["dead"] = True
    dead = message.get("method") == "session/prompt" and "dead" in agent.notes
    return agent.refuse(message) if dead else [message]


def _seems_to_run(agent: Filter, update: Message, message: Message) -> list[Message]:
    if _was_killed(agent, message) and kind_of(update).startswith("tool_call") and "status" in update:
        return [{**update, "status": "in_progress"}]
    return [update]


updating("kill-calls-closed", _seems_to_run)
for _fault in ("kill-no-orphans", "exit", "exit-in-turn"):
    BREAKS[_fault] = Break()  # the program itself does these


# Hostile bytes


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _value(line: bytes) -> Any:
    return json.loads(line) if len(line) < 10_000 and _is_json(line) else None


def _is_text(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


_NO = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}'
swallowing("bad-json", lambda line: len(line) < 10_000 and _is_text(line) and not _is_json(line))
swallowing("bad-utf8", lambda line: not _is_text(line))
swallowing("bad-value", lambda line: line in (b"null", b"42", b'"hello"'))
swallowing("bad-request", lambda line: b'"method": 5' in line)
swallowing("lone-surrogate", lambda line: b"\\ud83d" in line, _NO)
swallowing("deep-nesting", lambda line: line.startswith(b"[" * 1_000))
swallowing("long-line", lambda line: len(line) > 16 << 20)
swallowing("batch", lambda line: isinstance(_value(line), list) and line != b"[]")
swallowing("empty-batch", lambda line: line == b"[]")
swallowing("foreign-answer", lambda line: b'"never-asked"' in line, _NO)


# MCP servers


def _changed_servers(change: Callable[[list[Message]], list[Message]]) -> Passing:
    def act(_agent: Filter, message: Message) -> list[Message]:
        servers = change(message["params"].get("mcpServers", []))
        return [{**message, "params": {**message["params"], "mcpServers": servers}}]

    return act


requesting(
    "mcp-started",
    "session/new",
    _changed_servers(lambda servers: [each for each in servers if "command" not in each]),
)
requesting("mcp-env", "session/new", _changed_servers(lambda servers: [{**each, "env": []} for each in servers]))
requesting(
    "mcp-unknown-type",
    "session/new",
    _changed_servers(lambda servers: [each for each in servers if each.get("type") != "_holdfast_check"]),
)


def _needs_servers(agent: Filter, message: Message) -> list[Message]:
    commands = [Path(each["command"]) for each in message["params"].get("mcpServers", []) if "command" in each]
    return [message] if all(command.exists() for command in commands) else agent.refuse(message)


requesting("mcp-broken", "session/new", _needs_servers)


def _own_servers(agent: Filter, message: Message) -> list[Message]:
    """Start servers so that nothing ends them with the agent."""
    for server in message["params"].get("mcpServers", []):
        if "command" not in server:
            return [message]
        env = {each["name"]: each["value"] for each in server.get("env", [])}
        hello = '{"jsonrpc":"2.0","method":"notifications/initialized"}'
        feed = f'(echo \'{hello}\'; exec sleep 600) | exec "$0" "$@"'
        subprocess.Popen(
            ["sh", "-c", feed, server["command"], *server["args"]], env={"PATH": "/usr/bin:/bin", **env},
            start_new_session=True, stdin=-3, stdout=-3, stderr=-3,
        )  # fmt: skip
    return _changed_servers(lambda _servers: [])(agent, message)


requesting("mcp-ended", "session/new", _own_servers)


# The client's services


@taking("services-not-offered")
def _reads_anyway(agent: Filter, message: Message) -> list[Message]:
    if message.get("method") == "session/prompt":
        params = {"sessionId": agent.session_of(message), "path": "/etc/hostname"}
        agent.tell({"jsonrpc": "2.0", "id": "mine", "method": "fs/read_text_file", "params": params})
    return [] if message.get("id") == "mine" else [message]


updating(
    "paths-absolute",
    lambda _agent, update, _message: [
        {**update, "locations": [{"path": "notes.txt"}]} if update.get("locations") else update
    ],
)


@taking("client-refuses")
def _notes_refusal(agent: Filter, message: Message) -> list[Message]:
    if members(message.get("error")).get("code") == -32603:
        agent.notes["refused"] = True
    return [message]


@giving("client-refuses")
def _gives_up(agent: Filter, message: Message) -> list[Message]:
    ends = agent.update(message).get("state") == "idle" or agent.method_of(message) == "session/prompt"
    return [] if ends and "refused" in agent.notes else [message]


# Servers: an application around the good one


def _around(change: Callable[[Any, Any, Any], tuple[Any, Any, Any]]) -> Callable[[Any], Any]:
    """Make an ASGI application of another: the change gets scope, receive and send."""

    def make(app: Any) -> Any:
        async def changed(scope: Any, receive: Any, send: Any) -> None:
            await app(*change(scope, receive, send))

        return changed

    return make


def _answers(change: Callable[[Message], Message]) -> Callable[[Any], Any]:
    def around(scope: Any, receive: Any, send: Any) -> tuple[Any, Any, Any]:
        async def changed(message: Message) -> None:
            await send(change(message) if message["type"] == "http.response.start" else message)

        return scope, receive, changed

    return _around(around)


def _without_connection_id(start: Message) -> Message:
    return {**start, "headers": [pair for pair in start["headers"] if pair[0].lower() != b"acp-connection-id"]}


def _without_origin(scope: Any, receive: Any, send: Any) -> tuple[Any, Any, Any]:
    return {**scope, "headers": [pair for pair in scope["headers"] if pair[0] != b"origin"]}, receive, send


def _without_load(scope: Any, receive: Any, send: Any) -> tuple[Any, Any, Any]:
    async def changed() -> Any:
        message = await receive()
        if message.get("text"):
            value = json.loads(message["text"])
            message["text"] = json.dumps({**value, "method": "holdfast/no"}) if is_load(value) else message["text"]
        return message

    return scope, changed, send


REMOTE_BREAKS: dict[str, Callable[[Any], Any]] = {
    "remote-token": lambda app: app,  # its authenticator lets everybody in
    "remote-connection-id": _answers(_without_connection_id),
    "remote-origin": _around(_without_origin),
    "remote-unknown-connection": _answers(lambda start: {**start, "status": 400} if start["status"] == 404 else start),
    "remote-load": _around(_without_load),
}
