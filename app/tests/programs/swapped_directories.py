"""Lets a principal swap its directory for a link while a server makes it, at each step of the server in turn.

    swapped_directories.py USER PYTHON PLACE

USER is the number of the server's user, PYTHON one that this user can start. PLACE has `secret`, a directory of the
server's user that no principal may use, and `ada`, which her processes may change. Before the n-th time that the server
touches the file system, what stands at `ada/work` is replaced by a link to `secret`. Prints one line of JSON for each
n: who `secret` belongs to afterwards, and whether sessions may be opened in it. Ends with the first n that is not
reached, and prints who `ada/work` belongs to when nothing is swapped.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import holdfast_app.sandbox  # noqa: TC001  (now: another user may not be able to read it)
from holdfast.errors import InvalidParams, UsageError
from holdfast.server.remote import TokenFile
from holdfast_app.cli.hosting_options import make_hosting, make_workspaces

TOUCHING = ("open", "os.chown", "os.listdir", "os.mkdir", "os.rename", "os.scandir")

USER, PYTHON, PLACE = int(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
SECRET, ADA, WORK = PLACE / "secret", PLACE / "ada", PLACE / "ada" / "work"
AS_ROOT = USER == 0
AT = {"left": -1}


def hosting() -> holdfast_app.sandbox.Hosting:
    """Return what `holdfast serve` makes for agents that run as other users, or in a sandbox where we are not root."""
    options: dict[str, Any] = {
        "workspaces": (f"{PLACE}/{{principal}}/work",), "home": f"{PLACE}/{{principal}}", "host": "127.0.0.1",
        "as_user": "agent-{principal}" if AS_ROOT else None, "bubblewrap": not AS_ROOT, "launcher": None,
        "environment": (), "process_limits": (), "expose": (),
    }  # fmt: skip
    workspaces = make_workspaces(options, TokenFile(PLACE / "tokens.toml"), PLACE / "own")
    return make_hosting(options, workspaces, PLACE / "homes", {"principals": {"ada": {"user": "nobody"}}}, None)


def swap(event: str, _arguments: object) -> None:
    if event not in TOUCHING or AT["left"] < 0:
        return
    AT["left"] -= 1
    if AT["left"] < 0:
        lead_away()


def lead_away() -> None:
    """Do what a process of the principal's does in its own directory."""
    if WORK.is_symlink():
        WORK.unlink()
    elif WORK.exists():
        WORK.rename(ADA / f"moved-{sum(1 for _ in ADA.iterdir())}")
    WORK.symlink_to(SECRET)


def clean() -> None:
    for path in list(ADA.iterdir()):
        path.unlink() if path.is_symlink() else shutil.rmtree(path)


def may_open_secret(hosted: holdfast_app.sandbox.Hosting) -> bool:
    try:
        hosted.open("ada", "a session").work_in([str(SECRET)])
    except (InvalidParams, OSError):
        return False
    return True


def shows_secret(hosted: holdfast_app.sandbox.Hosting) -> bool:
    """Return whether a sandbox is made that shows it, or a link to it."""
    try:
        prepared = hosted.prepare("ada", ["true"])
    except UsageError:
        return False
    words = " ".join(prepared.command) if prepared is not None else ""
    return str(SECRET) in words or f"--bind {WORK} {WORK}" in words


def main() -> None:
    if os.geteuid() != USER:
        os.setgroups([])
        os.setgid(USER)
        os.setuid(USER)
        sys.executable = PYTHON
    hosted = hosting()
    sys.addaudithook(swap)
    for step in range(100):
        clean()
        AT["left"] = step
        hosted.directories("ada")
        reached = AT["left"] < 0
        AT["left"] = -1
        if not reached:
            break
        told = {"step": step, "owner": SECRET.stat().st_uid, "opened": may_open_secret(hosted)}
        sys.stdout.write(json.dumps({**told, "shown": not AS_ROOT and shows_secret(hosted)}) + "\n")
    clean()
    hosted.directories("ada")
    made = {"made": WORK.is_dir() and not WORK.is_symlink(), "by": WORK.stat().st_uid}
    sys.stdout.write(json.dumps(made) + "\n")
    os._exit(0)  # whatever threads of other users there are


main()
