"""Tracebacks in which the author's own code comes first, and the frames of Holdfast after it.

Whose code a frame is shows in its file: Holdfast's lies in this package, that of libraries in `site-packages` or in
Python's own directory, and everything else is the author's.
"""

from __future__ import annotations

import sysconfig
from traceback import FrameSummary, StackSummary, TracebackException
from typing import TYPE_CHECKING, cast

from holdfast.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

_HOLDFAST = __file__.replace("\\", "/").rpartition("/diagnostics/")[0] + "/"
_LIBRARIES = ("/site-packages/", "/dist-packages/")
_PYTHON = tuple(f"{sysconfig.get_path(name)}/".replace("\\", "/") for name in ("stdlib", "platstdlib"))

LEFT_OUT = "\n\nFrames of Holdfast and of Python, left out above:\n"
"""Stands between the author's part of a traceback and the rest."""

MAX_FRAMES = 60
"""So many frames of one stack are shown, the first and the last of it: one that calls itself has a thousand."""


def format_failure(failure: BaseException) -> str:
    """Return a traceback as text: the author's frames and what was raised, then the frames of Holdfast."""
    shown = TracebackException.from_exception(failure, compact=True)
    ours: list[FrameSummary] = []
    for part in _chain(shown):
        theirs, others = _split(part.stack)
        if not theirs and not isinstance(failure, UsageError):
            theirs, others = others, []  # then it is all there is to see
        # Without frames there is no heading of a traceback either.
        part.stack = StackSummary.from_list(_shortened(theirs)) if theirs else cast("StackSummary", None)
        ours += others
    text = "".join(shown.format()).rstrip("\n")
    if not ours:
        return text
    below = "".join(StackSummary.from_list(_shortened(ours)).format())
    return f"{text}{LEFT_OUT}{below}".rstrip("\n")


def format_for_author(failure: BaseException) -> str:
    """Return a traceback as text, without the frames of Holdfast: its last line says what was raised."""
    return author_part(format_failure(failure))


def author_part(text: str) -> str:
    """Return what of a traceback that `format_failure` returned is the author's."""
    return text.partition(LEFT_OUT)[0]


def author_frames(stack: StackSummary) -> list[FrameSummary]:
    """Return the frames of a stack that are of the author's own code, the outermost first."""
    return [frame for frame in stack if _whose(frame.filename) == "author"]


def is_of_author(filename: str) -> bool:
    """Return whether a file is the author's: neither Holdfast's, nor a library's, nor Python's."""
    return _whose(filename) == "author"


def _split(stack: StackSummary) -> tuple[list[FrameSummary], list[FrameSummary]]:
    """Divide a stack into what is the author's with the libraries it uses, and what is Holdfast's and Python's."""
    theirs: list[FrameSummary] = []
    others: list[FrameSummary] = []
    seen = False  # what comes before the author's first frame only leads to it
    for frame in stack:
        whose = _whose(frame.filename)
        seen = seen or whose == "author"
        (theirs if seen and whose in ("author", "library") else others).append(frame)
    return theirs, others


def _shortened(frames: list[FrameSummary]) -> list[FrameSummary]:
    half = MAX_FRAMES // 2
    if len(frames) <= MAX_FRAMES:
        return frames
    left_out = FrameSummary("…", 0, f"{len(frames) - MAX_FRAMES} more frames", lookup_line=False, line="")
    return [*frames[:half], left_out, *frames[-half:]]


def _whose(filename: str) -> str:
    path = filename.replace("\\", "/")
    if path.startswith(_HOLDFAST):
        return "holdfast"
    if path.startswith("<"):  # frozen modules of Python's own; what is given to `exec` too
        return "python"
    if any(part in path for part in _LIBRARIES):
        return "library"
    return "python" if path.startswith(_PYTHON) else "author"


def _chain(shown: TracebackException) -> Iterator[TracebackException]:
    """Yield an exception, and those that caused it or are grouped in it."""
    waiting, met = [shown], set[int]()
    while waiting:
        part = waiting.pop()
        if id(part) in met:
            continue
        met.add(id(part))
        yield part
        waiting += [other for other in (part.__cause__, part.__context__) if other is not None]
        waiting += part.exceptions or ()
