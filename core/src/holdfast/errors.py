"""Every exception Holdfast raises, in one tree. Whose fault it is shows in the type.

::

    HoldfastError
    ├── RequestError          they asked for what we refuse; goes on the wire as it is
    │   ├── ParseError          -32700  not JSON
    │   ├── InvalidRequest      -32600  JSON, but no request, or not now
    │   │   ├── SessionBusy       its turn runs in another process
    │   │   ├── SessionMoved      another process has taken it over
    │   │   ├── SessionElsewhere  a living process has it, and can be asked for it: `owner`, `address`
    │   │   └── PositionLost      what came after that position is not kept any more
    │   ├── MethodNotFound      -32601
    │   ├── InvalidParams       -32602
    │   ├── InternalError       -32603  our fault, said without internals
    │   │   ├── MessageTooLarge   what we would have to send is longer than a line may be
    │   │   ├── ModelFailed       …or that of the model behind the agent, or of its provider
    │   │   └── StoreError        the store cannot do it
    │   │       ├── StoreFull       …for want of space
    │   │       ├── StoreDamaged    …because its file is damaged
    │   │       └── StoreTooNew     …because a newer Holdfast wrote it
    │   ├── AuthRequired        -32000  log in first
    │   ├── SessionNotFound     -32002
    │   ├── FileMissing         -32002  the file is not there
    │   ├── UnsupportedVersion  -32022
    │   ├── AgentRefused        a wrapped agent answered with an error, or died: its own code
    │   └── RequestCancelled    -32800
    ├── RemoteError           they refused what we asked: `code`, `message`, `data`, `reason`
    │   └── InvalidAnswer       …or answered something that does not fit the question
    ├── ConnectionLost        the other side went away while something waited for it
    │   ├── NeighbourLost       …or it is a process on the same store that cannot be reached, or does not answer
    │   ├── ProcessExited       …and it was a process we had started: `returncode`, `stderr`, `stdout`
    │   ├── ConnectionRefused   …or it never was there, or did not want us: `status` is that of HTTP, if it said one
    │   └── StartTimeout        …or it was started and did not answer `initialize` in time: `stderr`, `stdout`
    ├── MessageLost           they sent something that could not be read, so it is missing: `reasons`
    ├── FileRefused           a file of the session cannot be used that way; says what to do instead: `path`
    │   ├── OutsideRoots        the path leaves the session's directories, by itself or through a link
    │   ├── RootReplaced        a directory of the session is no longer the one that it was
    │   ├── FileTooLarge        there is more of it than may be read at once
    │   └── NotText             its bytes are not text in that encoding
    ├── McpError              an MCP server did not do what was asked of it: `server`
    │   ├── ServerUnavailable   it is not there: it failed to start, died, or was closed
    │   ├── ToolFailed          it answered with an error: `content` is what the tool said, if it said anything
    │   └── ToolTimeout         it did not answer in time
    └── UsageError            the program that uses Holdfast made a mistake
        └── TurnOver            …it speaks in a turn that has ended

`holdfast.peer.faults` is the one place that turns an exception into a JSON-RPC error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_REASON = 2_000
"""So many characters of the data of an error are quoted."""


class HoldfastError(Exception):
    """The root: catch it to catch everything Holdfast raises on purpose."""


class RequestError(HoldfastError):
    """The other side asked for something we refuse.

    Message and data are sent to it, so they must hold nothing it may not see.
    """

    code: int = -32603

    def __init__(self, message: str, data: object = None) -> None:
        super().__init__(message)
        self.message = message
        self.data = data


class ParseError(RequestError):
    """What arrived is not JSON."""

    code = -32700


class InvalidRequest(RequestError):
    """What arrived is JSON but no valid request, or comes at a moment when it may not."""

    code = -32600


class SessionBusy(InvalidRequest):
    """A turn of the session runs in another process, which is alive."""


class SessionMoved(InvalidRequest):
    """Another process has taken the session over; what this one wanted to write was refused."""


class SessionElsewhere(InvalidRequest):
    """A living process has the session. Clients of others are served through it."""

    def __init__(self, owner: str, address: str | None, epoch: int | None = None) -> None:
        """Name the owner in words, say where it listens, and the epoch of its claim."""
        super().__init__(f"This session is open in {owner}")
        self.owner = owner
        self.address = address
        self.epoch = epoch


class PositionLost(InvalidRequest):
    """What happened after a position is no longer kept event by event."""

    def __init__(self, position: object) -> None:
        super().__init__(f"What happened after {position} is no longer kept event by event; load the session again")


class MethodNotFound(RequestError):
    """Nobody here answers that method."""

    code = -32601


class InvalidParams(RequestError):
    """The method exists; its parameters do not fit it."""

    code = -32602


class InternalError(RequestError):
    """We failed. The message is safe to show; the details are in our log."""

    code = -32603


class MessageTooLarge(InternalError):
    """A message of ours would be longer than a line may be; nothing of it was sent."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"The message is too large: it has {size} bytes, a line may have {limit}")
        self.size = size
        self.limit = limit


