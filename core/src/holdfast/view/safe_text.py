"""Text of strangers made safe to show: nothing in it can steer a terminal or turn the direction of the text around it.

Whatever an agent, a tool or a file has said goes through here before a person sees it: in a terminal, a transcript, a
page. Quoting for Markdown or HTML is done where those are written.
"""

from __future__ import annotations

import re

BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Characters that turn the direction of writing, and could make a command look like another one."""

_TABLE: dict[int, str] = {
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n"},
    0x7F: "\u2421",
    **dict.fromkeys(range(0x80, 0xA0), "\ufffd"),
    **dict.fromkeys(range(0xD800, 0xE000), "\ufffd"),
    **dict.fromkeys(map(ord, BIDI), "\ufffd"),
}
"""Control characters become pictures of themselves; the others, which have none, U+FFFD."""

_UNSAFE = re.compile(f"[\0-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff{BIDI}]")

_IN_JSON = re.compile(f"[\x7f-\x9f{BIDI}]")

ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, movements of the cursor
    r"|(?:\x1b[]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f]*(?:\x07|\x1b\\|\x9c)"  # titles, links, strings
    r"|\x1b[ -/]*[0-OQ-WYZ\\`-~]"
)


def safe_text(text: str) -> str:
    """Return text that is safe to show; newlines and tabs stay."""
    text = text.replace("\r\n", "\n")
    return text.translate(_TABLE) if _UNSAFE.search(text) else text


def safe_line(text: str) -> str:
    """Return text that is safe to show on one line, as a title in a list."""
    return safe_text(" ".join(text.split()))


def safe_json(encoded: bytes) -> str:
    """Return JSON that is safe to show and means the same: unsafe characters are escaped."""
    return _IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", encoded.decode())


def terminal_text(output: bytes) -> str:
    """Return what a terminal showed in the end, without its colours, safe to show."""
    text = ESCAPES.sub("", output.decode(errors="replace"))
    if "\r" in text:
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return safe_text(_without_erased(text) if "\x08" in text else text)


def _without_erased(text: str) -> str:
    """Remove what backspaces erased."""
    kept: list[str] = []
    for character in text:
        if character != "\x08":
            kept.append(character)
        elif kept and kept[-1] != "\n":
            kept.pop()
    return "".join(kept)
