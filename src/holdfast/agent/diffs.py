"""A change of a file as both protocol versions show it: its old and new text, and a patch."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.model import Update

MAX_PATCH_BYTES = 512 << 10
"""Longer texts are shown without a patch: making one takes time that grows with the square of their length."""


def diff_content(path: str, old: str | None, new: str) -> Update:
    """Make the content that shows a change."""
    content: Update = {
        "type": "diff",
        "changes": [{"operation": "add" if old is None else "modify", "path": path, "fileType": "text"}],
    }
    if len(old or "") + len(new) <= MAX_PATCH_BYTES:
        content["patch"] = {"format": "git_patch", "text": git_patch(path, old, new)}
    return {**content, "path": path, "oldText": old, "newText": new}


def git_patch(path: str, old: str | None, new: str) -> str:
    """Write a change as git would."""
    from difflib import unified_diff  # noqa: PLC0415  (few agents edit; none should wait for it at its start)

    name = path.lstrip("/")
    lines = [f"diff --git a/{name} b/{name}\n"]
    if old is None:
        lines.append("new file mode 100644\n")
    before = "/dev/null" if old is None else f"a/{name}"
    patch = unified_diff((old or "").splitlines(keepends=True), new.splitlines(keepends=True), before, f"b/{name}")
    lines += (it if it.endswith("\n") else f"{it}\n\\ No newline at end of file\n" for it in patch)
    return "".join(lines)
