"""What an agent is told of a conversation that it has forgotten, and what the user is told of that. Pure (G6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.model import Entry, Update
    from holdfast.proxy.compare import Turn
    from holdfast.proxy.restore import Lost

URI = "holdfast://conversation"
"""The address of the resource that holds what was said."""

NOTES = {
    "lost": "The agent no longer has this conversation. What was said before goes to it along with this prompt.",
    "torn": "The agent was stopped before it had finished. What was said goes to it again along with this prompt.",
    "fork": "This conversation was forked. What was said before goes to the agent along with this prompt.",
    "handed over": "Another agent goes on here. What was said before goes to it along with this prompt.",
}
ANEW = "The agent no longer has this conversation, and begins anew: it does not know what was said before."

NAMES_FILES = frozenset({"Copilot"})
"""Agents, by the name they give in `initialize`, that are told as text although they say that they take resources.

What is attached they put into a file, and their model is told no more than its name (seen in Copilot 1.0.102). No
capability says so, so they are listed; `make field` shows it: its scenes "agent killed" and "hand-over" fail.
"""

_SPEAKERS = {"user_message": "User", "agent_message": "Agent"}
_BEFORE = {
    True: "This is the conversation so far. You took part in it as the agent, but do not have it any more.",
    False: "This is the last part of the conversation so far. You may not have all of it any more.",
}
_AFTER = "Go on from there."
_NOW = "\n(What was said before is attached.) The user says now:\n\n"
"""Stands between the two: some agents put attachments behind the prompt, others join the blocks without a space."""


def seed_blocks(lost: Lost, *, seeds: bool, takes_resources: bool, budget: int) -> tuple[list[Update], str]:
    """Return the blocks to put in front of a prompt, and what to tell the user.

    Args:
        lost: What the agent does not know.
        seeds: Whether it is to be told at all.
        takes_resources: Whether the agent takes embedded resources; otherwise it is told as text.
        budget: So many characters may be told; the newest are told word for word.

    """
    if not seeds:
        return [], ANEW
    text, left_out = transcript(lost.turns, budget)
    if not text:
        return [], NOTES[lost.reason]
    note = NOTES[lost.reason]
    if left_out:
        note += f" It is too long to be told whole: the oldest {left_out} of its messages are left out."
    whole = f"{_BEFORE[lost.everything]} {_AFTER}\n\n{text}"
    if takes_resources:
        resource = {"uri": URI, "mimeType": "text/markdown", "text": whole}
        return [{"type": "resource", "resource": resource}, {"type": "text", "text": _NOW}], note
    return [{"type": "text", "text": f"<conversation>\n{whole}\n</conversation>\n{_NOW}"}], note


def transcript(turns: Sequence[Turn], budget: int) -> tuple[str, int]:
    """Return turns as text, and how many of their oldest messages did not fit into the budget."""
    said = [part for turn in turns for entry in turn.entries for part in _told(entry)]
    kept: list[str] = []
    room = budget
    for part in reversed(said):
        if len(part) > room:
            if not kept and room > 0:
                kept.append(f"[…]{part[-room:]}")  # not even the newest fits whole
            break
        kept.append(part)
        room -= len(part)
    left_out = len(said) - len(kept)
    if left_out and kept:
        kept.append(f"[{left_out} older messages are left out here]")
    return "\n\n".join(reversed(kept)), left_out


def _told(entry: Entry) -> Iterator[str]:
    if entry.entity in _SPEAKERS:
        text = entry.text().strip()
        others = [str(block.get("type")) for block in entry.blocks() if block.get("type") != "text"]
        more = "".join(f"\n[{kind}]" for kind in others)
        if text or more:
            yield f"{_SPEAKERS[entry.entity]}: {text}{more}"
    elif entry.entity == "tool_call_update":
        title = str(entry.members.get("title") or entry.members.get("kind") or "a tool")
        output = entry.text().strip()
        told = f"Agent used a tool: {title} ({entry.members.get('status') or 'unknown'})"
        yield f"{told}\n{output[:2000]}" if output else told
