"""Agents are installed once, each into a folder of its own in the cache, from npm or from PyPI."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from app.tests.field.agents import CACHE, NODE

if TYPE_CHECKING:
    from app.tests.field.agents import FieldAgent

NODE_PACKAGE = "node@22"
"""Under an older Node npm silently chooses years-old releases of several agents."""


class NotInstalled(Exception):
    """An agent cannot be installed here; the text says why."""


def install_node() -> None:
    """Install the Node that all agents can use, unless it is there."""
    if not (NODE / "node").exists():
        _npm_install(CACHE / "node", NODE_PACKAGE)


def install(agent: FieldAgent) -> None:
    """Install an agent, unless this version of it is there; raise `NotInstalled` where that is not possible."""
    ready = agent.place / ".ready"
    if ready.exists() and ready.read_text() == agent.package:
        return
    shutil.rmtree(agent.place, ignore_errors=True)
    if agent.python:
        _pip_install(agent)
    else:
        _npm_install(agent.place, agent.package)
    ready.write_text(agent.package)


def _npm_install(place: Path, package: str) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise NotInstalled("npm is not installed")
    place.mkdir(parents=True, exist_ok=True)
    (place / "package.json").write_text('{"private": true}')
    path = os.pathsep.join([str(NODE), os.environ.get("PATH", os.defpath)])
    _run([npm, "install", "--no-audit", "--no-fund", "--no-package-lock", package], place, path)


def _pip_install(agent: FieldAgent) -> None:
    assert agent.python is not None
    _run([_python(agent.python), "-m", "venv", str(agent.place)], CACHE)
    _run([str(agent.place / "bin" / "python"), "-m", "pip", "install", "--quiet", *agent.package.split()], agent.place)


def _run(command: list[str], cwd: Path, path: str | None = None) -> None:
    env = dict(os.environ) | ({"PATH": path} if path else {})
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, check=False, text=True)
    if done.returncode != 0:
        raise NotInstalled((done.stderr or done.stdout).strip()[-400:])


def _python(least: str) -> str:
    """Find a Python that is new enough: this one, one on the path, or one of pyenv's."""
    minor = int(least.split(".")[1])
    names = [found for each in range(minor, 20) if (found := shutil.which(f"python3.{each}"))]
    pyenv = sorted(map(str, (Path.home() / ".pyenv" / "versions").glob("3.*/bin/python")))
    for candidate in [sys.executable, *names, *pyenv]:
        said = subprocess.run([candidate, "--version"], capture_output=True, check=False, text=True)
        version = re.match(r"Python 3\.(\d+)", said.stdout)
        if said.returncode == 0 and version and int(version[1]) >= minor:
            return candidate
    raise NotInstalled(f"it needs Python {least}, and there is none")
