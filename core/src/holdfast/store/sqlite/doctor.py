"""What may be wrong with a store, one check after the other. Each says what it found, in words for the user.

Nothing is changed by looking. What can be put right without losing anything is told by name, and done by `repair`.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
import time
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import apsw

from holdfast.format import FORMAT
from holdfast.format.log_records import decode_log
from holdfast.model.kinds import LOG_BEGUN
from holdfast.store.port import EventWindow
from holdfast.store.reports import Finding
from holdfast.store.sqlite import search_index
from holdfast.store.sqlite.database import lost_changes
from holdfast.store.sqlite.histories import find_damaged
from holdfast.store.sqlite.rows import SessionRow, UnsealedRow

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from holdfast.store.sqlite.claims import Claims
    from holdfast.store.sqlite.database import Database
    from holdfast.store.sqlite.files import StoreFiles
    from holdfast.store.sqlite.processes import Processes

# apsw describes its values with a type that strict checking cannot see through.
# pyright: reportUnknownMemberType=false

BACKUP = "Keep a copy of the file and of those beside it, export what can still be read, and restore a backup"
LITTLE_SPACE = 100 << 20
SHOWN = 3
"""So many examples are named."""

_LOG = re.compile(r"(\d+)(?:-\d+\.jsonl|\.log|\.kept)")
"""The name of a log: today's, a part of one that was put aside, or that of format 1."""

_BEGINNING = 4096
"""So much of a log tells how it begins."""


class ExaminedStore(NamedTuple):
    """A store to look at; `files` is None for one in memory."""

    files: StoreFiles | None
    processes: Processes
    claims: Claims


Check: TypeAlias = "Callable[[Database, ExaminedStore], Finding]"


def check_permissions(_db: Database, store: ExaminedStore) -> Finding:
    """Find out whether others can read it."""
    if sys.platform == "win32" or store.files is None:
        return Finding("permissions", "ok", "Not looked at: the system keeps no such modes for it")
    own = store.files.own()
    if strangers := [path for path in own if path.stat().st_uid != os.getuid()]:
        return Finding(
            "permissions",
            "problem",
            f"{_some(strangers)} belong to another user",
            "Use `sudo chown` to take them back; another user may be able to read your sessions",
        )
    if readable := [path for path in own if stat.S_IMODE(path.stat().st_mode) & 0o077]:
        return Finding(
            "permissions",
            "problem",
            f"Other users of this machine may be able to read {_some(readable)}",
            "Repairing takes their rights away",
            repair="permissions",
        )
    return Finding("permissions", "ok", "Only you can read it")


def check_format(db: Database, _examined: ExaminedStore) -> Finding:
    """Find out how it was written."""
    return Finding("format", "ok", f"Format {db.format()}, the newest is {FORMAT}; SQLite {apsw.sqlite_lib_version()}")


def check_integrity(db: Database, _examined: ExaminedStore) -> Finding:
    """Find out whether the database is whole."""
    said = [str(text) for (text,) in db.rows("check_integrity") if text != "ok" and "fts5" not in str(text).lower()]
    said += [f"a row of {row[0]} refers to a row of {row[2]} that is not there" for row in db.rows("check_references")]
    if said:
        return Finding("database", "problem", f"The database is damaged: {'; '.join(said[:SHOWN])}", BACKUP)
    return Finding("database", "ok", "SQLite finds no damage")


def check_losses(db: Database, _examined: ExaminedStore) -> Finding:
    """Find out whether the database is older than what was acknowledged."""
    if lost := db.value("lost_commits"):
        return Finding(
            "losses",
            "problem",
            lost_changes(lost),
            "Look at your newest sessions, and restore a newer backup if there is one. Repairing ends this report",
            repair="losses",
        )
    return Finding("losses", "ok", "Every acknowledged change is there")


