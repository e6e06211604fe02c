"""`Launcher`: which command starts an agent for a principal, as whom, and with what environment (H11).

It makes commands; starting and guarding them is the business of `holdfast.children`.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from holdfast.children.environment import passed_environment
from holdfast.errors import UsageError
from holdfast.hosting.limits import ProcessLimits
from holdfast.hosting.sandbox import find_bubblewrap, sandboxed

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
        directories: Callable[[str], Sequence[str] | None],
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
            if os.geteuid() != 0:
                raise UsageError("only a server that runs as root can start agents as other users")
            if "{principal}" not in self._user:
                raise UsageError(f"{self._user!r} would be the same user for all: put {{principal}} into its name")

    # Who

    def identity(self, principal: str) -> Identity | None:
        """Return the user that a principal's agent runs as, where it is another one; raise `UsageError` for none."""
        settings = self._principals.get(principal, PrincipalSettings())
        name = settings.user or (self._user and self._user.replace("{principal}", principal))
        if self._user is None or name is None or sys.platform == "win32":
            return None
        import pwd  # noqa: PLC0415

        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            raise UsageError(f"there is no user {name} on this machine; make it with `useradd -m {name}`") from None
        if entry.pw_uid == 0:
            raise UsageError(f"{name} is root: an agent is not started as root for somebody else")
        groups = tuple(os.getgrouplist(name, entry.pw_gid))
        return Identity(name, entry.pw_uid, entry.pw_gid, groups, entry.pw_dir)

    def home(self, principal: str) -> str | None:
        """Return the home of a principal, which is made if it is not there and not the user's own."""
        identity = self.identity(principal)
        if self._home is None:
            return None if identity is None else identity.home
        home = Path(self._home.replace("{principal}", principal))
        if not home.exists():
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.give(principal, home)
        return str(home)

    def give(self, principal: str, directory: Path) -> None:
        """Let a directory that was made for a principal belong to its user."""
        identity = self.identity(principal)
        if identity is not None and sys.platform != "win32":
            os.chown(directory, identity.uid, identity.gid)

    # What

    def prepare(
        self,
        principal: str,
        command: Sequence[str],
        *,
        cwd: str | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> Prepared:
        """Return how a command is started for a principal.

        `cwd` is where, its home by default. `variables` are added to the command's environment: whoever chose them has
        no say in that of the programs which start it.

        Raises:
            UsageError: It cannot be started for this principal.

        """
        identity, home = self.identity(principal), self.home(principal)
        work = tuple(self._directories(principal) or ())
        where = cwd or home or (work[0] if work else "/")
        environment = self._environment_of(principal, identity, home)
        if self._template:
            return self._by_template(principal, command, environment, variables or {}, home, work, where)
        settings: dict[str, object] = {"limits": self._limits.of_the_system(), "cwd": where}
        words = list(command)
        if self._bubblewrap is not None:
            before = sandboxed(self._bubblewrap, read=self._read, write=_once(home, *work), cwd=where)
            settings |= {"sandbox": len(before), "cwd": "/"}
            words = [*before, "--", *words]
        if identity is not None:
            settings |= {"user": (identity.uid, identity.gid, identity.groups), "private": self._bubblewrap is None}
        if "TMPDIR" in environment:
            settings["make"] = environment["TMPDIR"]
        carried = json.dumps({**environment, **(variables or {})})
        env = {ENVIRONMENT: carried, "PATH": os.environ.get("PATH", os.defpath)}
        return Prepared((sys.executable, "-I", "-S", _ENTER, json.dumps(settings), *words), env, "/")

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


def _filled(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(f"{{{name}}}", value)
    return word


def _once(*directories: str | None) -> list[str]:
    return list(dict.fromkeys(directory for directory in directories if directory))
