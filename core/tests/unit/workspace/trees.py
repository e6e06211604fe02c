"""Two roots and a world outside them, to try file tools on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.workspace import Files, Workspace
from holdfast.workspace.safe_open import SafeOpener

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "what is outside"


@dataclass(frozen=True, slots=True)
class Tree:
    """`root` is the cwd, `other` an additional directory; `outside/secret.txt` is what nobody may read."""

    root: Path
    other: Path
    outside: Path
    openat2: bool

    @property
    def workspace(self) -> Workspace:
        return Workspace.resolve(self.root, [self.other])

    @property
    def files(self) -> Files:
        return Files(self.workspace, openat2=self.openat2)

    @property
    def opener(self) -> SafeOpener:
        return SafeOpener(self.workspace, self.openat2)


def plant(base: Path, *, openat2: bool) -> Tree:
    tree = Tree(base / "root", base / "other", base / "outside", openat2)
    for directory in (tree.root, tree.other, tree.outside):
        directory.mkdir()
    (tree.root / "a.txt").write_text("a\n")
    (tree.root / "sub").mkdir()
    (tree.root / "sub" / "b.txt").write_text("b\n")
    (tree.other / "c.txt").write_text("c\n")
    (tree.outside / "secret.txt").write_text(SECRET)
    return tree


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())
