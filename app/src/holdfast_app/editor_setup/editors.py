"""Which file an editor reads its agents from, and in what form; text to paste where its settings are a program."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class Entry(NamedTuple):
    """An agent as an editor starts it."""

    title: str
    """What the editor lists it under."""
    command: tuple[str, ...]


class Editor(NamedTuple):
    """An editor, and how an agent gets into it."""

    title: str
    file: Callable[[], Path] | None
    """Returns the file with its settings; None where they are a program, into which people paste."""
    value: Callable[[Entry], Any]
    """Returns what stands for an agent: a value for the file, or the text to paste."""
    section: str = "agent_servers"
    """The member of the file that has all agents, by their titles."""
    after: str = ""
    """What to do for the editor to see it."""
    wrapped_title: str = "{}, kept"
    """How an agent that is wrapped is told from the same agent without us."""


def _zed_file() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming") / "Zed" / "settings.json"
    base = os.environ.get("XDG_CONFIG_HOME") if sys.platform != "darwin" else None
    return Path(base or Path.home() / ".config") / "zed" / "settings.json"


def _server(entry: Entry) -> dict[str, Any]:
    return {"command": entry.command[0], "args": list(entry.command[1:]), "env": {}}


def _custom_server(entry: Entry) -> dict[str, Any]:
    return {"type": "custom", **_server(entry)}


def _argv(entry: Entry) -> dict[str, Any]:
    return {"argv": list(entry.command)}


def _toad(entry: Entry) -> str:
    return f"toad acp {shlex.quote(shlex.join(entry.command))}\n"


def _lua(entry: Entry) -> str:
    words = ", ".join(_quoted(word) for word in entry.command)
    name = "".join(letter if letter.isalnum() else "_" for letter in entry.title.lower()).strip("_")
    return f"""\
require("codecompanion").setup({{
  adapters = {{
    acp = {{
      {name} = function()
        local helpers = require("codecompanion.adapters.acp.helpers")
        return {{
          name = "{name}", formatted_name = {_quoted(entry.title)}, type = "acp",
          roles = {{ llm = "assistant", user = "user" }},
          commands = {{ default = {{ {words} }} }},
          defaults = {{ mcpServers = {{}}, timeout = 60000 }},
          parameters = {{
            protocolVersion = 1, clientCapabilities = {{ fs = {{ readTextFile = true, writeTextFile = true }} }},
          }},
          handlers = {{
            setup = function() return true end,
            form_messages = function(self, messages, capabilities)
              return helpers.form_messages(self, messages, capabilities)
            end,
            on_exit = function() end,
          }},
        }}
      end,
    }},
  }},
}})
"""


def _elisp(entry: Entry) -> str:
    title, words = _quoted(entry.title), " ".join(_quoted(word) for word in entry.command[1:])
    name = "".join(letter if letter.isalnum() else "-" for letter in entry.title.lower()).strip("-")
    return f"""\
(add-to-list 'agent-shell-agent-configs
             (agent-shell-make-agent-config
              :identifier '{name} :mode-line-name {title} :buffer-name {title}
              :shell-prompt {_quoted(entry.title + "> ")} :shell-prompt-regexp {_quoted(entry.title + "> ")}
              :client-maker (lambda (buffer)
                              (agent-shell--make-acp-client :command {_quoted(entry.command[0])}
                                                            :command-params '({words})
                                                            :context-buffer buffer))))
"""


def _quoted(text: str) -> str:
    """Return a text in quotes, as Lua and Lisp read it."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


EDITORS: dict[str, Editor] = {
    "zed": Editor(
        "Zed",
        _zed_file,
        _custom_server,
        after="Zed sees it at once: open the agent panel and choose it under +.",
    ),
    "jetbrains": Editor(
        "JetBrains IDEs",
        lambda: Path.home() / ".jetbrains" / "acp.json",
        _server,
        after="Start the IDE again, and choose the agent in the AI chat.",
    ),
    "acpx": Editor(
        "acpx",
        lambda: Path.home() / ".acpx" / "config.json",
        _argv,
        section="agents",
        wrapped_title="{}-kept",
        after="Use it by the name that was added: acpx NAME sessions new",
    ),
    "codecompanion": Editor("CodeCompanion (Neovim)", None, _lua, after="Paste this into your Neovim configuration."),
    "agent-shell": Editor("agent-shell (Emacs)", None, _elisp, after="Paste this into your Emacs configuration."),
    "toad": Editor("Toad", None, _toad, after="Run this."),
}
"""By their short names."""
