"""Texts that try to run a script, and a session that says one of them in every place that a session has."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

RUN = "window.injected=1"

PAYLOADS = (
    f"<script>{RUN}</script>",
    f"</title></style></textarea></script><script>{RUN}</script>",
    f"<img src=x onerror={RUN}>",
    f"<svg/onload={RUN}>",
    f'"><svg onload="{RUN}">',
    f"' onmouseover='{RUN}' autofocus onfocus='{RUN}' x='",
    f'" style="animation-name:x" onanimationstart="{RUN}" x="',
    f"<details open ontoggle={RUN}>",
    f"<iframe srcdoc='<script>parent.{RUN}</script>'></iframe>",
    f"<iframe src=\"javascript:parent.{RUN}\"></iframe>",
    f"[x](javascript:{RUN})",
    f"[x](JaVa&#x53;cript&colon;{RUN})",
    f"<javascript:{RUN}>",
    f"[x](data:text/html;base64,{b64encode(f'<script>{RUN}</script>'.encode()).decode()})",
    f"![x](x\" onerror=\"{RUN})",
    f"[a]: javascript:{RUN}\n\n[a]",
    f"```html\n<script>{RUN}</script>\n```",
    f"```\"><script>{RUN}</script>\nx\n```",
    f"`<script>{RUN}</script>`",
    f"<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;&lt;img src=1 onerror={RUN}&gt;\">",
    f"<noscript><p title=\"</noscript><img src=x onerror={RUN}>\">",
    "<base href=//evil.example/><link rel=stylesheet href=//evil.example/x.css>",
    f"<meta http-equiv=refresh content='0;url=javascript:{RUN}'>",
    f"<form action=javascript:{RUN}><button autofocus>x</button></form>",
    f"<object data='javascript:{RUN}'></object><embed src='javascript:{RUN}'>",
    f"\x1b[31m<script>{RUN}</script>\x1b[0m\x1b]8;;javascript:{RUN}\x07link\x1b]8;;\x07",
    f"--- a\n+++ b\n@@ -1 +1 @@ <script>{RUN}</script>\n-<img src=x onerror={RUN}>\n+</ins><script>{RUN}</script>",
    f"{{{{constructor.constructor('{RUN}')()}}}}${{{RUN}}}",
    f"java\nscript:{RUN}",
    f"```mermaid\ngraph TD; A[<img src=x onerror={RUN}>] --> B; click A \"javascript:{RUN}\"\n```",
    f"![x](data:image/svg+xml;base64,{b64encode(f'<svg onload={RUN}>'.encode()).decode()})",
    f"![x](https://evil.example/x.png) <https://evil.example/?{RUN}>",
    f"\x1b]8;;https://evil.example/\x1b\\\x1b[2J\x1b]0;{RUN}\x07\x1b]52;c;{RUN}\x07",
    "x" * 20_000 + f"<script>{RUN}</script>",
    f"\u202e<script>{RUN}</script>\u2028\0",
)  # fmt: skip


def everywhere(text: str, prefix: str) -> list[Any]:
    """Return updates that say a text in every place there is; `prefix` keeps the entries of two texts apart."""
    block = {"type": "text", "text": text}
    data = b64encode(text.encode(errors="replace")).decode()
    blocks = [
        block,
        {"type": "image", "mimeType": text, "data": text},
        {"type": "image", "mimeType": "image/svg+xml", "data": data},
        {"type": "audio", "mimeType": text, "data": text},
        {"type": "resource_link", "name": text, "title": text, "uri": text, "description": text},
        {"type": "resource", "resource": {"uri": text, "text": text, "mimeType": text}},
        {"type": "resource", "resource": {"uri": text, "blob": data}},
        {"type": text, text: text},
    ]
    call: dict[str, Any] = {
        "title": text, "name": text, "kind": text, "status": text, "rawInput": {text: text}, "rawOutput": text,
        "locations": [{"path": text, "line": 1}],
        "content": [
            *({"type": "content", "content": each} for each in blocks),
            {"type": "diff", "path": text, "oldText": "a", "newText": text},
            {"type": "diff", "patch": {"text": text}, "changes": [{"operation": text, "path": text}]},
            {"type": "terminal", "terminalId": f"{prefix}{text}"},
            {"type": text, text: text},
        ],
    }  # fmt: skip
    plan = {"entries": [{"content": text, "status": text, "priority": text}]}
    return [
        {"sessionUpdate": "user_message", "messageId": f"{prefix}u", "content": blocks},
        {"sessionUpdate": "agent_thought", "messageId": f"{prefix}t", "content": blocks},
        {"sessionUpdate": "agent_message", "messageId": f"{prefix}m", "content": blocks},
        {"sessionUpdate": "session_message", "messageId": f"{prefix}s", "content": blocks},
        {"sessionUpdate": "tool_call_update", "toolCallId": f"{prefix}c", **call},
        {
            "sessionUpdate": "terminal_update",
            "terminalId": f"{prefix}{text}",
            "command": text,
            "output": {"data": data},
        },
        {"sessionUpdate": "plan_update", "plan": {"planId": f"{prefix}p", **plan}},
        {"sessionUpdate": "plan_update", "plan": {"planId": f"{prefix}q", "type": "markdown", "content": text}},
        {"sessionUpdate": "compaction_update", "compactionId": f"{prefix}k", "status": text, "summary": [block]},
        {"sessionUpdate": "subagent_update", "sessionId": f"{prefix}g", "title": text},
        {"sessionUpdate": "_holdfast/turn_end", "reason": text, "error": text},
        {"sessionUpdate": f"_{text}", text: text},
    ]
