"""Long output read page by page: through the user's pager, where a person looks at a terminal."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import subprocess
import sys
from contextlib import contextmanager, redirect_stdout, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

LESS = "FRX"
"""What `less` is told unless $LESS says otherwise, as by git: end where all fits, show colours, use no other screen."""


def pager_command() -> list[str] | None:
    """Return the pager to use: $HOLDFAST_PAGER, $PAGER, or less; None where none is wanted or there."""
    if not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        return None
    named = os.environ.get("HOLDFAST_PAGER", os.environ.get("PAGER"))
    if named is None:
        return ["less"] if os.name == "posix" and shutil.which("less") else None
    try:
        command = shlex.split(named)
    except ValueError:  # an unclosed quote
        return None
    return command if command and command != ["cat"] and shutil.which(command[0]) else None


@contextmanager
def paged(*, wanted: bool = True) -> Generator[None]:
    """Send what the block writes to stdout through a pager, where there is one. A pager left early ends the block."""
    command = pager_command() if wanted else None
    if command is None:
        yield
        return
    environment = {**os.environ, "LESS": os.environ.get("LESS", LESS), "LV": os.environ.get("LV", "-c")}
    sys.stdout.flush()
    pager = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
    assert pager.stdin is not None
    pages = io.TextIOWrapper(pager.stdin, encoding=sys.stdout.encoding, errors="replace")
    try:
        with suppress(BrokenPipeError):  # whoever has read enough leaves
            with redirect_stdout(pages):
                yield
            pages.flush()
    finally:
        with suppress(BrokenPipeError):
            pages.close()
        _wait(pager)


def _wait(pager: subprocess.Popen[bytes]) -> None:
    """Wait until the user has left the pager; Ctrl-C is for the pager."""
    while True:
        try:
            pager.wait()
        except KeyboardInterrupt:
            continue
        return
