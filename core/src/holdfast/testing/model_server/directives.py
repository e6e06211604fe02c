"""`obey`: the script in which the user's prompt says what the model does.

The last directive in what the user said counts. It is ``model:`` and a word, and goes to the end of its line:

=====================  =========================================================================
model:say WORDS        say these words
model:think WORDS      think these words, then say "Done."
model:count N MS       say the numbers 1 to N, a pause of MS milliseconds after each
model:run COMMAND      run a command with the agent's shell tool, then say what it printed
model:read PATH        read a file with the agent's tool, then say what is in it
model:write PATH TEXT  write a file with the agent's tool, then say what the tool said
model:remember WORD    say "I will remember it."
model:recall           say the word of the last ``model:remember`` in the conversation it was sent
model:hang             begin to speak, and never go on
model:break            begin to speak, and lose the connection
model:fail STATUS      refuse with a status of HTTP
=====================  =========================================================================

Behind ``User: ``, or between ``<quoted-MARK>`` and ``</quoted-MARK>``, it is a quotation of what was said before, and
counts for ``model:recall`` alone. Without a directive the model says how many messages it was sent.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from holdfast.testing.model_server.conversation import member, sample_value
from holdfast.testing.model_server.replies import Fail, Reply, Say, calls

if TYPE_CHECKING:
    from holdfast.testing.model_server.conversation import Conversation, Tool

_DIRECTIVE = re.compile(
    r"(?<!User: )\bmodel:(say|think|count|run|read|write|remember|recall|hang|break|fail)\b[ \t]*([^\r\n<]*)"
)
_QUOTED = re.compile(r"<quoted-(\w+)>.*?</quoted-\1>", re.DOTALL)
_REMEMBER = re.compile(r"\bmodel:remember[ \t]+([\w-]+)")
_SIDE_WORK = re.compile(r"\b(generate|create|write|suggest|name)\b[^.\n]{0,60}\b(title|topic|summary)\b", re.IGNORECASE)

SHELLS = (
    "exec_command",  # codex
    "shell_command",
    "shell",
    "Bash",  # claude, kimi-code
    "bash",  # opencode, copilot, vibe
    "run_shell_command",  # gemini, qwen
    "developer__shell",  # goose
    "terminal",  # hermes, crow
    "execute",
    "run",  # holdfast code
)
READERS = ("Read", "read", "read_file", "ReadFile", "view", "read_text_file", "text_editor", "str_replace_editor")
WRITERS = ("Write", "write", "write_file", "WriteFile", "create", "write_text_file")
_COMMAND = ("command", "cmd", "script")
_PATH = ("file_path", "filePath", "absolute_path", "path", "filename")
_TEXT = ("content", "text", "contents", "file_text")
_ASKING = {"sandbox_permissions": "require_escalated", "justification": "as scripted"}
"""With these codex asks the user first, instead of running a command in its sandbox."""


def obey(conversation: Conversation) -> Reply:
    """Do what the last directive in the user's prompt says, as ``model:say hello``; a script for `ModelServer`.

    Args:
        conversation: what the model is asked.

    Returns:
        What the model replies.

    """
    if conversation.schema is not None:
        return Say(json.dumps(sample_value(conversation.schema)))
    found = _last_directive(conversation)
    if found is None:
        return Say(f"I was sent {len(conversation.messages)} messages.")
    word, rest, results = found
    if word in ("run", "read", "write"):
        return Say(f"It said: {results[-1].strip()}") if results else _call(conversation, word, rest)
    if _is_side_work(conversation):
        return Say("As scripted")
    return _say(conversation, word, rest)


def _last_directive(conversation: Conversation) -> tuple[str, str, list[str]] | None:
    """Return the word and the rest of the last directive, and what tools have returned since."""
    results: list[str] = []
    for message in reversed(conversation.messages):
        if message.role == "tool":
            results.insert(0, message.text)
        elif message.role == "user" and (found := _DIRECTIVE.findall(_QUOTED.sub("", message.text))):
            word, rest = found[-1]
            return word, rest.strip(), results
    return None


def _is_side_work(conversation: Conversation) -> bool:
    """Whether this is work beside the conversation, as the search for a title: no place for slowness and failures."""
    return not conversation.tools and bool(_SIDE_WORK.search(conversation.instructions))


def _say(conversation: Conversation, word: str, rest: str) -> Reply:
    match word:
        case "say":
            return Say(rest)
        case "think":
            return Say("Done.", thought=rest)
        case "count":
            last, pause = (*map(int, rest.split()), 100)[:2]
            return Say("".join(f"{number} " for number in range(1, last + 1)), pace=pause / 1000)
        case "remember":
            return Say("I will remember it.")
        case "recall":
            return Say(_recalled(conversation))
        case "fail":
            return Fail(int(rest or 500), "it fails, as the script says", {"x-should-retry": "false"})
        case _:
            return Say("I begin to speak, and ", then="break" if word == "break" else "hang")


def _recalled(conversation: Conversation) -> str:
    said = [word for message in conversation.messages for word in _REMEMBER.findall(message.text)]
    return f"The word is {said[-1]}." if said else "I remember no word."


def _call(conversation: Conversation, word: str, rest: str) -> Say:
    """Return a call of the agent's tool for a kind of work."""
    tool = conversation.tool(*{"run": SHELLS, "read": READERS, "write": WRITERS}[word])
    if tool is None:
        return Say("As scripted" if not conversation.tools else f"There is no tool to {word} with.")
    if word == "run":
        asking = [((name,), value) for name, value in _ASKING.items() if name in _properties(tool)]
        return calls((tool.name, _arguments(tool, (_COMMAND, rest), *asking)))
    path, _, text = rest.partition(" ")
    if word == "read":
        return calls((tool.name, _arguments(tool, (_PATH, path))))
    return calls((tool.name, _arguments(tool, (_PATH, path), (_TEXT, text))))


def _arguments(tool: Tool, *given: tuple[tuple[str, ...], str]) -> dict[str, object]:
    """Return the arguments of a call; each value is for the first of its names that the tool knows."""
    known = _properties(tool)
    return tool.arguments(
        **{next((name for name in names if name in known), names[0]): value for names, value in given}
    )


def _properties(tool: Tool) -> dict[str, object]:
    return member(tool.schema, "properties") or {}
