"""`Launcher`: which command starts an agent for a principal, as whom, and with what environment (H11).

It makes commands; starting and guarding them is the business of `holdfast.subprocesses`.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from holdfast.errors import UsageError
from holdfast.subprocesses.environment import passed_environment
from holdfast.workspace.allowed import AllowedDirectories
from holdfast.workspace.trusted_path import Owner
from holdfast_app.sandbox import identity_thread
from holdfast_app.sandbox.limits import ProcessLimits
from holdfast_app.sandbox.sandbox import find_bubblewrap, sandboxed, try_sandbox, user_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ENVIRONMENT = "HOLDFAST_ENVIRONMENT"
"""Carries the environment of a command past the programs that start it; see `enter.py`."""

_ENTER = str(Path(__file__).with_name("enter.py"))

_OURS = ("HOME", "LOGNAME", "SHELL", "TEMP", "TMP", "TMPDIR", "USER", "USERNAME")
"""Variables that say who we are; a principal's agent has its own."""


class Prepared(NamedTuple):
    """A command that is ready to be started."""

    command: tuple[str, ...]
    env: dict[str, str]
    """The whole environment in which it is started."""
    cwd: str | None = None


class Identity(NamedTuple):
    """A user of the system."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str
    is_account: bool = True
    """Whether the system knows it; otherwise it is a number that nobody else has."""


class PrincipalSettings(NamedTuple):
    """What holds for one principal alone."""

    user: str | None = None
    """The user of the system that its agent runs as."""
    environment: Mapping[str, str] = {}


class Launcher:
    """Makes the commands that start programs for principals.

    Args:
        user: the user of the system, with ``{principal}`` in it; needs a server that runs as root.
        sandbox: whether to start in bubblewrap.
        template: words before the command, as ``docker run --rm -i …``; ``{principal}``, ``{home}``, ``{workspace}``,
            ``{cwd}`` in them are replaced, and the command takes the place of ``{command}`` or stands at the end.
        home: the home of each principal, with ``{principal}`` in it; the user's own by default.
        environment: variables for everybody's agent.
        passed: names of variables of ours that are passed on.
        read: directories that agents in the sandbox may read, besides the system's.
        limits: what each process is held to.
        directories: returns where a principal may work; None is anywhere.
        principals: what holds for single ones.

    """

    def __init__(
        self,
        *,
        user: str | None = None,
        sandbox: bool = False,
        template: Sequence[str] = (),
        home: str | None = None,
        environment: Mapping[str, str] | None = None,
        passed: Sequence[str] = (),
        read: Sequence[str] = (),
        limits: ProcessLimits | None = None,
        directories: Callable[[str], AllowedDirectories | None],
        principals: Mapping[str, PrincipalSettings] | None = None,
    ) -> None:
        self._user = user
        self._bubblewrap = find_bubblewrap() if sandbox else None
        self._template = tuple(template)
        self._home = home
        self._environment = dict(environment or {})
        self._passed = frozenset(passed)
        self._read = tuple(read)
        self._limits = limits or ProcessLimits()
        self._directories = directories
        self._principals = dict(principals or {})
        self._check()

    def _check(self) -> None:
        if sys.platform == "win32":
            raise UsageError("a launcher needs Linux or macOS")
        if self._template and (self._bubblewrap or self._user):
            raise UsageError("a launcher is a command, or another user and a sandbox, not both")
        if self._user is not None:
            if not _is_root():
                raise UsageError("only a server that runs as root can start agents as other users")
            if "{principal}" not in self._user:
                raise UsageError(f"{self._user!r} would be the same user for all: put {{principal}} into its name")

    # Who

    def identity(self, principal: str) -> Identity | None:
        """Return the user that a principal's agent runs as, where it is another one; raise `UsageError` for none."""
        if sys.platform == "win32":
            return None
        settings = self._principals.get(principal, PrincipalSettings())
        name = settings.user or (self._user and self._user.replace("{principal}", principal))
        if self._user is None or name is None:
            return self._in_sandbox(principal)
        import pwd  # noqa: PLC0415

        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            raise UsageError(f"there is no user {name} on this machine; make it with `useradd -m {name}`") from None
        if entry.pw_uid == 0:
            raise UsageError(f"{name} is root: an agent is not started as root for somebody else")
        groups = tuple(os.getgrouplist(name, entry.pw_gid))
        return Identity(name, entry.pw_uid, entry.pw_gid, groups, entry.pw_dir)

    def _in_sandbox(self, principal: str) -> Identity | None:
        """Return the user that an agent in the sandbox is, where the server is root and must not be its user."""
        if self._bubblewrap is None or not _is_root():
            return None
        user = user_of(principal)
        name = "agent-" + re.sub(r"[^a-z0-9_-]", "_", principal.lower())[:24]
        return Identity(name, user, user, (user,), "/", is_account=False)

    def owner(self, principal: str) -> Owner | None:
        """Return the user that the directories of a principal belong to, where it is another one than ours."""
        identity = self.identity(principal)
        if identity is None:
            return None
        return Owner(identity.uid, identity.gid, partial(identity_thread.run_as, identity))

    def home_name(self, principal: str) -> str | None:
        """Return the home of a principal, which need not be there."""
        if self._home is not None:
            return self._home.replace("{principal}", principal)
        identity = self.identity(principal)
        return None if identity is None else identity.home

    # What

    def prepare(
        self,
        principal: str,
        command: Sequence[str],
        *,
        cwd: str | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> Prepared:
        """Return how a command is started for a principal; its home is made if it is not there and not the user's own.

        `cwd` is where, its home by default. `variables` are added to the command's environment: whoever chose them has
        no say in that of the programs which start it.

        Raises:
            UsageError: It cannot be started for this principal.

        """
        identity, home = self.identity(principal), self.home_name(principal)
        allowed = self._directories(principal)
        work = () if allowed is None else allowed.directories
        places = AllowedDirectories(_once(home, *work))
        if self._home is not None and home is not None:
            places.make({home}, self.owner(principal))
        where = cwd or home or (work[0] if work else "/")
        environment = self._environment_of(principal, identity, home)
        if self._template:
            return self._by_template(principal, command, environment, variables or {}, home, work, where)
        settings: dict[str, object] = {"limits": self._limits.of_the_system(), "cwd": where}
        if identity is not None:
            settings |= {"user": (identity.uid, identity.gid, identity.groups), "private": self._bubblewrap is None}
        if "TMPDIR" in environment:
            settings["make"] = environment["TMPDIR"]
        words = list(command)
        if self._bubblewrap is not None:
            settings["write"] = _outermost(places)
            settings["read"] = [(directory, directory) for directory in self._read]
            settings["cwd"] = "/"
            if identity is not None and not identity.is_account:
                settings["account"] = f"{identity.name}:x:{identity.uid}:{identity.gid}::{home or '/'}:/bin/sh"
            before = sandboxed(self._bubblewrap, cwd=where)
            settings["sandbox"] = len(before)
            words = [*before, "--", *words]
        carried = json.dumps({**environment, **(variables or {})})
        return Prepared((*_entering(settings), *words), _carrying(carried), "/")

    def try_out(self) -> None:
        """Raise `UsageError` if this system cannot have the sandbox that agents are to be started in."""
        if self._bubblewrap is None:
            return
        before = sandboxed(self._bubblewrap, cwd="/")
        settings: dict[str, object] = {"sandbox": len(before)}
        if _is_root():
            user = user_of("")
            settings["user"] = (user, user, (user,))
        environment = json.dumps({"PATH": os.environ.get("PATH", os.defpath)})
        try_sandbox((*_entering(settings), *before, "--"), _carrying(environment))

    def _environment_of(self, principal: str, identity: Identity | None, home: str | None) -> dict[str, str]:
        passed = passed_environment(self._passed)
        kept = {name: value for name, value in passed.items()
                if name in self._passed or not (name in _OURS or name.startswith("XDG_"))}  # fmt: skip
        name = principal if identity is None else identity.name
        kept |= {"USER": name, "LOGNAME": name}
        if home is not None:
            kept["HOME"] = home
            if self._bubblewrap is None and not self._template:
                kept["TMPDIR"] = f"{home}/.tmp"  # others can look into /tmp
        return {**kept, **self._environment, **self._principals.get(principal, PrincipalSettings()).environment}

    def _by_template(
        self,
        principal: str,
        command: Sequence[str],
        environment: dict[str, str],
        variables: Mapping[str, str],
        home: str | None,
        work: Sequence[str],
        where: str,
    ) -> Prepared:
        """Return the command of a template. Its program runs as we do, so it has our home and none of `variables`."""
        values = {"principal": principal, "home": home or "", "workspace": work[0] if work else "", "cwd": where}
        words: list[str] = []
        inner = [*(("env", *(f"{name}={value}" for name, value in variables.items())) if variables else ()), *command]
        for word in self._template:
            if word == "{command}":
                words += inner
            else:
                words.append(_filled(word, values))
        if "{command}" not in self._template:
            words += inner
        ours = {name: os.environ[name] for name in ("HOME", "XDG_RUNTIME_DIR", "TMPDIR") if name in os.environ}
        return Prepared(tuple(words), {**environment, **ours}, "/")


def parse_template(written: str) -> tuple[str, ...]:
    """Return the words of a template, written as for a shell."""
    try:
        words = tuple(shlex.split(written))
    except ValueError as e:
        raise UsageError(f"the launcher {written!r} makes no sense: {e}") from None
    if not words:
        raise UsageError("the launcher is empty: name a program, as in 'docker run --rm -i image'")
    return words


def _entering(settings: Mapping[str, object]) -> tuple[str, ...]:
    """Return the words that start a command behind them as another user, in a sandbox, with limits."""
    return sys.executable, "-I", "-S", _ENTER, json.dumps(settings)


def _carrying(environment: str) -> dict[str, str]:
    """Return the environment of the program that becomes the command, and carries the command's own."""
    return {ENVIRONMENT: environment, "PATH": os.environ.get("PATH", os.defpath)}


def _outermost(places: AllowedDirectories) -> list[tuple[str, str]]:
    """Return where directories are, without links, and their names; those that lie in another are shown with that one.

    Whoever works in the outer one could put something else in the place of the inner one.

    Raises `UsageError` for one that is not there.
    """
    real = places.real()
    if missing := [name for name in places.directories if name not in real]:
        raise UsageError(f"{missing[0]} cannot be shown to the agent: it leads through a link; see the server's log")
    found: list[tuple[str, str]] = []
    for name in sorted(real, key=len):
        inside = any(
            name.startswith(f"{outer}/") and real[name] == where + name.removeprefix(outer) for where, outer in found
        )
        if not inside:
            found.append((real[name], name))
    return found


def _is_root() -> bool:
    if sys.platform == "win32":
        return False
    return os.geteuid() == 0


def _filled(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(f"{{{name}}}", value)
    return word


def _once(*directories: str | None) -> list[str]:
    return list(dict.fromkeys(directory for directory in directories if directory))
