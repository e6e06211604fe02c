"""The domain, pure: what a session is made of, in no protocol version's words and in nobody's storage.

An `Event` is something that happened in a session; `History` folds events into entries (messages, tool calls, plans,
terminals…) in the order of their first appearance; `RULES` says how each kind of event folds. Events are shaped like
the newest protocol version's updates, a superset: what a surface does not know survives untouched.
"""

from holdfast.model.agents import AgentDescription, AuthMethod, ClientInfo, OwnSession
from holdfast.model.asks import (
    ALLOW_OR_REJECT,
    Answer,
    Elicitation,
    ElicitationAnswer,
    Permission,
    PermissionOption,
    Question,
)
from holdfast.model.checks import check_update, checked_event, checked_stop_reason
from holdfast.model.content import SystemPrompt, checked_prompt, checked_system_prompt
from holdfast.model.events import (
    Event,
    Update,
    checked_text,
    event_from,
    in_one_line,
    is_object,
    text_event,
    text_without_lone_surrogates,
    without_lone_surrogates,
)
from holdfast.model.forms import form_fits
from holdfast.model.history import Entry, History, Terminal, latest
from holdfast.model.ids import made_at, new_id, new_session_id
from holdfast.model.json_values import check_json
from holdfast.model.kinds import RULES, Fold, Rule
from holdfast.model.lifecycle import Phase, StopReason, TurnEnd, TurnTrigger, next_phase
from holdfast.model.near_names import choice_of, near_name
from holdfast.model.options import (
    Choice,
    ChoiceGroup,
    Option,
    OptionValue,
    checked_value,
    no_such_option,
    options_update,
)
from holdfast.model.positions import Position
from holdfast.model.sessions import (
    LOCAL,
    UNBOUND,
    ArchiveFilter,
    Page,
    Scope,
    SessionInfo,
    SessionState,
    checked_cwd,
    checked_roots,
    encode_state,
    forked,
    normal_path,
    title_from,
)
from holdfast.model.splitting import shortened_update, split_update
from holdfast.model.tool_calls import FINAL_STATUSES, TOOL_KINDS, TOOL_STATUSES, ToolKind, ToolStatus

__all__ = [
    "ALLOW_OR_REJECT",
    "FINAL_STATUSES",
    "LOCAL",
    "RULES",
    "TOOL_KINDS",
    "TOOL_STATUSES",
    "UNBOUND",
    "AgentDescription",
    "Answer",
    "ArchiveFilter",
    "AuthMethod",
    "Choice",
    "ChoiceGroup",
    "ClientInfo",
    "Elicitation",
    "ElicitationAnswer",
    "Entry",
    "Event",
    "Fold",
    "History",
    "Option",
    "OptionValue",
    "OwnSession",
    "Page",
    "Permission",
    "PermissionOption",
    "Phase",
    "Position",
    "Question",
    "Rule",
    "Scope",
    "SessionInfo",
    "SessionState",
    "StopReason",
    "SystemPrompt",
    "Terminal",
    "ToolKind",
    "ToolStatus",
    "TurnEnd",
    "TurnTrigger",
    "Update",
    "check_json",
    "check_update",
    "checked_cwd",
    "checked_event",
    "checked_prompt",
    "checked_roots",
    "checked_stop_reason",
    "checked_system_prompt",
    "checked_text",
    "checked_value",
    "choice_of",
    "encode_state",
    "event_from",
    "forked",
    "form_fits",
    "in_one_line",
    "is_object",
    "latest",
    "made_at",
    "near_name",
    "new_id",
    "new_session_id",
    "next_phase",
    "no_such_option",
    "normal_path",
    "options_update",
    "shortened_update",
    "split_update",
    "text_event",
    "text_without_lone_surrogates",
    "title_from",
    "without_lone_surrogates",
]
