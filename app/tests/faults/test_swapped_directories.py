"""What a server makes, gives away or looks into for a principal is never what a link leads to (H10, P12)."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from app.tests.support.pages import opened_pages
from app.tests.support.tenants import no_bubblewrap, no_other_users, reachable_python
from holdfast.server.access import Access
from holdfast.workspace.allowed import AllowedDirectories
from holdfast.workspace.trusted_path import Owner, Untrusted, make_directory, real_directory
from holdfast_app.sandbox.identity_thread import threads_of
from holdfast_app.sandbox.launcher import Identity

if TYPE_CHECKING:
    from collections.abc import Generator

pytestmark = [pytest.mark.requirement("H10"), pytest.mark.requirement("P12"), pytest.mark.timeout(180)]

PROGRAM = Path(__file__).parents[1] / "programs" / "swapped_directories.py"
NOBODY = 65534
AS_ROOT = os.geteuid() == 0


@contextmanager
def place_of(user: int) -> Generator[Path]:
    """Yield a place with `secret`, of a server that runs as a user, and `ada`, which a principal's processes change."""
    with tempfile.TemporaryDirectory(prefix="holdfast-swapped-", dir="/tmp") as made:
        place = Path(made)
        place.chmod(0o755)
        for name in ("secret", "ada"):
            (place / name).mkdir(mode=0o700)
            os.chown(place / name, user, -1)
        (place / "secret" / "a-secret-name").touch()
        os.chown(place, user, -1)
        yield place


def steps(place: Path, *, user: int) -> list[dict[str, int]]:
    """Run the program as a user; return what it says of each step."""
    words = [sys.executable, str(PROGRAM), str(user), reachable_python() or sys.executable, str(place)]
    started = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert started.returncode == 0, started.stderr
    return [json.loads(line) for line in started.stdout.splitlines()]


@pytest.mark.skipif(no_other_users() is not None, reason=str(no_other_users()))
def test_a_link_swapped_in_at_any_step_gives_away_nothing_of_roots() -> None:
    with place_of(0) as place:
        os.chown(place / "ada", NOBODY, -1)
        *swapped, made = steps(place, user=0)
        assert len(swapped) > 3
        assert {step["owner"] for step in swapped} == {0}
        assert not any(step["opened"] for step in swapped), swapped
        assert made == {"made": True, "by": NOBODY}


@pytest.mark.skipif(no_bubblewrap() is not None, reason=str(no_bubblewrap()))
def test_a_link_swapped_in_at_any_step_leads_an_ordinary_server_nowhere() -> None:
    """An agent in the sandbox is the server's own user: whose link it is says nothing there."""
    user = NOBODY if AS_ROOT else os.geteuid()
    with place_of(user) as place:
        *swapped, made = steps(place, user=user)
        assert len(swapped) > 3
        assert not any(step["opened"] or step["shown"] for step in swapped), swapped
        assert made == {"made": True, "by": user}


class Swapper:
    """Swaps a directory for a link and back, as fast as it can."""

    def __init__(self, directory: Path, link: Path) -> None:
        self._names = os.fsencode(directory), os.fsencode(link)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        while not self._over.is_set():
            libc.renameat2(-100, self._names[0], -100, self._names[1], 2)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux swaps two names in one step")
async def test_the_pages_search_for_files_never_names_what_a_swapped_link_leads_to(tmp_path: Path) -> None:
    work, secret = tmp_path / "work", tmp_path / "secret"
    for directory in (work / "project", secret):
        directory.mkdir(parents=True)
    (work / "project" / "a-file").touch()
    (secret / "a-secret-name").touch()
    (work / "link").symlink_to(secret)
    access = Access(AllowedDirectories([str(work)]))
    async with opened_pages(access=access) as pages:
        session = await pages.add_session([], cwd=str(work / "project"))
        found: list[str] = []
        with Swapper(work / "project", work / "link"):
            found += [(await pages.get(f"/sessions/{session}/files?q=a-")).text for _ in range(2_000)]
        assert not [answer for answer in found if "secret" in answer]
        assert [answer for answer in found if "a-file" in answer], "the directory itself was never looked into"


@pytest.mark.skipif(no_other_users() is not None, reason=str(no_other_users()))
async def test_the_pages_search_for_files_sees_what_the_agents_user_sees() -> None:
    """Also where that user cannot look for the directory itself: the server has found it."""
    with place_of(0) as place:
        closed = place / "secret" / "work"
        (closed / "of-root").mkdir(parents=True)
        (closed / "of-root").chmod(0o700)
        (closed / "of-root" / "a-secret-name").touch()
        (closed / "a-file").touch()
        threads = threads_of(Identity("nobody", NOBODY, NOBODY, (NOBODY,), "/"))
        access = Access(AllowedDirectories([str(closed)]), threads=threads)
        async with opened_pages(access=access) as pages:
            session = await pages.add_session([], cwd=str(closed))
            found = (await pages.get(f"/sessions/{session}/files?q=a-")).text
        threads.shutdown()
        assert "a-file" in found and "secret-name" not in found


def test_a_link_is_followed_only_if_nobody_else_can_have_made_it(tmp_path: Path) -> None:
    real = tmp_path / "real"
    (real / "inner").mkdir(parents=True)
    (tmp_path / "ours").symlink_to("real")
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "link").symlink_to(real)
    assert real_directory(f"{tmp_path}/ours/inner/../inner/new/one") == f"{real}/inner/new/one"
    assert real_directory(f"{tmp_path}/open/link") == str(real)
    with pytest.raises(Untrusted, match="somebody else"):
        real_directory(f"{tmp_path}/open/link", closed=[str(tmp_path / "open")])
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(Untrusted, match="somebody else"):
        real_directory(f"{tmp_path}/open/link/inner")
    (tmp_path / "open").chmod(0o1777)
    assert real_directory(f"{tmp_path}/open/link/inner") == f"{real}/inner"
    (tmp_path / "round").symlink_to("round")
    with pytest.raises(OSError, match="round"):
        real_directory(f"{tmp_path}/round/inner")


@pytest.mark.skipif(not AS_ROOT, reason="only root gives directories away")
def test_directories_are_given_away_only_where_nobody_else_can_swap_them(tmp_path: Path) -> None:
    acted: list[str] = []

    def run(work: object) -> None:
        acted.append("as the owner")
        assert callable(work)
        work()

    owner = Owner(NOBODY, NOBODY, run)
    made = Path(make_directory(f"{tmp_path}/a/b", owner))
    assert made.stat().st_uid == NOBODY and made.stat().st_mode & 0o777 == 0o700
    assert made.parent.stat().st_uid == 0 and acted == []
    make_directory(f"{made}/c", owner)
    assert acted == ["as the owner"]  # it lies in what is theirs: so they make it
    left = tmp_path / "left"  # by a server that died before it had given it away
    left.mkdir(mode=0o700)
    make_directory(str(left), owner)
    assert left.stat().st_uid == NOBODY
    used = tmp_path / "used"
    (used / "already").mkdir(parents=True)
    make_directory(str(used), owner)
    assert used.stat().st_uid == 0
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o1777)
    (tmp_path / "open" / "taken").mkdir()
    os.chown(tmp_path / "open" / "taken", 12345, -1)
    with pytest.raises(Untrusted, match="somebody else"):
        make_directory(f"{tmp_path}/open/taken", owner)
