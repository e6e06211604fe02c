"""`start_logging`: where a process that serves an agent logs to."""

from __future__ import annotations

import logging
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from holdfast.agent_name import split_agent_name
from holdfast.diagnostics.log_file import LogFile
from holdfast.errors import UsageError
from holdfast.tracing import TraceFilter

if TYPE_CHECKING:
    from types import TracebackType
    from typing import TextIO

LogFormat: TypeAlias = Literal["text", "json"]
LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]
LEVELS: tuple[LogLevel, ...] = ("debug", "info", "warning", "error")
FORMATS: tuple[LogFormat, ...] = ("text", "json")


def start_logging(
    level: LogLevel,
    *,
    agent: str,
    store: str | None,
    file: str | None = None,
    format: LogFormat = "text",
) -> None:
    """Log to stderr, or to a file, and what is a warning or worse also to the log file beside the store.

    Warnings of Python are logged like everything else; those about the author's own code are never left out.

    Args:
        level: what is less important is not written.
        agent: the agent, as the command line named it.
        store: the address of the store; None is the default one, and one in memory has no log file.
        file: log there instead of to stderr.
        format: a text to read, or one JSON object a line.

    Raises:
        UsageError: the file cannot be written.

    """
    try:
        stream = logging.StreamHandler(sys.stderr) if file is None else logging.FileHandler(file, encoding="utf-8")
    except OSError as e:
        raise UsageError(f"cannot log to {file}: {e.strerror}") from None
    stream.setFormatter(_JsonLines(agent) if format == "json" else TextLines(whole=level == "debug"))
    stream.setLevel(level.upper())
    root = logging.getLogger()
    root.setLevel(min(logging.WARNING, stream.level))
    for handler in (stream, LogFile(lambda: log_path(store), agent)):
        handler.addFilter(TraceFilter())
        root.addHandler(handler)
    _log_warnings(agent)


def log_path(store: str | None) -> Path | None:
    """Return the log file of a store: beside its file, or in the user's data directory where it has none.

    A store in memory has none: nobody could read it later.
    """
    from holdfast.store.address import MEMORY, data_directory, default_address, file_of  # noqa: PLC0415

    address = store or default_address()
    if address == MEMORY:
        return None
    try:
        database = file_of(address)
    except UsageError:  # whoever opens it will say so
        database = None
    if database is None:
        return data_directory() / "holdfast.log"
    real = database.resolve()  # whoever comes through a link finds the same file
    return real.with_name(f"{real.name}.log")


def _log_warnings(agent: str) -> None:
    """Let Python's warnings be logged, with the place and what to do about a forgotten `await`.

    Python leaves out that something is deprecated unless it is used in the main program; the agent's file is that. It
    tells of a line once in a process; a forgotten `await` is told of in every turn that has it, since each lacks what
    it should have said.
    """
    shown = logging.getLogger("py.warnings")
    module = Path(split_agent_name(agent)[0]).name.removesuffix(".py")
    if module.isidentifier():
        warnings.filterwarnings("default", category=DeprecationWarning, module=rf"{module}$")

    # Behind the others: what somebody has chosen with `-W` or PYTHONWARNINGS goes first.
    warnings.filterwarnings("always", message=".* was never awaited$", category=RuntimeWarning, append=True)

    def log_warning(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        del file, line
        said = str(message)
        hint = ": write `await` before it, or nothing happens" if said.endswith("was never awaited") else ""
        shown.warning("%s:%d: %s: %s%s", filename, lineno, category.__name__, said, hint)

    warnings.showwarning = log_warning


class TextLines(logging.Formatter):
    """Formats records as lines of text, with tracebacks that end in what was raised.

    The frames of Holdfast are only in the log file, and in tracebacks that are to be `whole`. What is logged may quote
    an agent or a client: keys are masked, control characters escaped, and further lines of a message indented, so that
    none of them looks like a record of its own.
    """

    def __init__(
        self, format: str = "%(asctime)s %(levelname)s %(name)s:%(trace)s %(message)s", *, whole: bool = False
    ) -> None:
        super().__init__(format)
        self._whole = whole

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as text that a log may hold."""
        from holdfast.diagnostics.masking import loggable  # noqa: PLC0415  (most log nothing)

        return loggable(super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  (the name is that of `logging`)
        """Return a record without its traceback."""
        return super().formatMessage(record).replace("\n", "\n    ")

    def formatException(  # noqa: N802  (the name is that of `logging`)
        self,
        ei: tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None],
    ) -> str:
        from holdfast.diagnostics.tracebacks import format_failure, format_for_author  # noqa: PLC0415  (most log none)

        if ei[1] is None:
            return ""
        return format_failure(ei[1]) if self._whole else format_for_author(ei[1])


class _JsonLines(logging.Formatter):
    """Formats records as entries of the log file are written."""

    def __init__(self, agent: str) -> None:
        super().__init__()
        self._agent = agent

    def format(self, record: logging.LogRecord) -> str:
        from holdfast.diagnostics.entries import encode_entry, entry_from  # noqa: PLC0415  (most log nothing)

        return encode_entry(entry_from(record, self._agent)).decode().rstrip("\n")
