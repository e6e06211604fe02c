"""The declared agents: where each is installed, how it is started, and the home it gets."""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parent.parent.parent.parent
DECLARATIONS = Path(__file__).with_name("agents.toml")
CACHE = Path(os.environ.get("HOLDFAST_FIELD") or Path.home() / ".cache" / "holdfast-field")
"""Where agents are installed."""
NODE = CACHE / "node" / "node_modules" / "node" / "bin"
"""Where `make field` has the Node that all of them can use."""


def node_directory() -> Path:
    """Return where a Node is that agents can use: that of `make field`, or else the one that `make test` installs."""
    return next((found for found in (NODE, *ROOT.glob("node_modules/node-*/bin")) if (found / "node").exists()), NODE)


@dataclass(frozen=True, slots=True)
class FieldAgent:
    """An agent of others, as `agents.toml` declares it."""

    name: str
    title: str
    package: str
    command: tuple[str, ...]
    python: str | None = None
    protocols: tuple[int, ...] = (1,)
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    importer: str | None = None
    """What `holdfast sessions import --from` calls its own sessions."""
    asking_mode: str | None = None
    """The mode in which it asks before it changes a file, where that is not the one it starts in."""
    command_v2: tuple[str, ...] = ()
    """How it starts in version 2, where that is another command."""
    other_model: tuple[str, ...] = ()
    """The model that its files name, and another that its user switches to."""

    @property
    def version(self) -> str:
        """The version that is installed."""
        return re.split(r"@|==", self.package.split()[0])[-1]

    @property
    def place(self) -> Path:
        """Where it is installed."""
        return CACHE / self.name

    @property
    def programs(self) -> Path:
        """Where its programs are: in the tree, where `make test` installs two agents, or in the cache."""
        here = ROOT / f".venv-{self.name}" / "bin" if self.python else ROOT / "node_modules" / ".bin"
        if (here / self.command[0]).exists():
            return here
        return self.place / "bin" if self.python else self.place / "node_modules" / ".bin"

    @property
    def is_installed(self) -> bool:
        """Whether its program is there."""
        return (self.programs / self.command[0]).exists()

    def command_in(self, version: int) -> tuple[str, ...]:
        """Return the command that starts it in a protocol version, as one types it."""
        return self.command_v2 if version == 2 and self.command_v2 else self.command

    def start(self, version: int = 1) -> list[str]:
        """Return the command that starts it in a protocol version, by the program's path."""
        program, *arguments = self.command_in(version)
        return [str(self.programs / program), *arguments]

    def environment(self, home: Path, model: str) -> dict[str, str]:
        """Return its whole environment: nothing of whoever runs this gets in."""
        base = {name: os.environ[name] for name in ("LANG", "TERM", "TMPDIR") if name in os.environ}
        folders = {"CONFIG": ".config", "DATA": ".local/share", "STATE": ".local/state", "CACHE": ".cache"}
        base |= {f"XDG_{name}_HOME": str(home / folder) for name, folder in folders.items()}
        path = os.pathsep.join([str(node_directory()), str(self.programs), os.environ.get("PATH", os.defpath)])
        base |= {"HOME": str(home), "PATH": path, "NO_PROXY": "127.0.0.1", "NO_COLOR": "1"}
        return base | {name: _filled(value, home, model) for name, value in self.env.items()}

    def furnish(self, home: Path, model: str) -> None:
        """Make its home, with the files it reads."""
        home.mkdir(parents=True, exist_ok=True)
        for name, text in self.files.items():
            file = home / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(_filled(text, home, model).lstrip("\n"))

    def switch_model(self, home: Path) -> None:
        """Name the other model in its files, as its user does between two starts."""
        before, after = self.other_model
        for name in self.files:
            file = home / name
            file.write_text(file.read_text().replace(f'"{before}"', f'"{after}"'))


def _filled(text: str, home: Path, model: str) -> str:
    return text.replace("{home}", str(home)).replace("{model}", model)


def declared() -> dict[str, FieldAgent]:
    """Return all agents that are declared, by name."""
    tables = tomllib.loads(DECLARATIONS.read_text())
    return {name: _agent(name, table) for name, table in tables.items()}


def _agent(name: str, table: dict[str, object]) -> FieldAgent:
    renamed = {("importer" if key == "import" else key): value for key, value in table.items()}
    lists = {key: tuple(cast("list[object]", value)) for key, value in renamed.items() if isinstance(value, list)}
    return FieldAgent(name=name, **(renamed | lists))  # pyright: ignore[reportArgumentType]
