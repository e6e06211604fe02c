"""Work done as another user of the machine, in a process of its own: what root may do says nothing of others."""

from __future__ import annotations

import os
import traceback
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NOBODY = 65534

USERS = ("this user", "nobody")
"""`nobody` is left out by a process that is not root: then it has no privileges as it is."""


def run_as(user: str, directory: Path, work: Callable[[], None]) -> None:
    """Do some work in a process of its own; `directory` is made the user's, with everything above it passable.

    Everything that the work needs has to be imported before: a user without privileges may read less.
    """
    if user == "nobody":
        if os.geteuid() != 0:
            pytest.skip("only root can become another user")
        _give(directory, NOBODY)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if user == "nobody":
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            work()
            status = 0
        except BaseException:  # noqa: BLE001
            traceback.print_exc()
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _give(directory: Path, user: int) -> None:
    for each in (directory, *directory.rglob("*")):
        os.chown(each, user, user, follow_symlinks=False)
    for above in directory.parents:
        if above.stat().st_uid == os.geteuid() and not above.stat().st_mode & 0o001:
            above.chmod(above.stat().st_mode | 0o011)
