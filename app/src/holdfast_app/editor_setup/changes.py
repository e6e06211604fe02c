"""Changes of settings files: planned, written whole or not at all, remembered, undone.

What a file had before is kept beside the user's sessions. Undoing one gives back the very file if nobody has changed it
since; otherwise only what was set is taken back, and everything else stays as it is now.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from contextlib import contextmanager, suppress
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from holdfast.errors import UsageError
from holdfast.store.address import data_directory
from holdfast_app.editor_setup.jsonc import read_jsonc, with_member, without_member

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

RECORD = "editor-setup.json"
BACKUPS = "editor-setup"


class Change(NamedTuple):
    """A change of a file that is not made yet."""

    editor: str
    file: Path
    before: str | None
    """What the file holds now; None where there is none."""
    after: str | None
    """What it is to hold; None where there is to be none."""
    path: tuple[str, ...]
    undoes: int | None = None
    """Which of the changes that were made this takes back."""
    replaces: str | None = None
    """What the agent that has the same title starts, where that is something else."""

    @property
    def is_nothing(self) -> bool:
        """Whether the file is already as it is to be."""
        return self.before == self.after

    def difference(self) -> list[str]:
        """Return the lines that go and come, as `diff -u` has them."""
        old, new = (self.before or "").splitlines(), (self.after or "").splitlines()
        now = str(self.file) if self.before is not None else "no file yet"
        then = str(self.file) if self.after is not None else "no file"
        return list(unified_diff(old, new, now, then, lineterm=""))

    def make(self) -> Path | None:
        """Make the change; return where the file as it was is kept, None where there was none.

        Raises:
            UsageError: The file was changed since; nothing was written.

        """
        if _read(self.file) != self.before:
            raise UsageError(f"{self.file} was changed meanwhile, and was left alone; try again")
        backup = _keep(self.file, self.before)
        made = changes_made()
        if self.undoes is None:  # remembered before it is made: what is made can always be undone
            _write_record([*made, _record(self, backup)])
        if self.after is None:
            self.file.unlink(missing_ok=True)
        else:
            _write(self.file, self.after)
        if self.undoes is not None:
            _write_record([*made[: self.undoes], *made[self.undoes + 1 :]])
        return backup


def plan_change(editor: str, file: Path, path: Sequence[str], value: Any) -> Change:
    """Plan to set a member of a settings file. What a user has added to it, as environment variables, stays.

    Raises:
        UsageError: The file is no JSON, even with comments; the message says where.

    """
    file = _real(file)
    before = _read(file)
    with _named(file):
        there = _member(before, path)
        after = with_member(before or "", path, _joined(there, value))
    return Change(editor, file, before, after, tuple(path), replaces=_replaced(there, value))


def plan_undo(editor: str) -> Change | None:
    """Plan to take back the last change of an editor's settings; None where none was made."""
    made = changes_made()
    at = next((at for at in reversed(range(len(made))) if made[at]["editor"] == editor), None)
    if at is None:
        return None
    record = made[at]
    file, path = Path(record["file"]), tuple(record["path"])
    now = _read(file)
    if now is None:
        return Change(editor, file, None, None, path, at)
    if record["sum"] == _sum(now):
        backup = record["backup"]
        return Change(editor, file, now, None if backup is None else _read(Path(backup)), path, at)
    with _named(file):
        if "previous" in record:
            return Change(editor, file, now, with_member(now, path, record["previous"]), path, at)
        return Change(editor, file, now, without_member(now, path), path, at)


def changes_made() -> list[dict[str, Any]]:
    """Return the changes that were made and not undone, the oldest first."""
    text = _read(data_directory() / RECORD)
    try:
        made: Any = json.loads(text) if text else []
    except ValueError:
        return []
    return cast("list[dict[str, Any]]", made) if isinstance(made, list) else []


def _record(change: Change, backup: Path | None) -> dict[str, Any]:
    record: dict[str, Any] = {
        "editor": change.editor,
        "file": str(change.file),
        "path": list(change.path),
        "sum": _sum(change.after or ""),
        "backup": None if backup is None else str(backup),
    }
    previous = _member(change.before, change.path)
    return record if previous is None else record | {"previous": previous}


def _member(text: str | None, path: Sequence[str]) -> Any:
    """Return what stands at a path; None where nothing does."""
    value: Any = read_jsonc(text or "").value
    for name in path:
        value = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
    return value


def _joined(there: Any, value: Any) -> Any:
    """Return a value with what the user has added to the one that is there; what is empty of ours is the user's."""
    if not isinstance(there, dict) or not isinstance(value, dict) or _replaced(there, value) is not None:
        return cast("Any", value)
    ours = {name: member for name, member in cast("dict[str, Any]", value).items() if member != {}}
    return {**cast("dict[str, Any]", value), **cast("dict[str, Any]", there), **ours}


def _replaced(there: Any, value: Any) -> str | None:
    """Return the command that is there, where it is not that of the same agent, perhaps of another installation."""
    if there is None or _command(there)[1:] == _command(value)[1:]:
        return None
    return " ".join(_command(there)) or json.dumps(there, ensure_ascii=False)


def _command(entry: Any) -> list[str]:
    if not isinstance(entry, dict):
        return []
    members = cast("dict[str, Any]", entry)
    return [str(word) for word in members.get("argv") or [members.get("command", ""), *(members.get("args") or ())]]


@contextmanager
def _named(file: Path) -> Generator[None]:
    """Say in an error which file it is about."""
    try:
        yield
    except UsageError as e:
        raise UsageError(f"{file} was left alone, because it cannot be read: {e}") from None


def _real(file: Path) -> Path:
    """Return the file itself where settings are linked from elsewhere: the link stays."""
    try:
        real = file.resolve() if file.is_symlink() else file.absolute()
    except (OSError, RuntimeError):
        real = file
    if real.is_symlink():  # from Python 3.13 on nothing is raised for it
        raise UsageError(f"{file} was left alone: it is a link that leads to itself")
    return real


def _read(file: Path) -> str | None:
    try:
        return file.read_bytes().decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise UsageError(f"{file} was left alone: it is no UTF-8") from None
    except OSError as e:
        raise UsageError(f"{file} was left alone, because it cannot be read: {e.strerror}") from None


def _sum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _keep(file: Path, text: str | None) -> Path | None:
    """Keep a file as it is now, for its owner alone: settings hold keys."""
    if text is None:
        return None
    directory = data_directory() / BACKUPS
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    with tempfile.NamedTemporaryFile(
        "wb", dir=directory, prefix=f"{stamp}-", suffix=f"-{file.name}", delete=False
    ) as kept:
        kept.write(text.encode())
    return Path(kept.name)


def _write_record(made: list[dict[str, Any]]) -> None:
    _write(data_directory() / RECORD, json.dumps(made, indent=2, ensure_ascii=False) + "\n")


def _write(file: Path, text: str) -> None:
    """Write a file whole or not at all, with the rights that it had."""
    file.parent.mkdir(parents=True, exist_ok=True)
    mode = file.stat().st_mode & 0o7777 if file.exists() else 0o600
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(descriptor, "wb") as out:
            out.write(text.encode())
            out.flush()
            os.fsync(out.fileno())
        Path(name).chmod(mode)
        Path(name).replace(file)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
