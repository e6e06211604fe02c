"""The store that a command works on, and the sessions that its arguments name."""

from __future__ import annotations

import functools
import os
import signal
import threading
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import click

from holdfast.cli.completion import complete_sessions

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine

    from holdfast.model import SessionInfo
    from holdfast.store import SessionStore

P = ParamSpec("P")
T = TypeVar("T")

SHORT = 10
"""So many characters of an id are shown: among a million sessions two with the same are unlikely."""

store_option = click.option(
    "--store",
    "place",
    metavar="FILE",
    help="Where sessions are kept (default: $HOLDFAST_STORE, or your data directory).",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
session_argument = click.argument("session", shell_complete=complete_sessions)
sessions_argument = click.argument("sessions", nargs=-1, required=True, shell_complete=complete_sessions)


def on_store(
    *, makes: bool = False
) -> Callable[[Callable[Concatenate[SessionStore, P], Awaitable[int | None]]], Callable[..., int | None]]:
    """Let an async function be a command: it gets the store, opened, and the options that every command has."""

    def decorate(work: Callable[Concatenate[SessionStore, P], Awaitable[int | None]]) -> Callable[..., int | None]:
        @store_option
        @json_option
        @functools.wraps(work)
        def command(*args: Any, place: str | None, **kwargs: Any) -> int | None:
            async def on_it() -> int | None:
                async with opened(place, makes=makes) as store:
                    return await work(store, *args, **kwargs)

            return run_async(on_it())

        return command

    return decorate


def _interrupt(_signal: int, _frame: object) -> None:
    raise KeyboardInterrupt


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run what is async. Who stops it need not wait for what blocks, as reading stdin does."""
    import asyncio  # noqa: PLC0415  (help needs none)

    in_main = threading.current_thread() is threading.main_thread()
    if in_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)  # that of asyncio's waits until something gives way
    return asyncio.run(work)


def is_there(place: str | None) -> bool:
    """Say whether there is a store; one that somebody names must be there."""
    from holdfast.errors import UsageError  # noqa: PLC0415
    from holdfast.store import default_address, file_of  # noqa: PLC0415

    path = file_of(place or default_address())
    if path is None or path.exists():
        return True
    if place or os.environ.get("HOLDFAST_STORE"):
        raise UsageError(f"there is no session store at {path}; an agent that is run with it makes it")
    return False


@asynccontextmanager
async def opened(place: str | None, *, makes: bool = False) -> AsyncGenerator[SessionStore]:
    """Open the store; one that is not there yet is as good as an empty one, unless somebody has said where it is."""
    from holdfast.store import open_store  # noqa: PLC0415

    store = await open_store(place if makes or is_there(place) else ":memory:")
    try:
        yield store
    finally:
        await store.close()


async def find_session(store: SessionStore, name: str) -> SessionInfo:
    """Find the session that is meant: by its id, by the beginning of one, or `last` for the newest here."""
    from holdfast.errors import UsageError  # noqa: PLC0415
    from holdfast.model import Scope  # noqa: PLC0415
    from holdfast.view.safe_text import safe_line  # noqa: PLC0415

    if name == "last":
        newest = (await store.list(Scope(), cwd=await here(store), archived="exclude", cursor=None, limit=1)).sessions
        if not newest:
            raise UsageError("there is no session of this directory; `holdfast sessions list --all` shows the others")
        return newest[0]
    found = await store.find(name, limit=6)
    if not name.startswith("sess_"):
        found += await store.find(f"sess_{name}", limit=6)
    if (exact := next((it for it in found if it.id == name), None)) is not None:
        return exact
    if not found:
        raise UsageError(f"there is no session {name[:80]!r}; `holdfast sessions list --all` shows all of them")
    if len(found) > 1:
        meant = "\n".join(f"  {it.id}  {safe_line(it.title or '')[:50]}" for it in found[:5])
        more = "\n  …" if len(found) > 5 else ""
        raise UsageError(f"{name[:80]!r} is the beginning of several ids; write more of it:\n{meant}{more}")
    return found[0]


async def find_sessions(store: SessionStore, names: tuple[str, ...]) -> list[SessionInfo]:
    """Find the sessions that are meant, each once."""
    found = {it.id: it for name in names for it in [await find_session(store, name)]}
    return list(found.values())


async def here(store: SessionStore) -> str:
    """Say how sessions of this directory name it: as the system does, or as a shell that went there through a link."""
    from holdfast.model import Scope  # noqa: PLC0415

    path, shell = _names_of_here()
    if shell != path:
        page = await store.list(Scope(), cwd=path, archived="include", cursor=None, limit=1)
        return path if page.sessions else shell
    return path


def _names_of_here() -> tuple[str, str]:
    path, shell = os.getcwd(), os.environ.get("PWD", "")  # noqa: PTH109  (as it is written in the store)
    is_same = os.path.isabs(shell) and Path(shell).exists() and Path(shell).samefile(path)  # noqa: PTH117
    return path, shell if is_same else path


def absolute(_ctx: click.Context, _param: click.Parameter, path: str | None) -> str | None:
    """Make a directory that is named on the command line what a session would call it."""
    return None if path is None else os.path.abspath(path)  # noqa: PTH100  (links stay what they are)


def short_id(session: str) -> str:
    """Shorten an id to what is shown, and is understood."""
    return session.removeprefix("sess_")[:SHORT]
