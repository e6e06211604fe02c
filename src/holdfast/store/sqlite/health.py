"""What may be wrong with a store, one check after the other. Each says what it found, in words for the user.

Nothing is changed by looking. What can be put right without losing anything is told by name, and done by `repair`.
"""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

import apsw

from holdfast.store.reports import Finding
from holdfast.store.sqlite import words
from holdfast.store.sqlite.database import migrations

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from holdfast.store.sqlite.database import Database
    from holdfast.store.sqlite.owners import Owners

# apsw describes its values with a type that strict checking cannot see through.
# pyright: reportUnknownMemberType=false

Check: TypeAlias = "Callable[[Database, Premises], Finding]"

BACKUP = "Keep a copy of the file and of those beside it, export what can still be read, and restore a backup"
LITTLE_SPACE = 100 << 20
SHOWN = 3
"""So many examples are named."""


class Premises:
    """Where a store is and who works there; one without a place for its turns is in memory."""

    def __init__(self, path: Path, turns: Path | None, at_work: Owners) -> None:
        self.path = path
        self.turns = turns
        self.at_work = at_work

    def paths(self) -> list[Path]:
        """Give all that only the user should be able to read."""
        if self.turns is None:
            return []
        beside = [self.path.with_name(f"{self.path.name}-{it}") for it in ("wal", "shm")]
        directories = [it for it in (self.turns, self.at_work.directory) if it and it.is_dir()]
        inside = [file for it in directories for file in it.iterdir()]
        return [it for it in (self.path, *beside, *directories, *inside) if it.exists()]

    def logs(self) -> list[Path]:
        """Give the logs of turns."""
        return sorted(self.turns.glob("*.jsonl")) if self.turns is not None and self.turns.is_dir() else []


def check_permissions(_db: Database, premises: Premises) -> Finding:
    """Find out whether others can read it."""
    if os.name == "nt" or premises.turns is None:
        return Finding("permissions", "ok", "Not looked at: the system keeps no such modes for it")
    if strangers := [it for it in premises.paths() if it.stat().st_uid != os.getuid()]:
        return Finding(
            "permissions",
            "problem",
            f"{_some(strangers)} belong to another user",
            "Use `sudo chown` to take them back; another user may be able to read your sessions",
        )
    if open_ := [it for it in premises.paths() if stat.S_IMODE(it.stat().st_mode) & 0o077]:
        return Finding(
            "permissions",
            "problem",
            f"Other users of this machine may be able to read {_some(open_)}",
            "Repairing takes their rights away",
            repair="permissions",
        )
    return Finding("permissions", "ok", "Only you can read it")


def check_format(db: Database, _premises: Premises) -> Finding:
    """Find out how it was written."""
    return Finding(
        "format", "ok", f"Format {db.format()}, the newest is {len(migrations())}; SQLite {apsw.sqlite_lib_version()}"
    )


def check_integrity(db: Database, _premises: Premises) -> Finding:
    """Find out whether the database is whole."""
    said = [str(it) for (it,) in db.rows("check_integrity") if it != "ok" and "fts5" not in str(it).lower()]
    said += [f"a row of {row[0]} refers to a row of {row[2]} that is not there" for row in db.rows("check_references")]
    if said:
        return Finding("database", "problem", f"The database is damaged: {'; '.join(said[:SHOWN])}", BACKUP)
    return Finding("database", "ok", "SQLite finds no damage")


def check_histories(db: Database, _premises: Premises) -> Finding:
    """Find out whether every history has the lines it should have."""
    missing = [id_ for (id_,) in db.rows("miscounted_sessions", limit=SHOWN)]
    unused = db.only("count_unused_segments")
    if missing:
        return Finding("histories", "problem", f"Parts of histories are missing, as of {', '.join(missing)}", BACKUP)
    if unused[0]:
        return Finding(
            "histories", "note", f"{unused[0]} parts of histories belong to no session; they only take space"
        )
    return Finding("histories", "ok", "Every history has all of its parts")


def check_words(db: Database, _premises: Premises) -> Finding:
    """Find out whether a search finds what it should."""
    try:
        with db.transaction():
            db.run("check_words")
        names = ("count_docs_without_words", "count_words_without_doc", "count_lost_docs", "count_untitled_docs")
        wrong = sum(row[0] for row in map(db.row, names) if row)
    except (apsw.CorruptError, apsw.SQLError):
        wrong = -1
    if wrong:
        return Finding(
            "search index",
            "problem",
            "The index of words is damaged"
            if wrong < 0
            else f"The index of words and the texts differ in {wrong} places",
            "A search may miss something, or fail. Repairing makes the index anew; the sessions are not touched",
            repair="words",
        )
    return Finding("search index", "ok", "The index of words is whole")


