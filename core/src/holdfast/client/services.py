"""What a client does for an agent that asks: answer permissions and forms, read and write files, run commands.

Everything is refused unless the program that connected allowed it. What is allowed stays in the session's directories
and ends with the session.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from holdfast.client.file_requests import file_errors_refused
from holdfast.model import ElicitationAnswer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from holdfast.client.file_requests import ReadTextFile, WriteTextFile
    from holdfast.client.open_session import OpenSession
    from holdfast.client.session import ClientSession
    from holdfast.client.terminals import Terminals
    from holdfast.model import Elicitation, Permission, PermissionOption
    from holdfast.workspace import Files, Workspace

log: logging.Logger = logging.getLogger(__name__)

Permissions: TypeAlias = (
    "Literal['deny', 'allow'] | Callable[[ClientSession, Permission], Awaitable[str | bool | None]]"
)
Questions: TypeAlias = (
    "Callable[[ClientSession | None, Elicitation], Awaitable[dict[str, Any] | ElicitationAnswer | None]] | None"
)
OnComplete: TypeAlias = "Callable[[Elicitation], Awaitable[None]] | None"
OnRequest: TypeAlias = "Callable[[str, Any], Awaitable[object]] | None"
OnNotification: TypeAlias = "Callable[[str, Any], Awaitable[None]] | None"


@dataclass(frozen=True, slots=True)
class Services:
    """What the program that connected allows, and how it answers; see `holdfast.connect` for the fields."""

    permissions: Permissions = "deny"
    questions: Questions = None
    files: bool | Sequence[str | Path] = False
    terminals: bool = False
    on_request: OnRequest = None
    on_notification: OnNotification = None
    on_complete: OnComplete = None

    async def answer_permission(self, session: OpenSession, question: Permission) -> PermissionOption | None:
        """Return the option that answers a permission request; None where nobody answered."""
        if self.permissions == "deny":
            return _option_of_kind(question, "reject")
        if self.permissions == "allow":
            return _option_of_kind(question, "allow")
        answer = await _until_withdrawn(session, self.permissions(session.public, question))
        if isinstance(answer, bool):
            return _option_of_kind(question, "allow" if answer else "reject")
        if answer is not None and question.chosen(answer) is None:
            offered = ", ".join(option.id for option in question.options)
            log.error("The answer to a permission request is none of the options (%s): %r", offered, answer)
        return question.chosen(answer)

    async def answer_elicitation(self, session: OpenSession | None, question: Elicitation) -> ElicitationAnswer:
        """Return the answer to a form or to an address that the user should visit."""
        if self.questions is None:
            return ElicitationAnswer("decline")
        answer = await _until_withdrawn(session, self.questions(None if session is None else session.public, question))
        if answer is None:
            return ElicitationAnswer("decline")
        return answer if isinstance(answer, ElicitationAnswer) else ElicitationAnswer("accept", answer)

    async def read_file(self, session: OpenSession, params: ReadTextFile) -> dict[str, str]:
        """Read a file for the agent."""
        with file_errors_refused(params.path):
            files = self._files(session)
            return {"content": await files.read_text(params.path, line=params.line, limit=params.limit)}

    async def write_file(self, session: OpenSession, params: WriteTextFile) -> dict[str, str]:
        """Write a file for the agent."""
        with file_errors_refused(params.path):
            await self._files(session).write_text(params.path, params.content)
        return {}

    def terminals_of(self, session: OpenSession) -> Terminals:
        """Return the commands that run for the agent in a session."""
        if session.terminals is None:
            from holdfast.client.terminals import Terminals  # noqa: PLC0415  (few agents run commands)

            session.terminals = Terminals(self._workspace(session))
        return session.terminals

    def _files(self, session: OpenSession) -> Files:
        if session.files is None:
            from holdfast.workspace import Files  # noqa: PLC0415  (few agents use files)

            session.files = Files(self._workspace(session))
        return session.files

    def _workspace(self, session: OpenSession) -> Workspace:
        """Return the directories of a session, which stay those that they were when they were first used (P9)."""
        if session.workspace is None:
            from holdfast.workspace import Workspace  # noqa: PLC0415

            given = () if isinstance(self.files, bool) else tuple(self.files)
            first, *others = given or (session.cwd, *session.additional)
            session.workspace = Workspace.resolve(first, others)
        return session.workspace


class OpenAsk:
    """An ask of the agent that is being answered, until there is an answer or its turn is cancelled."""

    def __init__(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._withdrawn = False

    def withdraw(self) -> None:
        """Stop answering: the ask ends without an answer."""
        if not self._withdrawn:
            self._withdrawn = True
            self._task.cancel()

    def was_withdrawn(self) -> bool:
        """Return whether a cancellation that has just been raised comes from `withdraw` and from nothing else."""
        return self._withdrawn and self._task.uncancel() == 0


async def _until_withdrawn(session: OpenSession | None, answering: Awaitable[Any]) -> Any:
    """Wait for an answer; return None if the ask is withdrawn or whatever should answer it fails."""
    ask = OpenAsk()
    asks: set[OpenAsk] = set() if session is None else session.asks
    asks.add(ask)
    try:
        return await answering
    except asyncio.CancelledError:
        if not ask.was_withdrawn():
            raise
        return None
    except Exception:
        log.exception("The function that should answer the agent failed; the agent gets no answer")
        return None
    finally:
        asks.discard(ask)


def _option_of_kind(question: Permission, kind: Literal["allow", "reject"]) -> PermissionOption | None:
    """Return an option of a kind; one that holds once is preferred to one that holds for ever."""
    kinds = (f"{kind}_once", f"{kind}_always")
    return next((option for wanted in kinds for option in question.options if option.kind == wanted), None)
