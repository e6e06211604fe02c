"""Files that a user can name in a prompt: those in the roots of a session, never outside (P9)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.errors import HoldfastError
from holdfast.workspace import Files, Workspace

if TYPE_CHECKING:
    from holdfast.model import SessionInfo
    from holdfast.server.access import Access

MOST = 20
LOOKED_AT = 5_000
"""So many files of a root are looked at."""

_SKIPPED = (".git", ".hg", ".venv", "node_modules", "__pycache__", "target", "dist", "build", ".mypy_cache")


async def find_files(info: SessionInfo, words: str, access: Access) -> list[dict[str, str]]:
    """Return files whose path has the words in it, the shortest paths first, each with its address.

    `access` is what the user who asks may use: the directories that are looked into are those it allows, even if
    another one takes their place meanwhile.
    """
    wanted = words.lower()
    found: dict[str, str] = {}
    for root in (info.cwd, *info.additional):
        try:
            workspace = Workspace.resolve(root)
            if not access.holds(workspace):
                continue
            with workspace.hold():
                files = Files(workspace, threads=access.threads)
                listed = await files.glob("**/*", limit=LOOKED_AT, skip=_SKIPPED)
        except (HoldfastError, OSError):
            continue  # a root that is gone has no files
        for path in listed.items:
            if wanted in path.lower():
                found.setdefault(path, Path(root, path).as_uri())
    best = sorted(found.items(), key=lambda file: (len(file[0]), file[0]))[:MOST]
    return [{"name": name, "uri": uri} for name, uri in best]
