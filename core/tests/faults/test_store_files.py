"""The files of a store: private, and never harmed, emptied or taken for ours when something about them is wrong."""

from __future__ import annotations

import gc
import os
import random
import shutil
import stat
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import pytest

from core.tests.support.stores import CWD, NOTHING, Place, history, hits, message, new, prompt, talked, turn, walk
from holdfast.errors import HoldfastError, SessionNotFound, StoreDamaged, StoreError, StoreTooNew, UsageError
from holdfast.store import default_address, file_of, open_store
from holdfast.store.sqlite import database

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.requirement("P11")

# apsw describes its values with a type that strict checking cannot see through.
# pyright: reportUnknownMemberType=false


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(str(tmp_path / "data" / "holdfast" / "sessions.db"))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def tree(base: Path) -> dict[str, bytes]:
    """Read all files under a directory."""
    return {str(path.relative_to(base)): path.read_bytes() for path in sorted(base.rglob("*")) if path.is_file()}


# Private


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
async def test_only_the_user_can_read_what_is_stored(place: Place, umask: int) -> None:
    before = os.umask(umask)
    try:
        async with place.open() as store:
            claim = await talked(store, CWD, "secret")
            log = await store.begin(claim, prompt("x"), NOTHING)
            log.append(b"{}\n")
            directory = Path(place.path).parent
            paths = list(directory.rglob("*"))
            kinds = {
                path.name.split("sessions.db")[-1] if path.parent == directory else path.parent.name for path in paths
            }
            assert kinds >= {"", "-wal", "-shm", ".turns", ".owners", "sessions.db.turns", "sessions.db.owners"}
            assert mode(directory) == 0o700
            for path in paths:
                assert mode(path) == (0o700 if path.is_dir() else 0o600), path
    finally:
        os.umask(before)


async def test_a_store_that_others_could_read_is_made_private_when_it_is_opened(place: Place) -> None:
    async with place.open() as store:
        claim = await talked(store, CWD, "secret")
        await store.begin(claim, prompt("x"), NOTHING)
    directory = Path(place.path).parent
    others = [Path(place.path), *directory.glob("*/*.log"), *directory.glob("*.turns"), *directory.glob("*.owners")]
    assert len(others) == 4
    for path in others:
        path.chmod(0o777 if path.is_dir() else 0o666)
    async with place.open() as store:
        assert [mode(path) for path in others] == [0o600, 0o600, 0o700, 0o700]
        assert await walk(store) == [claim.session]


@pytest.mark.requirement("B14", "P10")
async def test_what_was_deleted_is_not_in_the_files_of_a_store_that_is_closed(place: Place) -> None:
    async with place.open() as store:
        claim = await new(store)
        await turn(store, claim, *(message(f"the secret of number {n} {'x' * 3_000}") for n in range(50)))
        await store.begin(claim, prompt("the secret prompt"), NOTHING)
        await store.seal(claim, [message("the secret end")], NOTHING, messages=1, private=[b"the secret of the agent"])
        await talked(store, CWD, "the other one")
    directory = Path(place.path).parent
    assert sum(data.count(b"the secret") for data in tree(directory).values()) > 50
    async with place.open() as store:
        await store.delete(claim.session)
    assert [name for name, data in tree(directory).items() if b"the secret" in data] == []
    assert any(b"the other one" in data for data in tree(directory).values())


async def test_a_directory_that_was_there_before_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir(mode=0o755)
    (tmp_path / "shared").chmod(0o755)
    async with Place(str(tmp_path / "shared" / "s.db")).open():
        assert mode(tmp_path / "shared") == 0o755
        assert mode(tmp_path / "shared" / "s.db") == 0o600


# Places


def test_the_place_is_the_one_chosen_or_the_one_of_the_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_STORE", "/chosen.db")
    assert default_address() == "/chosen.db"
    monkeypatch.setenv("HOLDFAST_STORE", "")
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    monkeypatch.setattr("sys.platform", "linux")
    assert default_address() == "/data/holdfast/sessions.db"
    monkeypatch.delenv("XDG_DATA_HOME")
    assert default_address() == "/home/me/.local/share/holdfast/sessions.db"
    monkeypatch.setattr("sys.platform", "darwin")
    assert default_address() == "/home/me/Library/Application Support/holdfast/sessions.db"


