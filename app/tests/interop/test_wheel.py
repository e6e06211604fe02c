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
from typing import TYPE_CHECKING, NamedTuple
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


class Wheels(NamedTuple):
    library: Path
    products: Path


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    dist = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", dist, ROOT / "core", ROOT / "app", cwd=dist)
    (library,) = dist.glob("holdfast_core-*.whl")
    (products,) = dist.glob("holdfast-*.whl")
    return Wheels(library, products)


def empty_environment(place: Path) -> tuple[Path, tuple[str | Path, ...]]:
    """Make an environment with nothing in it; return its Python, and the pip that installs into it."""
    run(sys.executable, "-m", "venv", "--without-pip", place, cwd=place.parent)
    python = place / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    return python, (sys.executable, "-m", "pip", "--python", python)  # a pip of its own would take longer than all else


@pytest.mark.timeout(1800)
def test_both_wheels_run_the_tutorial_from_its_first_to_its_last_line(wheels: Wheels, tmp_path: Path) -> None:
    place, home, work = tmp_path / "empty", tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    python, pip = empty_environment(place)
    run(*pip, "install", "--quiet", "-c", ROOT / "constraints.txt", *wheels, "pytest", cwd=tmp_path)
    said = run(python, DRIVER, ROOT / "docs" / "tutorial.md", work, cwd=work, home=home)
    assert "4 agents, a test and an editor's settings" in said
    assert str(place) in said
    for words in (("web", "--no-browser"), ("serve", "demo", "--web")):
        with (
            served(python, *words, home=home) as link,
            build_opener(HTTPCookieProcessor()).open(link, timeout=60) as page,
        ):
            assert page.status == 200 and b"Holdfast" in page.read()


LIBRARY_ALONE = """
import asyncio, sys
import holdfast
async def main():
    command = (sys.executable, "-m", "holdfast", "run", "weather.py", "--store", "s.db")
    async with holdfast.connect(*command, protocol=1) as agent:
        session = await agent.new_session(".")
        print(await session.ask_text("How warm is it?"))
        try:
            await agent.new_session(".", mcp_servers=[{"name": "a", "command": "/bin/true", "args": [], "env": []}])
        except Exception as e:
            print("refused:", e)
        try:
            async with holdfast.connect("http://127.0.0.1:9/acp", over="http"):
                pass
        except Exception as e:
            print("refused:", e)
asyncio.run(main())
"""

WEATHER = """
from holdfast import Agent, Turn
agent = Agent("weather")

@agent.prompt
async def answer(turn: Turn) -> None:
    await turn.say("21 degrees")
"""


@pytest.mark.timeout(1800)
def test_the_library_alone_is_three_packages_and_20_mb_and_runs_an_agent(wheels: Wheels, tmp_path: Path) -> None:
    python, pip = empty_environment(tmp_path / "empty")
    run(*pip, "install", "--quiet", "-c", ROOT / "constraints.txt", wheels.library, cwd=tmp_path)
    installed = {line.split("==")[0].split(" ")[0] for line in run(*pip, "freeze", "--all", cwd=tmp_path).splitlines()}
    assert installed - {"pip", "setuptools"} == {"apsw", "holdfast-core", "msgspec"}
    (site,) = (tmp_path / "empty").glob("lib/python3*/site-packages")
    assert sum(path.stat().st_size for path in site.rglob("*") if path.suffix != ".pyc") < 20_000_000
    (tmp_path / "weather.py").write_text(WEATHER)
    said = run(python, "-c", LIBRARY_ALONE, cwd=tmp_path)
    assert "21 degrees" in said
    assert said.count("pip install 'holdfast-core[mcp]'") == 1
    assert said.count("pip install 'holdfast-core[http]'") == 1
    alone = subprocess.run(
        [python, "-m", "holdfast", "chat"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert alone.returncode == 2
    assert "pip install holdfast" in alone.stderr.splitlines()[-1]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("which", ["library", "products"])
def test_a_wheel_says_what_it_is_and_holds_what_is_needed(wheels: Wheels, which: str) -> None:
    with zipfile.ZipFile(getattr(wheels, which)) as archive:
        names = archive.namelist()
        (about,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(archive.read(about))
    assert any(name.endswith("py.typed") for name in names)
    needed = {"library": "store/sqlite/queries.sql", "products": "web/assets/library.js"}[which]
    assert any(name.endswith(needed) for name in names)
    assert not [name for name in names if name.startswith(("tests", "bench", "docs", "examples"))]
    needs = {str(it) for it in metadata.get_all("Requires-Dist", []) if "extra ==" not in str(it)}
    needs = {re.split(r"[<>=~; ]", it)[0] for it in needs}
    wanted = {"library": {"apsw", "msgspec"}, "products": {"holdfast-core[fast,http,mcp,serve]", "click"}}[which]
    assert wanted <= needs, "`holdfast web` and `holdfast serve` work after a plain install"
    readme = str(metadata.get_payload())
    links = re.findall(r"\]\(([^)]+)\)", re.sub(r"```.*?```", "", readme, flags=re.DOTALL))
    assert links
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    assert {url.split(",")[0] for url in metadata.get_all("Project-URL", [])} >= {
        "Documentation",
        "Source",
        "Changelog",
    }