def check_turns(db: Database, premises: Premises) -> Finding:
    """Find out which turns run, and which broke."""
    with db.transaction():  # whoever asks who is alive must be the only one
        unfinished = list(db.rows("unfinished_turns"))
        broken = [id_ for _, id_, _, owner in unfinished if owner is None or not premises.at_work.is_alive(owner)]
    running = f"{len(unfinished) - len(broken)} running"
    if broken:
        return Finding(
            "turns",
            "note",
            f"{running}; {len(broken)} broken off by the death of their process, as in {', '.join(broken[:SHOWN])}",
            "Nothing was lost: what they had said is stored, and they are closed when their session is opened next",
        )
    return Finding("turns", "ok", running)


def check_logs(db: Database, premises: Premises) -> Finding:
    """Find out whether the logs of turns are those of turns that are not stored yet."""
    with db.transaction():  # nobody begins or ends a turn meanwhile
        left = _left_over(db, premises)
    if left:
        return Finding(
            "turn logs",
            "note",
            f"{len(left)} were left over by turns that are stored, or whose session was deleted",
            "They only take space. Repairing removes them",
            repair="logs",
        )
    return Finding("turn logs", "ok", "None was left over")


def check_owners(db: Database, premises: Premises) -> Finding:
    """Find out which processes use it."""
    with db.transaction():
        owners = premises.at_work.known()
        described = {it: premises.at_work.describe(it) for it in owners}
        sessions = dict(db.rows("owners_of_sessions"))
        alive = [it for it in owners if it != premises.at_work.me and premises.at_work.is_alive(it)]
    dead = sum(count for owner, count in sessions.items() if owner not in alive and owner != premises.at_work.me)
    at_work = ", ".join(f"{described[it]} with {sessions.get(it, 0)} sessions" for it in alive)
    says = f"In use by {at_work}" if alive else "No other process uses it"
    if dead:
        says += f"; {dead} sessions were last used by processes that died, and can be opened by any other"
    return Finding("processes", "ok", says)


def check_space(db: Database, premises: Premises) -> Finding:
    """Find out whether there is room."""
    size, empty = db.pages()
    if premises.turns is None:
        return Finding("space", "ok", f"{_bytes(size)} in memory")
    room = shutil.disk_usage(premises.path.parent).free
    says = f"{_bytes(size)} used, of which {_bytes(empty)} empty; {_bytes(room)} free on the disk"
    if room < LITTLE_SPACE:
        return Finding("space", "problem", says, "Free some space: without it turns cannot be stored, and are stopped")
    if empty > size // 2 and empty > 1 << 20:
        return Finding("space", "note", says, "`holdfast sessions vacuum` gives the empty part back")
    return Finding("space", "ok", says)


CHECKS: tuple[Check, ...] = (
    check_permissions,
    check_format,
    check_integrity,
    check_histories,
    check_words,
    check_turns,
    check_logs,
    check_owners,
    check_space,
)


def repair(db: Database, premises: Premises, name: str) -> str:
    """Put something right; say what was done."""
    match name:
        case "permissions":
            paths = premises.paths()
            for path in paths:
                with suppress(FileNotFoundError):  # whoever had it is done with it
                    path.chmod(0o700 if path.is_dir() else 0o600)
            return f"{len(paths)} files and directories are now only yours to read"
        case "words":
            with db.transaction():
                count = words.rebuild(db)
            return f"The index of words was made anew from {count} texts"
        case "logs":
            removed = 0
            with db.transaction():
                for path in _left_over(db, premises):
                    with suppress(FileNotFoundError):  # whoever had it is done with it
                        path.unlink()
                        removed += 1
            return f"{removed} logs were removed"
        case _:
            return "There was nothing to do"


def _left_over(db: Database, premises: Premises) -> list[Path]:
    kept = {f"{n}-{turn}.jsonl" for n, _, turn, _ in db.rows("unfinished_turns")}
    return [it for it in premises.logs() if it.name not in kept]


def _some(paths: list[Path]) -> str:
    named = ", ".join(map(str, paths[:SHOWN]))
    return named if len(paths) <= SHOWN else f"{named} and {len(paths) - SHOWN} more"


def _bytes(count: int) -> str:
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.1f} MB"