async def test_the_chosen_store_is_the_one_that_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_STORE", str(tmp_path / "deep" / "er" / "mine.db"))
    store = await open_store()
    await store.close()
    assert (tmp_path / "deep" / "er" / "mine.db").stat().st_size > 0


async def test_a_store_may_be_named_by_an_address(tmp_path: Path) -> None:
    assert file_of(":memory:") is file_of("sqlite:///:memory:") is None
    assert file_of("sessions.db") == Path("sessions.db")
    assert file_of("sqlite:///var/lib/a%20b.db") == Path("/var/lib/a b.db")
    assert file_of("sqlite:///C:/Users/me/s.db") == Path("C:/Users/me/s.db")
    async with Place(str(tmp_path / "s.db")).open() as store:
        claim = await talked(store, CWD, "x")
    again = await open_store(f"sqlite://{tmp_path}/s.db")
    assert await walk(again) == [claim.session]
    await again.close()


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("postgresql://localhost/holdfast?lease=soon", "number of seconds"),
        ("postgres://localhost/holdfast?prepare=maybe", "yes or no"),
        ("mysql://localhost/x", "mysql:// is no address"),
        ("https://example.org/x", "https:// is no address"),
        ("sqlite://", "names no file"),
        ("sqlite:///", "names no file"),
        ("sqlite://relative.db", "names no file"),
    ],
)
async def test_an_address_that_names_no_store_is_refused_in_plain_words(address: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        await open_store(address)


async def test_a_place_that_is_a_directory_or_under_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path, tmp_path / "file" / "sessions.db"):
        with pytest.raises(StoreError, match="cannot be opened"):
            await open_store(str(path))


# Not ours, too new, too old


def somebody_elses(path: Path) -> None:
    db = apsw.Connection(str(path))
    db.execute("CREATE TABLE bookmark (url); INSERT INTO bookmark VALUES ('x')")
    db.close()


def of_another_application(path: Path) -> None:
    db = apsw.Connection(str(path))
    db.execute("PRAGMA application_id = 1234; CREATE TABLE session (n)")
    db.close()


def no_database(path: Path) -> None:
    path.write_bytes(b"Dear diary,\n" * 1_000)


def a_short_text(path: Path) -> None:
    path.write_bytes(b"xy")


@pytest.mark.parametrize("make", [somebody_elses, of_another_application, no_database, a_short_text])
async def test_a_file_that_is_not_ours_is_refused_and_left_alone(tmp_path: Path, make: object) -> None:
    assert callable(make)
    path = tmp_path / "theirs.db"
    make(path)
    before, modified = path.read_bytes(), path.stat().st_mtime_ns
    with pytest.raises(StoreError, match=r"theirs\.db"):
        await open_store(str(path))
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (before, modified)


async def test_a_store_of_a_newer_holdfast_is_refused_and_left_alone(place: Place) -> None:
    async with place.open() as store:
        await talked(store, CWD, "precious")
    newest = len(database.migrations())
    db = apsw.Connection(place.path)
    db.execute(f"PRAGMA user_version = {newest + 1}")
    db.close()
    before = tree(Path(place.path).parent)
    with pytest.raises(StoreTooNew, match=f"format {newest + 1}, this one knows {newest}"):
        await open_store(place.path)
    assert tree(Path(place.path).parent) == before


async def test_a_sqlite_that_could_harm_the_store_is_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apsw, "SQLITE_VERSION_NUMBER", 3_051_002)
    with pytest.raises(StoreError, match="too old"):
        await open_store(place.path)


async def test_a_store_that_is_refused_leaves_no_thread_and_no_descriptor(tmp_path: Path) -> None:
    path = tmp_path / "theirs.db"
    somebody_elses(path)
    with pytest.raises(StoreError):
        await open_store(str(path))
    before, others = descriptors(), set(threading.enumerate())
    for _ in range(3):
        with pytest.raises(StoreError):
            await open_store(str(path))
    for thread in set(threading.enumerate()) - others:
        thread.join(40)
    assert descriptors() == before
    assert set(threading.enumerate()) <= others
    assert Place(str(path)).beside("owners") == []


def descriptors() -> int:
    gc.collect()  # what other tests have left is not counted
    return len(list(Path("/dev/fd").iterdir()))


