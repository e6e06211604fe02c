"""What a glob pattern means: `*`, `?` and `[…]` within a name, `**` for any number of directories, `{a,b}` for either.

Owns the matching of paths, name by name, so that a sweep knows of each directory whether anything in it can still fit.
It touches no file.
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
class Pattern:
    """A pattern that paths are matched with step by step.

    A state is the set of positions in it that the names so far may have led to; every alternative ends in one `None`.
    """

    steps: tuple[str | None, ...]
    start: frozenset[int]
    directories: bool
    """Whether it looks for directories instead of files."""

    @classmethod
    def split(cls, pattern: str) -> tuple[str, Pattern]:
        """Split a pattern into the directory to start from, which is taken as a path, and the rest."""
        if not pattern:
            raise UsageError("the pattern is empty; '*' fits every file of a directory, '**/*' every file beneath it")
        names = pattern.rstrip("/").split("/")
        plain = next((i for i, name in enumerate(names) if _MAGIC.search(name)), len(names))
        plain = min(plain, len(names) - 1)
        base = "/".join(names[:plain]) or ("/" if pattern.startswith("/") else ".")
        return base, cls.compile("/".join(names[plain:]) + ("/" if pattern.endswith("/") else ""))

    @classmethod
    def compile(cls, pattern: str) -> Pattern:
        """Prepare a pattern of names that begins in the directory to be swept."""
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
        return cls(compiled.steps, compiled._spread(starts), compiled.directories)

    def step(self, state: frozenset[int], name: str) -> frozenset[int]:
        """Give the state after one more name."""
        after: set[int] = set()
        for position in state:
            step = self.steps[position]
            if step == "**":
                after.add(position)
            elif step is not None and _fits(step, name):
                after.add(position + 1)
        return self._spread(after)

    def fits(self, state: frozenset[int]) -> bool:
        """Whether the names so far are a whole match."""
        return any(self.steps[position] is None for position in state)

    def hopeful(self, state: frozenset[int]) -> bool:
        """Whether more names could make a match."""
        return any(self.steps[position] is not None for position in state)

    def names(self, name: str) -> bool:
        """Whether a name is written out in the pattern, and so asked for on purpose."""
        return name in self.steps

    def _spread(self, state: set[int]) -> frozenset[int]:
        """Add the positions that `**` reaches by standing for nothing."""
        for position in sorted(state):
            after = position
            while self.steps[after] == "**":
                after += 1
                state.add(after)
        return frozenset(state)


def _alternatives(pattern: str) -> list[str]:
    """Write out the braces, the innermost first."""
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


def _fits(step: str, name: str) -> bool:
    return step == "*" or _compiled(step).match(name) is not None


@lru_cache(maxsize=256)
def _compiled(step: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(step))
