"""An agent in the sandbox finds no way out, whether the server runs as root or as an ordinary user (H11, P12)."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from app.tests.support.tenants import no_bubblewrap, reachable_python
from holdfast_app.sandbox.sandbox import hole_in

if TYPE_CHECKING:
    from collections.abc import Generator

pytestmark = [pytest.mark.requirement("H11"), pytest.mark.requirement("P12"), pytest.mark.timeout(180)]

PROGRAMS = Path(__file__).parents[1] / "programs"
SERVERS = ("root", "nobody")


@contextmanager
def place_for(server: str) -> Generator[Path]:
    """Yield a directory that the server's user can work in, and that everybody can get to."""
    with tempfile.TemporaryDirectory(prefix="holdfast-sandbox-", dir="/tmp") as made:
        place = Path(made)
        place.chmod(0o755)
        if server == "nobody" and os.geteuid() == 0:
            os.chown(place, 65534, 65534)
        yield place


def needed(server: str) -> str:
    """Return the Python for the sandbox; skip, and say what this machine lacks."""
    if server == "root" and os.geteuid() != 0:
        pytest.skip("this is not root, so no server of root's can be started")
    if reason := no_bubblewrap():
        pytest.skip(reason)
    python = reachable_python()
    if python is None:
        pytest.skip("no Python here can be started in the sandbox")
    return python


def in_sandbox(server: str, python: str, place: Path, *command: str) -> subprocess.CompletedProcess[str]:
    attacks = place / "attacks.py"
    shutil.copy(PROGRAMS / "sandbox_attacks.py", attacks)
    attacks.chmod(0o644)
    program = str(PROGRAMS / "in_sandbox.py")
    words = [sys.executable, program, server, python, str(place / "home"), str(attacks), *command]
    started = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=120)
    if server == "nobody" and os.geteuid() == 0 and started.returncode == 3:
        pytest.skip(f"an ordinary user has no sandbox here: {started.stdout.strip()}")
    return started


@pytest.mark.parametrize("server", SERVERS)
def test_no_known_way_leads_out_of_the_sandbox(server: str) -> None:
    python = needed(server)
    with place_for(server) as place:
        started = in_sandbox(server, python, place, python, str(place / "attacks.py"), "{pid}", "{key}")
        assert started.returncode == 0, started.stderr
        tried: dict[str, Any] = {}
        for line in started.stdout.splitlines():
            attempt = json.loads(line)
            tried[attempt["tried"]] = attempt["won"]
        assert len(tried) == 25
        assert {name: won for name, won in tried.items() if won is not None} == {}
        left = (place / "home" / "left").stat()
        assert left.st_mode & stat.S_ISUID
        assert left.st_uid != 0, "a file that an agent left runs as root"


@pytest.mark.parametrize("server", SERVERS)
def test_programs_in_the_sandbox_find_out_who_they_are(server: str) -> None:
    python = needed(server)
    with place_for(server) as place:
        started = in_sandbox(server, python, place, "/bin/sh", "-c", "whoami; id -un; touch ~/mine; stat -c %U ~/mine")
        assert started.returncode == 0, started.stderr
        assert len(set(started.stdout.split())) == 1 and "UNKNOWN" not in started.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only a server of root's gives agents user ids")
def test_a_directory_that_is_not_the_agents_is_refused_with_what_to_do() -> None:
    python = needed("root")
    with place_for("root") as place:
        (place / "home").mkdir(mode=0o700)
        (place / "home" / "old").touch()
        started = in_sandbox("root", python, place, "/bin/true")
        assert started.returncode != 0
        assert "chown -R" in started.stderr and str(place / "home") in started.stderr


HOLDS = """\
Uid:\t1000\t1000\t1000\t1000
CapInh:\t0000000000000000
CapPrm:\t0000000000000000
CapEff:\t0000000000000000
CapBnd:\t0000000000000000
CapAmb:\t0000000000000000
NoNewPrivs:\t1
95 94 0:42 / /proc rw,nosuid - proc proc rw
105 95 0:21 /sys /proc/sys ro,nosuid,nodev,relatime - proc proc rw
"""


@pytest.mark.parametrize(
    ("holds", "fails", "said"),
    [
        ("Uid:\t1000", "Uid:\t0", "root"),
        ("CapBnd:\t0000000000000000", "CapBnd:\t0000000000000400", "CapBnd"),
        ("NoNewPrivs:\t1", "NoNewPrivs:\t0", "privileges"),
        ("/proc/sys ro", "/proc/sys rw", "/proc/sys"),
        ("0:42 / /proc rw,nosuid - ", "0:42 / /sys rw,nosuid - ", "/sys"),
    ],
)
def test_a_sandbox_with_a_hole_is_noticed(holds: str, fails: str, said: str) -> None:
    assert hole_in(HOLDS) is None
    assert said in (hole_in(HOLDS.replace(holds, fails)) or "")
    assert hole_in("") is not None