def check_sessions(db: Database, _examined: ExaminedStore) -> Finding:
    """Find out whether what is known of every session can be read."""
    if damaged := [id_ for (id_,) in db.rows("unreadable_sessions", limit=SHOWN)]:
        return Finding(
            "sessions", "problem", f"What is known of sessions is damaged, as of {', '.join(damaged)}", BACKUP
        )
    return Finding("sessions", "ok", "What is known of every session can be read")


def check_histories(db: Database, _examined: ExaminedStore) -> Finding:
    """Find out whether every history has the lines it should have, as they were written."""
    if missing := [id_ for (id_,) in db.rows("miscounted_sessions", limit=SHOWN)]:
        return Finding("histories", "problem", f"Parts of histories are missing, as of {', '.join(missing)}", BACKUP)
    if misplaced := list(db.rows("gaps_in_histories", limit=SHOWN)):
        places = ", ".join(f"line {position + 1} of {session}" for session, position, _ in misplaced)
        return Finding("histories", "problem", f"Parts of histories are out of place, as at {places}", BACKUP)
    if damaged := list(islice(find_damaged(db), SHOWN)):
        places = ", ".join(f"lines {first + 1} to {end} of {session}" for session, first, end in damaged)
        return Finding("histories", "problem", f"Parts of histories are damaged, as {places}", BACKUP)
    if unused := db.value("count_unused_segments"):
        return Finding("histories", "note", f"{unused} parts of histories belong to no session; they only take space")
    return Finding("histories", "ok", "Every history has all of its parts")


def check_search_index(db: Database, _examined: ExaminedStore) -> Finding:
    """Find out whether a search finds what it should."""
    try:
        with db.transaction():
            db.run("check_words")
        names = ("count_docs_without_words", "count_words_without_doc", "count_lost_docs", "count_untitled_docs")
        wrong = sum(map(db.value, names))
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


def check_turns(db: Database, store: ExaminedStore) -> Finding:
    """Find out which turns run, and which broke."""
    with db.transaction():  # whoever asks who is alive must be the only one
        unsealed = _unsealed(db, store)
        broken = [row for row in unsealed if not store.claims.has_writer(row.n, row.owner)]
        damaged = [row.id for row in broken if _has_damaged_log(store, row)]
    running = f"{len(unsealed) - len(broken)} running"
    names = ", ".join(row.id for row in broken[:SHOWN])
    if damaged:
        return Finding(
            "turns",
            "problem",
            f"{running}; {len(broken)} broken off by the death of their process, and the logs of some are damaged, "
            f"as of {', '.join(damaged[:SHOWN])}",
            "What is before the damage is stored. When such a session is opened, it says that something is missing",
        )
    if broken:
        return Finding(
            "turns",
            "note",
            f"{running}; {len(broken)} broken off by the death of their process, as in {names}",
            "Nothing was lost: what they had said is stored, and they are closed when their session is opened next",
        )
    return Finding("turns", "ok", running)


def check_logs(db: Database, store: ExaminedStore) -> Finding:
    """Find out whether the logs of turns are those of turns that are not stored yet."""
    with db.transaction():  # nobody begins or ends a turn meanwhile
        left = _left_over(db, store)
    if left:
        return Finding(
            "turn logs",
            "note",
            f"{len(left)} were left over by turns that are stored, or whose session was deleted",
            "They only take space. Repairing removes them",
            repair="logs",
        )
    return Finding("turn logs", "ok", "None was left over")


def check_processes(db: Database, store: ExaminedStore) -> Finding:
    """Find out which processes use it."""
    processes = store.processes
    with db.transaction():
        known = processes.known()
        described = {process: processes.describe(process) for process in known}
        sessions = dict(db.rows("count_by_owner"))
        alive = [process for process in known if process != processes.me and processes.is_alive(process)]
    dead = sum(count for process, count in sessions.items() if process not in alive and process != processes.me)
    at_work = ", ".join(f"{described[process]} with {sessions.get(process, 0)} sessions" for process in alive)
    says = f"In use by {at_work}" if alive else "No other process uses it"
    if dead:
        says += f"; {dead} sessions were last used by processes that died, and can be opened by any other"
    return Finding("processes", "ok", says)


