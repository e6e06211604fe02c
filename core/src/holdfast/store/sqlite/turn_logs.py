"""The events of unsealed turns, in append-only files beside the database, one for each session.

An append costs a hundredth of what a commit costs, and survives the death of the process just as well. When a turn is
sealed its entries are in the database and its log is emptied, to be used again; what is in a log otherwise tells what a
broken turn had said.

Where the events of sealed turns are to stay readable for a while, a log is not emptied but written on; what has become
too large is put aside as a second file, in place of the one before, and what is too old is removed.

While something in it is unsealed, a log is locked by the process that writes it: nobody can take the turn as long as
that process lives (P4). Whoever opens a log for writing does so inside a transaction, so only one does at a time. A
writer whose log is no longer in its place is refused at its next append.

A turn may begin in its log alone, without the database (docs/decisions/007). Whoever takes a session over takes its log
away while it holds the lock: the old writer finds no log in its place, and has to ask the database, which refuses it.
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import msgspec

from holdfast.errors import StoreError
from holdfast.format.log_records import LoggedTurn, decode_log, decode_old_log, decode_turns
from holdfast.model.kinds import DAMAGED
from holdfast.store.port import KeptLog
from holdfast.store.sqlite.files import is_at, lock, open_files_at_most, plain_error
from holdfast.store.sqlite.turn_file import MORE_BYTES, UNWRITABLE, MemoryLog, TurnFile, open_log, reopen_log

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from holdfast.format.log_records import Beginning
    from holdfast.store.port import Claim, EventWindow
    from holdfast.store.sqlite.threads import Transaction

IDLE_LOGS = 64, 1_024
"""So many logs stay open for the next turn of their session at least, and so many at most; in between, an eighth of the
files that the process may open. A turn whose log has to be opened anew costs twice as much."""

ATTEMPTS = 10
"""How often a log is opened anew that somebody replaces meanwhile."""

PUT_AWAY_SECONDS = 0.1
"""So long a writer may take to unlock its log when what was in it is sealed."""

_DAMAGED_LINE = msgspec.json.encode({"sessionUpdate": DAMAGED})


class _ClosedLog(NamedTuple):
    """Where a log is that was closed while its session is still ours, and how much is in it."""

    path: str
    size: int


class TurnLogs:
    """The logs of one store. Those that this process writes are open, each under the claim of its session.

    Methods run in the thread that writes, unless they say otherwise; those that open, take or remove logs inside a
    transaction.
    """

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._running: set[Claim] = set()
        self._unsealed: dict[Claim, TurnFile] = {}
        self._idle: OrderedDict[Claim, TurnFile] = OrderedDict()
        self._closed: dict[Claim, _ClosedLog] = {}
        fewest, most = IDLE_LOGS
        self._idle_at_most = max(fewest, min(open_files_at_most() // 8, most))
        self._in_memory: dict[int, list[MemoryLog]] = {}
        self.window: EventWindow | None = None
        """For how long the events of sealed turns stay readable; None where they do not."""

    def is_running(self, claim: Claim) -> bool:
        """Return whether a turn runs here under a claim. One that was claimed broken does not run."""
        return claim in self._running

    def begin_alone(
        self, claim: Claim, beginning: Beginning, opening: bytes, *, durable: bool = True
    ) -> TurnFile | None:
        """Begin a turn in the log of its session, without the database; return None where that cannot be.

        It can where a log is at hand that was used under this claim, that nobody has taken away since, and that is not
        too large to be written on. Without `durable` nothing is waited for, so that the event loop may call this too:
        whoever takes a log out of `_idle` has it for himself, and a claim is running before its log is unsealed.
        """
        log = self._idle.get(claim)
        if log is None or (self.window is not None and not _has_room(log, beginning.accepted, self.window)):
            return None
        if self._idle.pop(claim, None) is None:
            return None
        self._running.add(claim)
        room = MORE_BYTES if self.window is None else min(MORE_BYTES, self.window.size // 16)
        if not log.begin(beginning, opening, durable=durable, room=room):
            self._running.discard(claim)
            log.give_up()
            return None
        self._unsealed[claim] = log
        return log

    def unsealed(self, claim: Claim) -> TurnFile | None:
        """Return the log of the unsealed turn under a claim, if there is one."""
        return self._unsealed.get(claim)

    def number(self, claim: Claim, last: int) -> tuple[int, int]:
        """Return the number of the unsealed turn under a claim, and when it began if its log alone knows; else 0.

        `last` is the number of the last turn that the database knows of.
        """
        log = self._unsealed.get(claim)
        if log is None or log.beginning is None or log.turn is None:
            return last, 0
        return log.turn, log.beginning.at

    def unnoted(self) -> list[Claim]:
        """Return the claims whose turns are in their logs alone. The event loop calls this."""
        return [claim for claim, log in list(self._unsealed.items()) if log.beginning is not None]

    def begin(
        self, transaction: Transaction, claim: Claim, n: int, turn: int, accepted: bytes, opening: bytes
    ) -> TurnFile | MemoryLog:
        """Open the log of a session for a turn that was `accepted`; the `opening` lines are its first."""
        if claim in self._unsealed:
            raise StoreError("The last turn of this session is not sealed yet")
        self._running.add(claim)
        transaction.after_rollback(lambda: self._abandon(claim))
        if self._directory is None:
            return self._begin_in_memory(n, turn, opening)
        closed = self._closed.pop(claim, None)
        log = self._idle.pop(claim, None)
        if log is not None and not log.lock():
            log.close()
            log = None
        if self.window is not None:
            if log is None and closed is not None:  # the claim holds, so that it is not the log of another process
                log = reopen_log(self._path(n), closed.size)
            log = self._with_room(n, log, accepted, self.window)
        log = log or self._opened(n, replaces=True)
        log.use(turn)
        self._unsealed[claim] = log
        if self.window is None:
            transaction.after_commit(log.empty)
        elif opening:
            log.append(opening)
        return log

    def seal(self, transaction: Transaction, claim: Claim, n: int, turn: int, last: bytes | None) -> None:
        """Empty the log of a turn once it is sealed; where `last` is given and there is a window, let it stay."""
        if claim not in self._running:
            transaction.after_commit(lambda: self._remove_old(n, turn))
        stays = last is not None and self.window is not None and self._end_with(claim, n, last)
        transaction.after_commit(lambda: self._end(claim, emptied=not stays))
        if not stays and self.window is not None:
            transaction.after_commit(lambda: self._remove_kept(n))

    def running(self, claim: Claim) -> TurnFile | None:
        """Return the log of the turn that runs here under a claim, if it has one. The event loop calls this too."""
        return self._unsealed.get(claim) if claim in self._running else None

    def end_with(self, log: TurnFile, last: bytes | None) -> bool:
        """Write the last line of a log; return whether it is ready to be `put_away`. The event loop calls this too."""
        return self.window is None or (last is not None and _appended(log, last))

    def put_away(self, claim: Claim) -> None:
        """Put a log away whose turn is sealed and which ends with its last line."""
        self._end(claim, emptied=self.window is None)

    def take(self, transaction: Transaction, last: Claim, n: int, turn: int) -> TurnFile | None:
        """Take the log of a broken turn, which `last` was the claim of; None where there are no logs.

        Raise `BlockingIOError` where its writer is alive.
        """
        if self._directory is None:
            return None
        log = self._broken(last, n)
        if log is None:
            log = self._opened(n, replaces=False)
            transaction.after_rollback(log.close)
        log.use(turn)
        return log

    def take_begun(self, transaction: Transaction, last: Claim, n: int, turn: int) -> TurnFile | None:
        """Take the log of a session if a turn behind number `turn` has begun in it; otherwise take it away.

        Raise `BlockingIOError` where somebody is writing it.
        """
        if self._directory is None:
            return None
        log = self._broken(last, n)
        if log is None:
            if not self._path(n).exists():
                return None
            log = self._opened_patiently(n)
            transaction.after_rollback(log.close)
        log.beginning = decode_log(log.read(), turn + 1).beginning
        if log.beginning is None:
            self._fence(log, n)
            return None
        log.use(turn + 1)
        return log

    def _broken(self, last: Claim, n: int) -> TurnFile | None:
        """Return the log of a turn that was claimed broken here before; raise `BlockingIOError` where it runs."""
        log = self._unsealed.get(last)
        if log is not None and last in self._running:  # it has begun just now
            raise BlockingIOError(f"{self._path(n)} is in use")
        return log

    def _fence(self, log: TurnFile, n: int) -> None:
        """Take a log that has nothing unsealed out of its place, so that nobody begins a turn in it (P4)."""
        if self.window is None:
            self.remove(n)
        elif said := log.read().rstrip(b"\0"):
            with suppress(OSError):
                self._put_aside(n, said, self.window)  # what was said stays readable
        log.remove()

    def _put_aside(self, n: int, said: bytes, window: EventWindow) -> None:
        """Put what a log says behind what was put aside before, if the window has room for both."""
        path, kept = self._path(n), self._kept_path(n)
        before = kept.read_bytes().rstrip(b"\0") if kept.exists() else b""
        if not before or len(before) + len(said) > window.size:
            path.replace(kept)
            return
        both = kept.with_suffix(".both")
        both.write_bytes(before + said)
        both.chmod(0o600)
        both.replace(kept)
        path.unlink()

    def keep(self, transaction: Transaction, last: Claim, claim: Claim, log: TurnFile | None) -> None:
        """Hold a log that was taken, under its new claim."""

        def kept() -> None:
            self._unsealed.pop(last, None)
            if log is not None:
                self._unsealed[claim] = log

        transaction.after_commit(kept)

    def lines(self, log: TurnFile | None, n: int, turn: int) -> list[bytes]:
        """Read what a turn has said so far, from its log or from one that was taken."""
        if self._directory is None:
            return []
        data = _read(self._path(n)) if log is None else log.read()
        logged = decode_log(data, turn)
        if log is not None:
            log.write_on(data)
        return decode_old_log(_read(self._old_path(n, turn))) + logged.lines + [_DAMAGED_LINE] * logged.is_damaged

    def read(self, n: int, turn: int) -> LoggedTurn:
        """Read what the log of a session says about a turn. Called from any thread."""
        return LoggedTurn([], is_damaged=False) if self._directory is None else decode_log(_read(self._path(n)), turn)

    def is_locked(self, n: int) -> bool:
        """Return whether a living process has something unsealed in the log of a session."""
        if self._directory is None:
            return False
        try:
            fd = os.open(self._path(n), os.O_RDWR)
        except FileNotFoundError:
            return False
        except OSError:  # whoever cannot be asked may be alive
            return True
        try:
            return not lock(fd)
        finally:
            os.close(fd)

    def release(self, claim: Claim) -> None:
        """Close the log under a claim; what is in it stays."""
        self._running.discard(claim)
        self._closed.pop(claim, None)
        for logs in (self._unsealed, self._idle):
            if (log := logs.pop(claim, None)) is not None:
                log.close()

    def remove_sealed(self, n: int) -> None:
        """Remove the log of a session that has nothing unsealed, unless it is to stay readable for a while."""
        if self.window is None:
            self.remove(n)

    def remove(self, n: int) -> None:
        """Remove the log of a session that has nothing unsealed. One that cannot be removed harms nobody."""
        self._in_memory.pop(n, None)
        if self._directory is not None:
            for path in (self._path(n), self._kept_path(n)):
                with suppress(OSError):
                    path.unlink(missing_ok=True)

    def forget(self, claim: Claim, n: int, turn: int) -> None:
        """Close and remove the log of a session that was deleted."""
        self.release(claim)
        self.remove(n)
        self._remove_old(n, turn)

    def idle(self) -> list[Claim]:
        """Return the claims whose logs have nothing unsealed, open or closed. The event loop calls this too."""
        return [*self._idle, *self._closed]

    @property
    def has_idle(self) -> bool:
        """True while a log is open that has nothing unsealed. The event loop asks."""
        return bool(self._idle)

    def close_unused(self) -> None:
        """Close the logs in which no turn has begun since this was called before."""
        for claim, log in list(self._idle.items()):
            if not log.is_unused:
                log.is_unused = True
            elif (taken := self._idle.pop(claim, None)) is not None:  # else a turn has begun in it just now
                self._close_idle(claim, taken)

    def close(self) -> None:
        """Close all logs. The event loop calls this when the writing thread has ended."""
        for claim in {*self._unsealed, *self._idle, *self._running}:
            self.release(claim)

    # Logs that stay readable after their seal

    def read_kept(self, n: int) -> list[KeptLog]:
        """Read all logs of a session that are there, in order. Called from any thread."""
        if self._directory is None:
            return [KeptLog(log.turn, log.lines()) for log in self._in_memory.get(n, ())]
        turns: dict[int, list[bytes]] = {}
        for data in self._kept_files(n):
            for turn, lines in decode_turns(data).items():
                turns.setdefault(turn, []).extend(lines)
        return [KeptLog(turn, lines) for turn, lines in turns.items()]

    def _kept_files(self, n: int) -> list[bytes]:
        """Return what was put aside, then what is written now. One that is put aside meanwhile is read once."""
        with ExitStack() as opened:
            files: list[BinaryIO] = []
            for path in (self._path(n), self._kept_path(n)):
                with suppress(FileNotFoundError):
                    files.insert(0, opened.enter_context(path.open("rb")))
            if len(files) > 1 and os.path.sameopenfile(files[0].fileno(), files[1].fileno()):
                files.pop()
            read = [file.read() for file in files]
            if len(read) > 1 and read[0].endswith(read[1].rstrip(b"\0")):
                read.pop()  # it was put behind the other meanwhile
            return read

    def remove_past_window(self, is_unused: Callable[[int], bool]) -> None:
        """Remove the logs whose last event is older than the window; `is_unused` says whose nobody writes."""
        if self.window is None:
            return
        oldest = time.time() - self.window.seconds
        for n, logs in list(self._in_memory.items()):
            self._in_memory[n] = [log for log in logs if log.touched >= oldest or log is logs[-1]]
        if self._directory is None or not self._directory.is_dir():
            return
        for path in list(self._directory.iterdir()):
            number, _, end = path.name.partition(".")
            with suppress(OSError):
                if end not in ("log", "kept") or not number.isdecimal() or path.stat().st_mtime >= oldest:
                    continue
                if end == "kept":
                    path.unlink()
                else:
                    self._remove_unused(int(number), is_unused)

    def _remove_unused(self, n: int, is_unused: Callable[[int], bool]) -> None:
        path = str(self._path(n))
        mine = next((claim for claim, log in [*self._closed.items(), *self._idle.items()] if log.path == path), None)
        if mine is None:
            if is_unused(n):
                self.remove(n)
        elif self._closed.pop(mine, None) is not None:
            self.remove(n)
        elif (log := self._idle.pop(mine, None)) is not None:  # else a turn has begun in it just now
            log.close()
            self.remove(n)

    def _begin_in_memory(self, n: int, turn: int, opening: bytes) -> MemoryLog:
        log = MemoryLog(turn, is_kept=self.window is not None)
        log.append(opening)
        if self.window is not None:
            logs = self._in_memory.setdefault(n, [])
            logs.append(log)
            while sum(kept.size for kept in logs) > self.window.size:
                logs.pop(0)
        return log

    def _end_with(self, claim: Claim, n: int, last: bytes) -> bool:
        """Write the last line of a log that stays readable; return whether that worked."""
        log = self._in_memory[n][-1] if self._directory is None and n in self._in_memory else self._unsealed.get(claim)
        return log is not None and _appended(log, last)

    def _with_room(self, n: int, log: TurnFile | None, accepted: bytes, window: EventWindow) -> TurnFile | None:
        """Return the log if more may be written behind what is in it; put aside what is too large.

        So does what another process has written: nobody knows whether that can be read to its end.
        """
        path, kept = self._path(n), self._kept_path(n)
        with suppress(OSError):
            if path.stat().st_mtime < time.time() - window.seconds:
                kept.unlink(missing_ok=True)
            if log is not None and _has_room(log, accepted, window):
                return log
            path.replace(kept)
        if log is not None:
            log.close()
        return None

    def _remove_kept(self, n: int) -> None:
        self._in_memory.pop(n, None)
        if self._directory is not None:
            with suppress(OSError):
                self._kept_path(n).unlink(missing_ok=True)

    def _abandon(self, claim: Claim) -> None:
        """Let go of the log of a turn that was not begun after all; its number will be used again."""
        self._running.discard(claim)
        if (log := self._unsealed.pop(claim, None)) is not None:
            if self.window is None:
                log.remove()
            else:
                log.close()

    def _end(self, claim: Claim, *, emptied: bool = True) -> None:
        """Put the log away of a turn that is sealed."""
        self._running.discard(claim)
        if (log := self._unsealed.pop(claim, None)) is not None:
            log.put_away(emptied=emptied)
            self._idle[claim] = log
            if len(self._idle) > self._idle_at_most:
                self._close_idle(*self._idle.popitem(last=False))

    def _close_idle(self, claim: Claim, log: TurnFile) -> None:
        """Close a log that has nothing unsealed; the next turn of its session opens it again."""
        self._closed[claim] = _ClosedLog(log.path, log.size)
        log.close()

    def _opened(self, n: int, *, replaces: bool) -> TurnFile:
        """Open and lock the log of a session; make it where there is none.

        One that is still locked, though nothing in it is unsealed any more, is replaced: its last writer is about to
        let go of it.
        """
        path = self._path(n)
        for _ in range(ATTEMPTS):
            fd = open_log(path)
            log = TurnFile(path, fd)
            if log.lock():
                return log
            in_place = is_at(fd, path)
            log.close()
            if in_place and not replaces:
                raise BlockingIOError(f"{path} is locked by another process")
            if in_place:
                path.unlink(missing_ok=True)
        raise StoreError(f"{UNWRITABLE}: others replace it again and again")

    def _opened_patiently(self, n: int) -> TurnFile:
        """Open and lock the log of a session; wait a moment for a writer that is about to unlock it."""
        until = time.monotonic() + PUT_AWAY_SECONDS
        while True:
            try:
                return self._opened(n, replaces=False)
            except BlockingIOError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.001)

    def _path(self, n: int) -> Path:
        assert self._directory is not None
        return self._directory / f"{n}.log"

    def _kept_path(self, n: int) -> Path:
        """Return where the part of a log is that was put aside."""
        assert self._directory is not None
        return self._directory / f"{n}.kept"

    def _old_path(self, n: int, turn: int) -> Path:
        """Return where format 1 had the log of a turn."""
        assert self._directory is not None
        return self._directory / f"{n}-{turn}.jsonl"

    def _remove_old(self, n: int, turn: int) -> None:
        if self._directory is not None:
            with suppress(OSError):
                self._old_path(n, turn).unlink(missing_ok=True)


def _appended(log: TurnFile | MemoryLog, last: bytes) -> bool:
    try:
        if last or log.has_unwritten:
            log.append(last)
    except StoreError:
        return False
    return True


def _has_room(log: TurnFile, accepted: bytes, window: EventWindow) -> bool:
    """Return whether a turn may be written behind what is in a log, so that this and what was put aside fit the window.

    What was accepted may be in the log twice: as the turn begins, and among what is shown.
    """
    return log.size == 0 or log.size + 2 * len(accepted) <= window.size // 2


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as e:
        raise plain_error(e, "The log of a turn cannot be read") from e
