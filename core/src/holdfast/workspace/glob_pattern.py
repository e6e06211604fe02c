"""What a glob pattern means: `*`, `?` and `[…]` within a name, `**` for any number of directories, `{a,b}` for either.

Owns the matching of paths, name by name, so that a scan knows of each directory whether anything in it can match. It
touches no file.
"""

from __future__ import annotations

import fnmatch
import re
from dataclasses import dataclass
from functools import lru_cache

from holdfast.errors import UsageError

MAX_ALTERNATIVES = 100

_MAGIC = re.compile(r"[*?\[{]")
_BRACES = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class GlobPattern:
    """A pattern that paths are matched with, name by name.

    A state is the set of positions that the names so far may have led to; every alternative ends in a `None`.
    """

    steps: tuple[str | None, ...]
    start: frozenset[int]
    directories: bool
    """Whether it looks for directories instead of files."""

    @classmethod
    def split(cls, pattern: str) -> tuple[str, GlobPattern]:
        """Split a pattern into the directory to start from, which is a path, and the pattern to match there."""
        if not pattern:
            raise UsageError(
                "the pattern is empty; '*' matches every file of a directory, '**/*' every file beneath it"
            )
        names = pattern.rstrip("/").split("/")
        plain = next((i for i, name in enumerate(names) if _MAGIC.search(name)), len(names))
        plain = min(plain, len(names) - 1)
        base = "/".join(names[:plain]) or ("/" if pattern.startswith("/") else ".")
        return base, cls.compile("/".join(names[plain:]) + ("/" if pattern.endswith("/") else ""))

    @classmethod
    def compile(cls, pattern: str) -> GlobPattern:
        """Compile a pattern that begins in the directory to be scanned. Raises `UsageError`."""
        steps: list[str | None] = []
        starts: set[int] = set()
        for alternative in _alternatives(pattern.rstrip("/")):
            names = [name for name in alternative.split("/") if name not in {"", "."}]
            if ".." in names:
                raise UsageError(f"{pattern!r} holds '..' after a wildcard; begin the pattern further up instead")
            if names[-1:] == ["**"]:
                names.append("*")  # everything beneath, but not the directory itself
            starts.add(len(steps))
            steps += [*names, None]
        compiled = cls(tuple(steps), frozenset(), pattern.endswith("/"))
        return cls(compiled.steps, compiled._skip_stars(starts), compiled.directories)

    def step(self, state: frozenset[int], name: str) -> frozenset[int]:
        """Return the state after one more name."""
        after: set[int] = set()
        for position in state:
            step = self.steps[position]
            if step == "**":
                after.add(position)
            elif step is not None and _name_matches(step, name):
                after.add(position + 1)
        return self._skip_stars(after)

    def matches(self, state: frozenset[int]) -> bool:
        """Return whether the names so far are a whole match."""
        return any(self.steps[position] is None for position in state)

    def can_match_below(self, state: frozenset[int]) -> bool:
        """Return whether more names could make a match."""
        return any(self.steps[position] is not None for position in state)

    def names(self, name: str) -> bool:
        """Return whether a name is written out in the pattern, and so asked for on purpose."""
        return name in self.steps

    def _skip_stars(self, state: set[int]) -> frozenset[int]:
        """Add the positions that `**` reaches by standing for nothing."""
        for position in sorted(state):
            after = position
            while self.steps[after] == "**":
                after += 1
                state.add(after)
        return frozenset(state)


def _alternatives(pattern: str) -> list[str]:
    """Return the patterns that the braces stand for."""
    done: dict[str, None] = {}
    pending = [pattern]
    while pending:
        text = pending.pop(0)
        braces = _BRACES.search(text)
        if braces is None:
            done[text] = None
        else:
            head, tail = text[: braces.start()], text[braces.end() :]
            pending += [head + choice + tail for choice in braces[1].split(",")]
        if len(done) + len(pending) > MAX_ALTERNATIVES:
            raise UsageError(f"the braces in {pattern!r} stand for more than {MAX_ALTERNATIVES} patterns; use fewer")
    return list(done)


def _name_matches(step: str, name: str) -> bool:
    return step == "*" or _compiled(step).match(name) is not None


@lru_cache(maxsize=256)
def _compiled(step: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(step))
