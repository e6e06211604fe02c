"""The wheel, installed alone into an empty environment: what a user has."""

from __future__ import annotations

import email
import os
import re
import socket
import subprocess
import sys
import zipfile
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.request import HTTPCookieProcessor, build_opener

import pytest

from core.tests.support.schemas import ROOT

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

DRIVER = ROOT / "core" / "tests" / "support" / "tutorial_driver.py"


def run(*command: str | Path, cwd: Path, home: Path | None = None) -> str:
    """Run a command with nothing of this environment in reach; return what it said."""
    kept = {name: value for name, value in os.environ.items() if not re.match(r"PYTHON|VIRTUAL_ENV|HOLDFAST|XDG", name)}
    env = kept | ({"HOME": str(home)} if home else {})
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=env, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@contextmanager
def served(python: Path, *words: str, home: Path) -> Generator[str]:
    """Start a server of the installed Holdfast at a free port; give the link that signs a browser in."""
    store = home / f"{words[0]}.db"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [str(python), "-m", "holdfast", *words, "--port", str(port), "--store", str(store)]
    env = {name: value for name, value in os.environ.items() if not re.match(r"PYTHON|VIRTUAL_ENV|HOLDFAST|XDG", name)}
    with subprocess.Popen(command, env=env | {"HOME": str(home)}, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            said = ""
            for line in server.stderr:  # to the link, or to its end
                said += line
                if (found := re.search(r"http://\S+/link/\S+", line)) is not None:
                    yield found[0]
                    return
            raise AssertionError(said)
        finally:
            server.kill()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    dist = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", dist, ROOT, cwd=dist)
    (built,) = dist.glob("*.whl")
    return built


@pytest.mark.timeout(1800)
def test_the_wheel_alone_runs_the_tutorial_from_its_first_to_its_last_line(wheel: Path, tmp_path: Path) -> None:
    place, home, work = tmp_path / "empty", tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    run(sys.executable, "-m", "venv", "--without-pip", place, cwd=tmp_path)
    python = place / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    pip = (sys.executable, "-m", "pip", "--python", python)  # a pip of its own would take longer than all it installs
    run(*pip, "install", "--quiet", "-c", ROOT / "constraints.txt", wheel, "pytest", cwd=tmp_path)
    said = run(python, DRIVER, ROOT / "docs" / "tutorial.md", work, cwd=work, home=home)
    assert "4 agents, a test and an editor's settings" in said
    assert str(place) in said
    for words in (("web", "--no-browser"), ("serve", "demo", "--web")):
        with (
            served(python, *words, home=home) as link,
            build_opener(HTTPCookieProcessor()).open(link, timeout=60) as page,
        ):
            assert page.status == 200 and b"Holdfast" in page.read()


@pytest.mark.timeout(600)
def test_the_wheel_says_what_it_is_and_holds_what_is_needed(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (about,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(archive.read(about))
    assert any(name.endswith("py.typed") for name in names)
    assert any(name.endswith("store/sqlite/queries.sql") for name in names)
    assert not [name for name in names if name.startswith(("tests", "bench", "docs", "examples"))]
    needs = {str(it) for it in metadata.get_all("Requires-Dist", []) if "extra ==" not in str(it)}
    needs = {re.split(r"[<>=~; ]", it)[0] for it in needs}
    assert {"httptools", "uvicorn", "websockets"} <= needs, (
        "`holdfast web` and `holdfast serve` work after a plain install"
    )
    readme = str(metadata.get_payload())
    links = re.findall(r"\]\(([^)]+)\)", re.sub(r"```.*?```", "", readme, flags=re.DOTALL))
    assert links
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    assert {url.split(",")[0] for url in metadata.get_all("Project-URL", [])} >= {
        "Documentation",
        "Source",
        "Changelog",
    }