# Damaged


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A store with a little of everything in it, closed."""
    import asyncio

    path = tmp_path_factory.mktemp("good") / "sessions.db"

    async def fill() -> None:
        async with Place(str(path)).open() as store:
            for n in range(20):
                claim = await talked(store, CWD, *[f"said {n} {m} {'x' * 500}" for m in range(20)], title=f"title {n}")
                await store.release(claim)

    asyncio.run(fill())
    return path.parent  # pyright: ignore[reportReturnType]


async def use_all(store_path: Path) -> int:
    """Use everything of a store; what it refuses must be refused in plain words. Give how many lines there were."""
    store = await open_store(str(store_path))
    lines = 0
    try:
        for session in await walk(store):
            lines += len(await history(store, session))
            claim = (await store.claim(session)).claim
            await turn(store, claim, message("more"))
            await store.release(claim)
        await hits(store, "said")
        await hits(store, "title")
        await new(store)
        await store.vacuum()
    finally:
        await store.close()
    return lines


@pytest.mark.parametrize("size", [2, 15, 16, 99, 100, 511, 4_095, 4_096, 8_192, 100_000])
async def test_a_file_that_was_cut_off_is_reported_and_not_made_anew(good: Path, tmp_path: Path, size: int) -> None:
    shutil.copytree(good, tmp_path / "cut")
    path = tmp_path / "cut" / "sessions.db"
    os.truncate(path, size)
    before = path.read_bytes()
    with pytest.raises(StoreDamaged, match="damaged"):
        await use_all(path)
    assert path.read_bytes()[: len(before)][:16] == before[:16]


async def test_a_file_that_lost_all_its_data_is_reported_and_not_made_anew(good: Path, tmp_path: Path) -> None:
    shutil.copytree(good, tmp_path / "empty")
    path = tmp_path / "empty" / "sessions.db"
    for left in (1, 0):  # to SQLite a file of one byte is empty, too
        os.truncate(path, left)
        with pytest.raises(StoreDamaged, match="lost"):
            await open_store(str(path))
        assert path.stat().st_size == left
    path.unlink()
    async with Place(str(path)).open() as store:
        assert await walk(store) == [], "whoever removes it begins anew"


@pytest.mark.parametrize("seed", range(30))
async def test_whatever_is_overwritten_it_is_read_right_or_reported(good: Path, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    shutil.copytree(good, tmp_path / "garbled")
    path = tmp_path / "garbled" / "sessions.db"
    data = bytearray(path.read_bytes())
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(100, len(data))
        size = chance.choice([1, 8, 100, 4_096])
        data[at : at + size] = chance.choice([b"\0" * size, chance.randbytes(size), b"\xff" * size])
    path.write_bytes(data)
    try:
        await use_all(path)
    except (StoreError, SessionNotFound):
        pass
    except HoldfastError as e:
        pytest.fail(f"not what a damaged store should say: {e!r}")
    assert path.stat().st_size > 0


async def test_a_state_that_is_no_state_is_damage(good: Path, tmp_path: Path) -> None:
    shutil.copytree(good, tmp_path / "odd")
    path = tmp_path / "odd" / "sessions.db"
    db = apsw.Connection(str(path))
    db.execute("UPDATE session SET state = x'7b22' WHERE n = 3")
    db.close()
    async with Place(str(path)).open() as store:
        sessions = await walk(store)
        assert len(sessions) == 20
        with pytest.raises(StoreDamaged):
            await store.get(sessions[-3])
        await store.get(sessions[0])


async def test_a_store_that_is_locked_for_too_long_says_so(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.02)
    async with place.open() as store:
        claim = await talked(store, CWD, "a")
        db = apsw.Connection(place.path)
        db.execute("BEGIN IMMEDIATE")
        await store.begin(claim, prompt("b"), NOTHING)  # for that its log is enough
        for refused in (store.seal(claim, [message("b")], NOTHING, messages=1), store.save(claim, NOTHING)):
            with pytest.raises(StoreError, match="locked"):
                await refused
        assert await walk(store) == [claim.session]
        db.execute("ROLLBACK")
        db.close()
        await store.seal(claim, [message("b")], NOTHING, messages=1)
        assert len(await history(store, claim.session)) == 2