class ModelFailed(InternalError):
    """The model behind the agent, or its provider, did not do its part. The message holds no key."""


class StoreError(InternalError):
    """The store cannot do what was asked; nothing of it was done."""


class StoreFull(StoreError):
    """There is no space left for it."""


class StoreDamaged(StoreError):
    """The store's file is damaged. Nothing was changed in it."""


class StoreTooNew(StoreError):
    """A newer Holdfast has written the store; this one would harm it."""


class AuthRequired(RequestError):
    """The user has to log in before this can be done."""

    code = -32000


class UnsupportedVersion(RequestError):
    """No protocol version is spoken on both sides."""

    code = -32022


class SessionNotFound(RequestError):
    """There is no such session, or no longer."""

    code = -32002

    def __init__(self, session_id: str) -> None:
        super().__init__(f"There is no session {session_id[:100]!r}", {"sessionId": session_id})


class FileMissing(RequestError):
    """There is no such file: what an agent that asks a client for one is told."""

    code = -32002


class AgentRefused(RequestError):
    """A wrapped agent answered with an error, or died: code, message and data are its own."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message, data)
        self.code = code


class RequestCancelled(RequestError):
    """The request was cancelled before it had a result."""

    code = -32800


class RemoteError(HoldfastError):
    """The other side answered our request with an error.

    `reason` is what `data` says beyond the message, as text: many agents write there what went wrong.
    """

    def __init__(self, code: int, message: str, data: object = None) -> None:
        self.reason: str = "" if code == AuthRequired.code and _names_logins(data) else reason_beyond(message, data)
        super().__init__(f"{message} ({code}): {self.reason}" if self.reason else f"{message} ({code})")
        self.code = code
        self.message = message
        self.data = data


class InvalidAnswer(RemoteError):
    """The other side answered our request with something that does not fit it."""

    def __init__(self, message: str) -> None:
        super().__init__(InternalError.code, message)


class ConnectionLost(HoldfastError):
    """The other side is gone; what was waiting for it will never be answered."""


class NeighbourLost(ConnectionLost):
    """A process on the same store cannot be reached, does not answer, or has left."""

    def __init__(self, message: str, *, hangs: bool = False) -> None:
        """Say why; `hangs` where the process is there and does not answer: to ask again would take as long."""
        super().__init__(message)
        self.hangs = hangs


class ProcessExited(ConnectionLost):
    """The process at the other end exited."""

    def __init__(self, command: str, returncode: int | None, stderr: str, stdout: str = "") -> None:
        """Say how it exited, and quote what it wrote last; `stdout` is what of it was no message."""
        self.how: str = _how_it_ended(returncode)
        """How it ended, as ``exited with status 1`` or ``was killed (signal 9)``."""
        super().__init__(f"{command} {self.how}{_last_words(stderr, stdout)}")
        self.command = command
        self.returncode = returncode
        self.stderr = stderr
        self.stdout = stdout


class ConnectionRefused(ConnectionLost):
    """The server cannot be reached, or does not let us in."""

    def __init__(
        self,
        message: str,
        status: int | None = None,
        headers: dict[str, str] | None = None,
        *,
        untrusted: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers: dict[str, str] = headers or {}
        """What the server's answer said, by names in small letters."""
        self.untrusted: bool = untrusted
        """Whether its certificate is not that of the server we wanted."""

    @property
    def is_final(self) -> bool:
        """Whether it would be refused again: it is not for want of a server that is there."""
        return self.untrusted or (self.status is not None and 400 <= self.status < 500)


class StartTimeout(ConnectionLost):
    """The program was started, and did not speak the protocol in time."""

    def __init__(self, command: str, stdout: str, stderr: str, seconds: float) -> None:
        waited = f"{command} was started and has not answered `initialize` for {seconds:g} seconds"
        super().__init__(f"{waited}{_last_words(stderr, stdout)}")
        self.stdout = stdout
        self.stderr = stderr


class MessageLost(HoldfastError):
    """The other side sent messages that could not be read: too long, no UTF-8, no JSON. What they said is missing."""

    def __init__(self, reasons: Sequence[str]) -> None:
        count = "A message" if len(reasons) == 1 else f"{len(reasons)} messages"
        super().__init__(f"{count} of the agent could not be read, so something is missing: {reasons[0]}")
        self.reasons: tuple[str, ...] = tuple(reasons)


class FileRefused(HoldfastError):
    """A file of the session cannot be used in that way, whatever the system would allow.

    What the system itself refuses stays what it is: `FileNotFoundError`, `PermissionError` and the rest.
    """

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path!r} {why}")
        self.path = path


class OutsideRoots(FileRefused):
    """The path leaves the session's directories, by itself or through a link."""


class RootReplaced(FileRefused):
    """A directory of the session is no longer the one that it was when the session was opened."""


