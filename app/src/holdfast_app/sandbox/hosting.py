"""`Hosting`: the files and commands of a session's directories that a server serves to its agents (H10, H11).

An agent asks its client for files and terminals. On a server clients come and go, and have other machines: the server
answers instead, within the directories of the session, as the user that the agent runs as.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import msgspec

from holdfast.client.file_requests import ReadTextFile, WriteTextFile, file_errors_refused
from holdfast.client.terminals import CreateTerminal, TerminalParams, Terminals
from holdfast.errors import InvalidParams, MethodNotFound, UsageError
from holdfast.subprocesses import start
from holdfast.subprocesses.environment import DEVELOPMENT, passed_environment
from holdfast.workspace import Files, Workspace
from holdfast_app.sandbox import identity_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from concurrent.futures import ThreadPoolExecutor

    from holdfast.model import Update
    from holdfast.subprocesses import Child
    from holdfast.workspace.allowed import AllowedDirectories
    from holdfast_app.sandbox.launcher import Identity, Launcher, Prepared

UseOf: TypeAlias = "Callable[[str, str, str, str], None]"
"""Is told of each use: the principal, the session, the method, and the path or the program."""

_FILES, _TERMINALS = frozenset({"read", "write"}), frozenset({"terminal"})


class Hosting:
    """What the agents of all principals get."""

    def __init__(
        self,
        directories: Callable[[str], AllowedDirectories | None],
        *,
        launcher: Launcher | None = None,
        on_use: UseOf | None = None,
    ) -> None:
        """`directories` returns where a principal may work, None for one who may work anywhere and serves himself."""
        self.directories: Callable[[str], AllowedDirectories | None] = directories
        self.launcher: Launcher | None = launcher
        self.on_use: UseOf | None = on_use
        self._threads: dict[Identity, ThreadPoolExecutor] = {}

    @property
    def has_homes(self) -> bool:
        """Whether what an agent has in its home is of one principal alone."""
        return self.launcher is not None

    def serves(self, principal: str) -> frozenset[str]:
        """Return what a principal's agent may ask for: ``read``, ``write``, ``terminal``; nothing is its client's."""
        if self.directories(principal) is None:
            return frozenset()
        other = self.launcher is not None and self.launcher.identity(principal) is not None
        return _TERMINALS if other and not identity_thread.is_available() else _FILES | _TERMINALS

    def prepare(self, principal: str, command: Sequence[str]) -> Prepared | None:
        """Return how an agent is started for a principal; None for as it is."""
        return None if self.launcher is None else self.launcher.prepare(principal, command)

    def open(self, principal: str, session_id: str) -> HostedSession:
        """Return the files and commands of a session."""
        return HostedSession(self, principal, session_id)

    def threads(self, principal: str) -> ThreadPoolExecutor | None:
        """Return the threads that touch files for a principal; None for any."""
        identity = None if self.launcher is None else self.launcher.identity(principal)
        if identity is None:
            return None
        if identity not in self._threads:
            self._threads[identity] = identity_thread.threads_of(identity)
        return self._threads[identity]

    def start(self, principal: str, command: Sequence[str], cwd: str, variables: Mapping[str, str]) -> Child:
        """Start a command for a principal."""
        if self.launcher is None:
            env = {**passed_environment(DEVELOPMENT), **variables}
            return start(command, cwd=cwd, env=env, stdin=False, stderr=False)
        if " " in command[0] and shutil.which(command[0]) is None:
            from holdfast.subprocesses.child import word_by_word  # noqa: PLC0415  (few are so)

            raise UsageError(f"cannot start {command[0]!r}: no such program{word_by_word(command)}")
        prepared = self.launcher.prepare(principal, command, cwd=cwd, variables=variables)
        return start(prepared.command, cwd=prepared.cwd, env=prepared.env, stdin=False, stderr=False)

    def close(self) -> None:
        """Let the threads end."""
        for threads in self._threads.values():
            threads.shutdown(wait=False)
        self._threads.clear()


class HostedSession:
    """The files and commands of one session; to the agent it is as a client that has them."""

    def __init__(self, hosting: Hosting, principal: str, session_id: str) -> None:
        self.services: frozenset[str] = hosting.serves(principal)
        self.session_id = session_id
        self._hosting = hosting
        self._principal = principal
        self._roots: tuple[str, ...] = ()
        self._files: Files | None = None
        self._terminals: Terminals | None = None

    def work_in(self, roots: Sequence[str]) -> None:
        """Use the directories of the turn that runs now; terminals that were made before go on."""
        if tuple(roots) != self._roots or self._files is None:
            self._roots = tuple(roots)
            self._files = Files(self._resolved(roots), threads=self._hosting.threads(self._principal))
            if self._terminals is None:
                self._terminals = Terminals(self._files.workspace, self._start)
            else:
                self._terminals.workspace = self._files.workspace

    async def request(self, method: str, params: Mapping[str, Any]) -> Update:
        """Answer a request of the agent."""
        match method:
            case "fs/read_text_file":
                return await self._read(_parsed(params, ReadTextFile))
            case "fs/write_text_file":
                return await self._write(_parsed(params, WriteTextFile))
            case "terminal/create":
                wanted = _parsed(params, CreateTerminal)
                self._tell(method, wanted.command.partition(" ")[0])
                return await self._commands.create(wanted)
            case "terminal/output" | "terminal/wait_for_exit" | "terminal/kill" | "terminal/release":
                act = getattr(self._commands, method.removeprefix("terminal/"))
                return await act(_parsed(params, TerminalParams))
            case _:
                raise MethodNotFound(f"This server does not offer {method[:100]}")

    def embed_terminal(self, terminal_id: str, own_id: str) -> None:
        """Do nothing: no client has our terminals, so that what they print is shown."""

    async def close(self) -> None:
        """End its commands."""
        if self._terminals is not None:
            await self._terminals.close()

    async def _read(self, params: ReadTextFile) -> Update:
        self._tell("fs/read_text_file", params.path)
        with file_errors_refused(params.path), self._texts.workspace.hold():
            return {"content": await self._texts.read_text(params.path, line=params.line, limit=params.limit)}

    async def _write(self, params: WriteTextFile) -> Update:
        self._tell("fs/write_text_file", params.path)
        with file_errors_refused(params.path), self._texts.workspace.hold():
            await self._texts.write_text(params.path, params.content)
        return {}

    def _resolved(self, roots: Sequence[str]) -> Workspace:
        """Return the workspace of a session; raise `InvalidParams` where a root leads out of what is allowed (H10)."""
        workspace = Workspace.resolve(roots[0], roots[1:])
        allowed = self._hosting.directories(self._principal)
        if allowed is not None and not workspace.lies_in(allowed):
            raise InvalidParams("A directory of this session is not where it was; open the session again")
        return workspace

    def _start(self, command: Sequence[str], cwd: str, variables: Mapping[str, str]) -> Child:
        return self._hosting.start(self._principal, command, cwd, variables)

    def _tell(self, method: str, what: str) -> None:
        if self._hosting.on_use is not None:
            self._hosting.on_use(self._principal, self.session_id, method, what)

    @property
    def _texts(self) -> Files:
        assert self._files is not None
        return self._files

    @property
    def _commands(self) -> Terminals:
        assert self._terminals is not None
        return self._terminals


P = TypeVar("P", bound=msgspec.Struct)


def _parsed(params: Mapping[str, Any], shape: type[P]) -> P:
    try:
        return msgspec.convert(params, shape)
    except msgspec.ValidationError as e:
        raise InvalidParams(str(e)) from None
