"""Files that a user can name in a prompt: those in the roots of a session, never outside (P9)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.errors import HoldfastError
from holdfast.workspace import Files, Workspace

if TYPE_CHECKING:
    from holdfast.model import SessionInfo

MOST = 20
LOOKED_AT = 5_000
"""So many files of a root are looked at."""

_SKIPPED = (".git", ".hg", ".venv", "node_modules", "__pycache__", "target", "dist", "build", ".mypy_cache")


async def find_files(info: SessionInfo, words: str) -> list[dict[str, str]]:
    """Return files whose path has the words in it, the shortest paths first, each with its address."""
    wanted = words.lower()
    found: dict[str, str] = {}
    for root in (info.cwd, *info.additional):
        try:
            files = Files(Workspace.resolve(root))
            listed = await files.glob("**/*", limit=LOOKED_AT, skip=_SKIPPED)
        except (HoldfastError, OSError):
            continue  # a root that is gone has no files
        for path in listed.items:
            if wanted in path.lower():
                found.setdefault(path, Path(root, path).as_uri())
    best = sorted(found.items(), key=lambda file: (len(file[0]), file[0]))[:MOST]
    return [{"name": name, "uri": uri} for name, uri in best]
