"""A history as Markdown: for people."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

import pytest

from core.tests.support.clients import folded
from holdfast.model import event_from
from holdfast.view.transcript import markdown

if TYPE_CHECKING:
    from holdfast.model import Update


def text(words: str) -> Update:
    return {"type": "text", "text": words}


def call(**members: Any) -> Update:
    return {"sessionUpdate": "tool_call_update", "toolCallId": "c", **members}


def message(kind: str, *blocks: Update) -> Update:
    return {"sessionUpdate": kind, "messageId": kind, "content": list(blocks)}


PATCH = {"format": "git_patch", "text": "--- a\n+++ b\n"}

STORY: list[Update] = [
    {"sessionUpdate": "session_info_update", "title": "A day"},
    message("user_message", text("How warm?"), {"type": "resource_link", "name": "map", "uri": "file:///m"}),
    message("agent_thought", text("Well.\n\nWell.")),
    call(title="Read\nit", kind="read", status="completed", content=[{"type": "content", "content": text("21 °C")}]),
    {
        "sessionUpdate": "terminal_update",
        "terminalId": "t",
        "command": "ls",
        "output": {"data": b64encode(b"a ``` b\n").decode()},
        "exitStatus": {"exitCode": 2},
    },
    {**call(content=[{"type": "terminal", "terminalId": "t"}]), "toolCallId": "d"},
    {
        "sessionUpdate": "plan_update",
        "plan": {"type": "items", "planId": "p", "entries": [{"content": "Rest", "status": "completed"}]},
    },
    message("agent_message", text("It is warm."), {"type": "image", "data": "", "mimeType": "image/png"}),
    {"sessionUpdate": "_mine", "x": 1},
    {"sessionUpdate": "_holdfast/turn_end", "reason": "cancelled"},
]

MARKDOWN = """\
## You

> How warm?

map: file:///m

## Agent, thinking

> Well.
>
> Well.

## Tool: Read it (read, completed)

```
21 °C
```

## Terminal: ls (exited with 2)

````
a ``` b
````

## Tool: d

*Terminal t*

## Plan

- ☑ Rest

## Agent

> It is warm.

*Image: image/png*

## Other: \\_mine

```json
{
  "x": 1
}
```

## Note: The turn was cancelled
"""


def test_a_history_can_be_read() -> None:
    assert markdown(folded(map(event_from, STORY))).rstrip() == MARKDOWN.rstrip()
    assert not markdown(folded([])).strip()


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (
            {"type": "diff", "changes": [], "patch": PATCH, "path": "/f", "newText": "x"},
            "```diff\n--- a\n+++ b\n```",
        ),
        (
            {"type": "diff", "path": "/f", "newText": "x\n"},
            "```diff\n--- /dev/null\n+++ /f\n@@ -0,0 +1 @@\n+x\n```",
        ),
        ({"type": "diff", "changes": [{"operation": "delete", "path": "/f"}]}, "*delete: /f*"),
        ({"type": "_mine"}, '```json\n{\n  "type": "_mine"\n}\n```'),
    ],
)
def test_a_change_is_shown_as_a_patch_where_there_is_one(shown: Update, expected: str) -> None:
    told = markdown(folded([event_from(call(title="Edit", content=[shown]))]))
    assert told.rstrip("\n") == f"## Tool: Edit\n\n{expected}"
