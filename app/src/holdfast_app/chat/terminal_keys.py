"""Keys that terminals report in newer ways: Shift-Enter above all.

In the old way Shift-Enter is Enter. Terminals that are asked to (`modifyOtherKeys`) report it as a sequence of its own;
some send one without being asked. What prompt_toolkit does not know of these it would take for text.
"""

from __future__ import annotations

from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.keys import Keys

ASK = "\x1b[>4;1m"
"""Asks for modified keys that have no old way to be reported."""
END = "\x1b[>4m"

_ENTER, _MODIFIERS = 13, range(2, 9)
_PLAIN = {9: Keys.ControlI, 27: Keys.Escape, 127: Keys.ControlH}


def learn_keys() -> None:
    """Let prompt_toolkit know the sequences: Enter with any other key is Alt-Enter, which begins a new line."""
    for modifier in _MODIFIERS:
        for code in (_ENTER, *_PLAIN, *range(32, 127)):
            meaning = _meaning(code, has_control=bool((modifier - 1) & 4))
            ANSI_SEQUENCES[f"\x1b[27;{modifier};{code}~"] = meaning
            ANSI_SEQUENCES[f"\x1b[{code};{modifier}u"] = meaning


def _meaning(code: int, *, has_control: bool) -> Keys | tuple[Keys, ...]:
    """Return what a key means; one that means nothing here is ignored."""
    if code == _ENTER:
        return Keys.Escape, Keys.ControlM
    letter = chr(code).lower()
    if has_control and "a" <= letter <= "z":
        return Keys(f"c-{letter}")
    return _PLAIN.get(code, Keys.Ignore)
