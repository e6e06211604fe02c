"""What differs on Windows for the processes we start. Never run there yet: only its parts are tested, elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

BATCH_FILES = (".cmd", ".bat")
"""What npm puts on PATH for an agent is a `.cmd` file, which only `cmd.exe` can run."""

KILL_SECONDS = 5.0

_SPECIAL = re.compile(r"""([()\][%!^"`<>&|;, *?])""")
_BACKSLASHES_BEFORE_QUOTE = re.compile(r'(\\*)"')
_BACKSLASHES_AT_END = re.compile(r"(\\+)$")


def command_line(command: Sequence[str]) -> Sequence[str] | str:
    """Return what starts a command: the command itself, or for a batch file the line for `cmd.exe`.

    Windows would run a batch file by itself, but with arguments as programs quote them, not as `cmd.exe` reads them: a
    `&` in one would begin another command. What npm installs hands its arguments on to a second command, so they are
    escaped twice. These are the rules of `cross-spawn`, which Node programs use.
    """
    program, *arguments = command
    if not program.lower().endswith(BATCH_FILES):
        return command
    words = [_escape(program), *(_escape(_escape(_quote(argument))) for argument in arguments)]
    shell = os.environ.get("COMSPEC", "cmd.exe")
    return f'{subprocess.list2cmdline([shell])} /d /s /c "{" ".join(words)}"'


def _quote(argument: str) -> str:
    """Quote an argument as programs read it: backslashes count only before a quote."""
    quoted = _BACKSLASHES_BEFORE_QUOTE.sub(r'\1\1\\"', argument)
    return '"' + _BACKSLASHES_AT_END.sub(r"\1\1", quoted) + '"'


def _escape(text: str) -> str:
    """Escape what means something to `cmd.exe`."""
    return _SPECIAL.sub(r"^\1", text)


def kill_tree(pid: int) -> None:
    """Kill a process and those below it: behind a batch file the agent is the child of a `cmd.exe`."""
    with suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(
            ("taskkill", "/F", "/T", "/PID", str(pid)),  # noqa: S607  (where it is, only Windows knows)
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=KILL_SECONDS,
        )
