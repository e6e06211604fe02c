"""What somebody is told who starts by hand what an editor starts."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def tell_what_it_waits_for(agent: Sequence[str], *, name: str | None = None, store: str | None = None) -> None:
    """Say in a terminal that an editor is waited for, and how to talk to this agent there: by `holdfast chat`.

    Nothing is said to editors, whose stdin is a pipe.
    """
    if sys.stdin is not None and sys.stdin.isatty():  # pyright: ignore[reportUnnecessaryComparison]  (none is given by some)
        import shlex  # noqa: PLC0415  (editors, who start us for every window, need none)

        options = (("--name", name), ("--store", store))
        given = [word for option, value in options if value is not None for word in (option, value)]
        instead = shlex.join(["holdfast", "chat", *given, *agent])
        sys.stderr.write(
            f"This waits for an editor to speak ACP on stdin. To talk here: {instead} (Ctrl-C ends this)\n"
        )
