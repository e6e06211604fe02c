"""What `fs/*` requests say, and how errors of files are told to whoever asked."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from holdfast.errors import FileMissing, FileRefused, InvalidParams, UsageError

if TYPE_CHECKING:
    from collections.abc import Generator


class ReadTextFile(msgspec.Struct, rename="camel"):
    """The parameters of `fs/read_text_file`."""

    session_id: str
    path: str
    line: int | None = None
    limit: int | None = None


class WriteTextFile(msgspec.Struct, rename="camel"):
    """The parameters of `fs/write_text_file`."""

    session_id: str
    path: str
    content: str


@contextmanager
def file_errors_refused(path: str) -> Generator[None]:
    """Turn the errors of reading and writing a file into errors that may be sent to the agent."""
    try:
        yield
    except FileNotFoundError:
        raise FileMissing(f"There is no file {path}", {"path": path}) from None
    except (FileRefused, UsageError) as e:  # UsageError: this system has no file tools
        raise InvalidParams(str(e), {"path": path}) from None
    except OSError as e:
        raise InvalidParams(f"{path}: {e.strerror}", {"path": path}) from None
