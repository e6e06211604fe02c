"""Updates as a version 1 agent sends them, as hypothesis draws them: schema-valid, with members nobody knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from core.tests.support.updates import objects, text, values

if TYPE_CHECKING:
    from holdfast.model import Update

ids = st.sampled_from(["a", "b", "é\n\U0001f600", "\\"])

something = values.filter(lambda it: it is not None)
nothing: Update = {}
unknown: st.SearchStrategy[Update] = st.just(nothing) | st.dictionaries(
    st.sampled_from(["x", "é", "_mine", "newText2", "capability"]), something, max_size=2
)
"""Members the schema does not name; of those null says nothing in version 1."""


def known(form: dict[str, Any], optional: dict[str, Any] | None = None) -> st.SearchStrategy[Update]:
    """Draw an object with the members of a form, and others; a `_meta` where there is one is no null."""
    meta = st.dictionaries(st.sampled_from(["x", "y", "z/z"]), values, max_size=3)
    return st.tuples(unknown, objects(form, {"_meta": meta, **(optional or {})})).map(lambda it: {**it[0], **it[1]})


blocks = (
    objects({"type": st.just("text"), "text": text})
    | known({"type": st.just("text"), "text": text})
    | known({"type": st.just("image"), "data": st.just("AA=="), "mimeType": st.just("image/png")})
    | known({"type": st.just("resource_link"), "name": text, "uri": text})
)
contents = known({"type": st.just("content"), "content": blocks}) | known(
    {"type": st.just("diff"), "path": st.just("/f"), "newText": text}, {"oldText": text | st.none()}
)
call_members: dict[str, Any] = {
    "name": text,
    "kind": st.sampled_from(["read", "edit", "execute", "other"]),
    "status": st.sampled_from(["pending", "in_progress", "completed", "failed"]),
    "content": st.lists(contents, max_size=3),
    "locations": st.lists(known({"path": st.just("/f")}, {"line": st.integers(0, 9)}), max_size=2),
    "rawInput": something,
    "rawOutput": something,
}


def chunks(*, ids_too: bool = True) -> st.SearchStrategy[Update]:
    """Draw pieces of messages, with ids or without."""
    kinds = st.sampled_from(["user_message_chunk", "agent_message_chunk", "agent_thought_chunk"])
    form: dict[str, Any] = {"sessionUpdate": kinds, "content": blocks}
    return known({**form, "messageId": ids}) if ids_too else known(form)


calls = known({"sessionUpdate": st.just("tool_call"), "toolCallId": ids, "title": text}, call_members)
call_updates = known({"sessionUpdate": st.just("tool_call_update"), "toolCallId": ids}, call_members)
plans = known(
    {
        "sessionUpdate": st.just("plan"),
        "entries": st.lists(
            known(
                {
                    "content": text,
                    "priority": st.sampled_from(["low", "high"]),
                    "status": st.sampled_from(["pending", "completed"]),
                }
            ),
            max_size=3,
        ),
    }
)
choices = known({"value": ids, "name": text}, {"description": text})
groups = known({"group": ids, "name": text, "options": st.lists(choices, max_size=2)})
about_options: dict[str, Any] = {"id": ids, "name": text}
options = known(
    {
        **about_options,
        "type": st.just("select"),
        "currentValue": ids,
        "options": st.lists(choices, max_size=2) | st.lists(groups, max_size=2),
    },
    {"category": st.sampled_from(["model", "mode", "_mine"]), "description": text},
) | known({**about_options, "type": st.just("boolean"), "currentValue": st.booleans()})
configurations = known(
    {"sessionUpdate": st.just("config_option_update"), "configOptions": st.lists(options, min_size=1, max_size=3)}
)
commands = known(
    {
        "sessionUpdate": st.just("available_commands_update"),
        "availableCommands": st.lists(
            known({"name": text, "description": text}, {"input": known({"hint": text})}), max_size=3
        ),
    }
)
modes = known({"sessionUpdate": st.just("current_mode_update"), "currentModeId": ids})
others = (
    known({"sessionUpdate": st.just("session_info_update")}, {"title": text | st.none()})
    | known({"sessionUpdate": st.just("usage_update"), "used": st.integers(0, 9), "size": st.integers(0, 9)})
    | known({"sessionUpdate": st.just("notice"), "severity": st.just("info"), "title": ids})
    | known({"sessionUpdate": st.just("compaction_update"), "compactionId": ids, "status": st.just("completed")})
    | known({"sessionUpdate": st.just("compaction_summary_chunk"), "compactionId": ids, "content": blocks})
)
conversation = chunks() | chunks(ids_too=False) | calls | call_updates | plans