def check_space(db: Database, store: ExaminedStore) -> Finding:
    """Find out whether there is room."""
    size, empty = db.pages()
    if store.files is None:
        return Finding("space", "ok", f"{_bytes(size)} in memory")
    room = shutil.disk_usage(store.files.database.parent).free
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
    check_losses,
    check_sessions,
    check_histories,
    check_search_index,
    check_turns,
    check_logs,
    check_processes,
    check_space,
)


def repair(db: Database, store: ExaminedStore, name: str) -> str:
    """Put something right; return what was done."""
    match name:
        case "permissions" if store.files is not None:
            store.files.make_private()
            return f"{len(store.files.own())} files and directories are now only yours to read"
        case "words":
            with db.transaction():
                count = search_index.rebuild(db)
            return f"The index of words was made anew from {count} texts"
        case "losses":
            with db.transaction():
                db.run("forget_lost_commits")
            return "The lost changes are not reported any more"
        case "logs":
            with db.transaction():
                removed = sum(map(_remove, _left_over(db, store)))
            return f"{removed} logs were removed"
        case _:
            return "There was nothing to do"


def _left_over(db: Database, store: ExaminedStore) -> list[Path]:
    """Find the logs that nobody needs: nothing in them is unsealed, and no living process keeps them for its turns."""
    unsealed = _unsealed(db, store)
    kept = {f"{row.n}-{row.turn}.jsonl" for row in unsealed} | {f"{row.n}.log" for row in unsealed}
    owned = list(db.rows("owned_sessions"))
    alive = {owner for owner in {owner for _, owner in owned} if store.processes.is_alive(owner)}
    kept |= {f"{n}.log" for n, owner in owned if owner in alive}
    return [path for path in _logs(store) if path.name not in kept and not _stays_for_a_while(path)]


def _stays_for_a_while(path: Path) -> bool:
    """Return whether a log is one that stays readable after its seal, and is not too old."""
    try:
        with path.open("rb") as file:
            is_kept = LOG_BEGUN.encode() in file.read(_BEGINNING)
        return is_kept and time.time() - path.stat().st_mtime < EventWindow().seconds
    except OSError:
        return False


def _unsealed(db: Database, store: ExaminedStore) -> list[UnsealedRow]:
    """Find the turns that are not sealed: those the database knows of, and those that began in their logs alone."""
    unsealed = [UnsealedRow(*row) for row in db.rows("unsealed_turns")]
    known = {row.n for row in unsealed}
    for path in _logs(store):
        n = int(path.stem.partition("-")[0])
        row = None if n in known else db.first(SessionRow, "get_session_by_number", n=n)
        if row is not None and store.claims.begun_in_log(row):
            unsealed.append(UnsealedRow(n, row.id, row.turn + 1, row.owner))
            known.add(n)
    return unsealed


def _logs(store: ExaminedStore) -> list[Path]:
    if store.files is None or not store.files.turns.is_dir():
        return []
    return sorted(path for path in store.files.turns.iterdir() if _LOG.fullmatch(path.name))


def _has_damaged_log(store: ExaminedStore, row: UnsealedRow) -> bool:
    if store.files is None:
        return False
    try:
        data = (store.files.turns / f"{row.n}.log").read_bytes()
    except OSError:
        return False
    return decode_log(data, row.turn).is_damaged


def _remove(path: Path) -> int:
    with suppress(FileNotFoundError):  # whoever had it is done with it
        path.unlink()
        return 1
    return 0


def _some(paths: list[Path]) -> str:
    named = ", ".join(map(str, paths[:SHOWN]))
    return named if len(paths) <= SHOWN else f"{named} and {len(paths) - SHOWN} more"


def _bytes(count: int) -> str:
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.1f} MB"
