"""What somebody is told who starts by hand what an editor starts."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def tell_what_it_waits_for(chat: Sequence[str]) -> None:
    """Say in a terminal that an editor is waited for, and how to talk there: by `holdfast chat` with these arguments.

    Nothing is said to editors, whose stdin is a pipe.
    """
    if sys.stdin is not None and sys.stdin.isatty():  # pyright: ignore[reportUnnecessaryComparison]  (none is given by some)
        import shlex  # noqa: PLC0415  (editors, who start us for every window, need none)

        instead = shlex.join(["holdfast", "chat", *chat])
        sys.stderr.write(
            f"This waits for an editor to speak ACP on stdin. To talk here: {instead} (Ctrl-C ends this)\n"
        )
