"""What we do for an agent when it asks: give permission, fill in forms, read and write files, run commands.

Everything is refused unless the program that connected said otherwise. What is allowed stays in the session's
directories, and ends with it.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from holdfast.errors import FileMissing, FileRefused, InvalidParams
from holdfast.model import Filled

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from holdfast.client.session import ClientSession
    from holdfast.client.terminals import Terminals
    from holdfast.model import Elicitation, Permission, PermissionOption
    from holdfast.workspace import Files

log = logging.getLogger(__name__)

Permissions: TypeAlias = (
    "Literal['deny', 'allow'] | Callable[[ClientSession, Permission], Awaitable[str | bool | None]]"
)
Questions: TypeAlias = "Callable[[ClientSession | None, Elicitation], Awaitable[dict[str, Any] | Filled | None]] | None"


class ReadFile(msgspec.Struct, rename="camel"):
    """`fs/read_text_file`."""

    session_id: str
    path: str
    line: int | None = None
    limit: int | None = None


class WriteFile(msgspec.Struct, rename="camel"):
    """`fs/write_text_file`."""

    session_id: str
    path: str
    content: str


@dataclass(frozen=True, slots=True)
class Services:
    """What is allowed."""

    permissions: Permissions = "deny"
    questions: Questions = None
    files: bool | Sequence[str | Path] = False
    terminals: bool = False

    async def permit(self, session: ClientSession, question: Permission) -> PermissionOption | None:
        """Answer a question for permission; None where there is no answer."""
        if self.permissions == "deny":
            return _of_kind(question, "reject")
        if self.permissions == "allow":
            return _of_kind(question, "allow")
        answer = await _ask(session, self.permissions(session, question))
        if isinstance(answer, bool):
            return _of_kind(question, "allow" if answer else "reject")
        if answer is not None and question.chosen(answer) is None:
            offered = ", ".join(it.id for it in question.options)
            log.error("The answer to a question for permission is none of those offered (%s): %r", offered, answer)
        return question.chosen(answer)

    async def fill_in(self, session: ClientSession | None, question: Elicitation) -> Filled:
        """Answer a question that a form or an address answers."""
        if self.questions is None:
            return Filled("decline")
        answer = await _ask(session, self.questions(session, question))
        if answer is None:
            return Filled("decline")
        return answer if isinstance(answer, Filled) else Filled("accept", answer)

    async def read_file(self, session: ClientSession, it: ReadFile) -> dict[str, str]:
        """Read a file for the agent."""
        with _Refusals(it.path):
            return {"content": await self._files(session).read_text(it.path, line=it.line, limit=it.limit)}

    async def write_file(self, session: ClientSession, it: WriteFile) -> dict[str, str]:
        """Write a file for the agent."""
        with _Refusals(it.path):
            await self._files(session).write_text(it.path, it.content)
        return {}

    def commands(self, session: ClientSession) -> Terminals:
        """Get what runs commands for the agent."""
        if session.terminals is None:
            from holdfast.client.terminals import Terminals  # noqa: PLC0415  (few agents want it)

            session.terminals = Terminals(self._files(session).workspace)
        return session.terminals

    def _files(self, session: ClientSession) -> Files:
        if session.files is None:
            from holdfast.workspace import Files, Workspace  # noqa: PLC0415  (few agents want them)

            given = () if isinstance(self.files, bool) else tuple(self.files)
            first, *others = given or (session.cwd, *session.additional)
            session.files = Files(Workspace.resolve(first, others))
        return session.files


class Ask:
    """A question that is being answered, until there is an answer or its turn is cancelled."""

    def __init__(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._withdrawn = False

    def withdraw(self) -> None:
        """Let there be no answer."""
        if not self._withdrawn:
            self._withdrawn = True
            self._task.cancel()

    def counts(self) -> bool:
        """Say, of a cancellation, whether it was only the question that was cancelled, and not the request."""
        return self._withdrawn and self._task.uncancel() == 0


async def _ask(session: ClientSession | None, answering: Awaitable[Any]) -> Any:
    """Wait for an answer; None where there is none."""
    ask = Ask()
    asks: set[Ask] = set() if session is None else session.asks
    asks.add(ask)
    try:
        return await answering
    except asyncio.CancelledError:
        if not ask.counts():
            raise
        return None
    except Exception:
        log.exception("What should have answered a question of the agent has failed; it counts as no answer")
        return None
    finally:
        asks.discard(ask)


def _of_kind(question: Permission, kind: Literal["allow", "reject"]) -> PermissionOption | None:
    """Choose an option of a kind, that for once before that for ever."""
    wanted = (f"{kind}_once", f"{kind}_always")
    return next((it for name in wanted for it in question.options if it.kind == name), None)


class _Refusals:
    """Says to the agent why a file cannot be read or written."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, FileNotFoundError):
            raise FileMissing(f"There is no file {self._path}", {"path": self._path}) from None
        if isinstance(error, FileRefused):
            raise InvalidParams(str(error), {"path": self._path}) from None
        if isinstance(error, OSError):
            raise InvalidParams(f"{self._path}: {error.strerror}", {"path": self._path}) from None