class FileTooLarge(FileRefused):
    """There is more of the file than may be read at once."""


class NotText(FileRefused):
    """The file's bytes are not text in that encoding."""


class McpError(HoldfastError):
    """An MCP server did not do what was asked of it. The message holds none of its secrets."""

    def __init__(self, server: str, message: str) -> None:
        super().__init__(f"MCP server {server!r}: {message}")
        self.server = server
        self.message = message


class ServerUnavailable(McpError):
    """The server is not there: it failed to start, died, or was closed."""


class ToolFailed(McpError):
    """The server answered with an error."""

    def __init__(self, server: str, message: str, content: tuple[dict[str, Any], ...] = ()) -> None:
        super().__init__(server, message)
        self.content = content


class ToolTimeout(McpError):
    """The server did not answer in time."""


class UsageError(HoldfastError):
    """Holdfast was called in a way it cannot serve; the message says what to do instead."""


class TurnOver(UsageError):
    """Somebody speaks in a turn that has ended."""


def _how_it_ended(returncode: int | None) -> str:
    """Say how a process ended; 128 + n means signal n, as in a shell, and so does -n, as in Python."""
    if returncode is None:
        return "is gone"
    signal = -returncode if returncode < 0 else returncode - 128
    return f"was killed (signal {signal})" if 0 < signal <= 64 else f"exited with status {returncode}"


def _last_words(stderr: str, stdout: str) -> str:
    errors = without_chatter(stderr)
    if not errors and not stdout:
        return "; it wrote no error to stderr" if stderr else "; it wrote nothing to stderr"
    quoted = [f"it wrote to {name}:\n{text}" for name, text in (("stdout", stdout), ("stderr", errors)) if text]
    return "; " + "\n".join(quoted)


_CHATTER = r"""
    \(node:\d+\) | \(Use\ `node\ --trace-                                       # warnings of Node…
    | \S*:\d+:\ \w*Warning:                                                    # …and of Python
    | \[[\w./:-]+\]\ .*\bphase=                                                 # Claude's steps
    | [\d:.,TZ+/\ -]*(?:[\w.]+\ +-\ +)?\[?(?:TRACE|DEBUG|VERBOSE|INFO)(?![\w/-])  # logs
    | [\d:.,TZ+/\ -]*\[(?i:trace|debug|verbose|info|notice|perf)\]
    | .*\blevel=(?:trace|debug|info)\b | .*"level":\ ?"(?:trace|debug|info)"
"""


def without_chatter(stderr: str) -> str:
    """Return what a program wrote to stderr without its log below warnings and without warnings of its runtime.

    Args:
        stderr: what the program wrote; indented lines belong to the line before them.

    Returns:
        The lines that may say why it ended; an empty text if there are none.

    """
    import re  # noqa: PLC0415  (errors are rare)

    kept: list[str] = []
    is_chatter = False
    for line in stderr.splitlines():
        if not (is_chatter and line[:1] in (" ", "\t")):
            is_chatter = re.match(_CHATTER, line, re.VERBOSE) is not None
        if not is_chatter:
            kept.append(line)
    return "\n".join(kept).strip()


def reason_in(data: object) -> str:
    """Return what the data of an error says.

    Args:
        data: the `data` of a JSON-RPC error.

    Returns:
        A text in it where one is found, else all of it as JSON; an empty text where there is nothing.

    """
    if data in (None, {}, []):
        return ""
    reason = _find_text(data)
    if not reason:
        import json  # noqa: PLC0415  (errors are rare)

        reason = json.dumps(data, ensure_ascii=False, default=repr)
    return reason if len(reason) <= MAX_REASON else f"{reason[:MAX_REASON]}…"


def reason_beyond(message: str, data: object) -> str:
    """Return what the data of an error says that its message does not.

    Args:
        message: the `message` of a JSON-RPC error.
        data: its `data`.

    Returns:
        The text; an empty one where all that the data names stands in the message.

    """
    reason = reason_in(data)
    return "" if reason in message or _is_repeated(data, message) else reason


def _is_repeated(data: object, message: str) -> bool:
    """Return whether every text in data stands in a message, and there is nothing else: it is for programs then."""
    if isinstance(data, dict):
        return all(_is_repeated(value, message) for value in cast("dict[str, object]", data).values())
    if isinstance(data, list):
        return all(_is_repeated(value, message) for value in cast("list[object]", data))
    return isinstance(data, str) and data in message


def _names_logins(data: object) -> bool:
    """Return whether data has the ids of ways to log in and nothing else: those are for programs."""
    return isinstance(data, dict) and cast("dict[str, object]", data).keys() == {"methods"}


def _find_text(data: object) -> str:
    if isinstance(data, str):
        return data.strip()
    if not isinstance(data, dict):
        return ""
    members = cast("dict[str, object]", data)
    texts = (_find_text(members.get(name)) for name in ("reason", "details", "detail", "message", "error"))
    return next(filter(None, texts), "")
