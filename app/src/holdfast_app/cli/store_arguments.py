"""What commands on stored sessions share: the store they work on, and the sessions their arguments name."""

from __future__ import annotations

import functools
import os
import signal
import threading
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeAlias, TypeVar

import click

from holdfast_app.cli.completion import complete_sessions

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine

    from holdfast.model import Scope, SessionInfo
    from holdfast.store import SessionStore

P = ParamSpec("P")
T = TypeVar("T")

LOCAL = "local"
"""Whose sessions these commands see: those of the user of this machine, `holdfast.model.LOCAL`."""

SHORT = 10
"""So many characters of an id are shown: among a million sessions two with the same are unlikely."""

Decorator: TypeAlias = "Callable[[Any], Any]"
"""What adds an option or an argument to a command."""

store_option: Decorator = click.option(
    "--store",
    "place",
    metavar="ADDRESS",
    help="Where sessions are kept: a file, or postgresql://… (default: $HOLDFAST_STORE, or your data directory).",
)
json_option: Decorator = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
session_argument: Decorator = click.argument("session", shell_complete=complete_sessions)
sessions_argument: Decorator = click.argument("sessions", nargs=-1, required=True, shell_complete=complete_sessions)


def on_store(
    *, makes: bool = False
) -> Callable[[Callable[Concatenate[SessionStore, P], Awaitable[int | None]]], Callable[..., int | None]]:
    """Turn an async function into a command that is given the open store and has `--store` and `--json`."""

    def decorate(work: Callable[Concatenate[SessionStore, P], Awaitable[int | None]]) -> Callable[..., int | None]:
        @store_option
        @json_option
        @functools.wraps(work)
        def command(*args: Any, place: str | None, **kwargs: Any) -> int | None:
            async def on_it() -> int | None:
                async with opened(place, makes=makes) as store:
                    await _join_names(store)
                    return await work(store, *args, **kwargs)

            return run_async(on_it())

        return command

    return decorate


async def _join_names(store: SessionStore) -> None:
    """Let the sessions of each known agent have one name, and tell the user which did not."""
    from holdfast_app.known_agents import one_name  # noqa: PLC0415

    if all(one_name(scope.agent or "") == scope.agent for scope in await store.scopes()):
        return
    from holdfast_app.cli import output  # noqa: PLC0415
    from holdfast_app.cli.name_joining import join_names  # noqa: PLC0415  (once in the life of a store)

    for joined in await join_names(store):
        output.tell(f"holdfast: {joined}")


def _interrupt(_signal: int, _frame: object) -> None:
    raise KeyboardInterrupt


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine; Ctrl-C stops it at once, even while something blocks, as reading stdin does."""
    import asyncio  # noqa: PLC0415  (help needs none)

    in_main = threading.current_thread() is threading.main_thread()
    if in_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)  # that of asyncio's waits until something gives way
    return asyncio.run(work)


def is_there(place: str | None) -> bool:
    """Return whether there is a store. Raises `UsageError` if there is none where the user said there is."""
    from holdfast.errors import UsageError  # noqa: PLC0415
    from holdfast.store import default_address, file_of, is_postgres  # noqa: PLC0415

    address = place or default_address()
    if is_postgres(address):
        return True
    path = file_of(address)
    if path is None or path.exists():
        return True
    if place or os.environ.get("HOLDFAST_STORE"):
        raise UsageError(f"there is no session store at {path}; an agent that is run with it makes it")
    return False


@asynccontextmanager
async def opened(place: str | None, *, makes: bool = False) -> AsyncGenerator[SessionStore]:
    """Open the store while the block runs; one that does not exist yet is an empty one, unless the user named it."""
    from holdfast.store import open_store  # noqa: PLC0415

    store = await open_store(place if makes or is_there(place) else ":memory:")
    try:
        yield store
    finally:
        await store.close()


async def scope_of(store: SessionStore, agent: str | None) -> Scope:
    """Return whose sessions a command is about: all agents' or one's. Raises `UsageError` for an unknown agent."""
    from holdfast.errors import UsageError  # noqa: PLC0415
    from holdfast.model import Scope  # noqa: PLC0415

    if agent is not None:
        agent = await agent_called(store, agent)
        if agent not in (known := await store.agents(LOCAL)):
            named = ", ".join(known) or "none yet"
            raise UsageError(f"there are no sessions of an agent {agent[:80]!r}; there are sessions of: {named}")
    return Scope(LOCAL, agent)


async def agent_called(store: SessionStore, name: str) -> str:
    """Return the name that the sessions of an agent belong to, for any name that the user has for it.

    An agent of an author may be called as a known agent is elsewhere: a name that has sessions means itself.
    """
    from holdfast_app.known_agents import one_name  # noqa: PLC0415

    return name if name in await store.agents(LOCAL) else one_name(name)


async def find_session(store: SessionStore, name: str, *, archived: bool = False) -> SessionInfo:
    """Return the session that a name means: its id, the beginning of its id, or `last` for the newest here.

    With `archived`, `last` is the newest of those that were put away.
    """
    from holdfast.errors import UsageError  # noqa: PLC0415
    from holdfast.model import Scope  # noqa: PLC0415
    from holdfast.view.safe_text import safe_line  # noqa: PLC0415

    if name == "last":
        among = "only" if archived else "exclude"
        newest = (await store.list(Scope(), cwd=await here(store), archived=among, cursor=None, limit=1)).sessions
        if not newest:
            kind, flag = ("archived session", " --archived") if archived else ("session", "")
            raise UsageError(
                f"there is no {kind} of this directory; `holdfast sessions list --all{flag}` shows the others"
            )
        return newest[0]
    found = await store.find(name, limit=6)
    if not name.startswith("sess_"):
        found += await store.find(f"sess_{name}", limit=6)
    if (exact := next((info for info in found if info.id == name), None)) is not None:
        return exact
    if not found:
        raise UsageError(f"there is no session {name[:80]!r}; `holdfast sessions list --all` shows all of them")
    if len(found) > 1:
        meant = "\n".join(f"  {info.id}  {safe_line(info.title or '')[:50]}" for info in found[:5])
        more = "\n  …" if len(found) > 5 else ""
        raise UsageError(f"{name[:80]!r} is the beginning of several ids; write more of it:\n{meant}{more}")
    return found[0]


async def find_sessions(store: SessionStore, names: tuple[str, ...], *, archived: bool = False) -> list[SessionInfo]:
    """Return the sessions that names mean, each once; see `find_session`."""
    found = {info.id: info for name in names for info in [await find_session(store, name, archived=archived)]}
    return list(found.values())


async def here(store: SessionStore) -> str:
    """Return this directory as its sessions name it: as the system does, or as a shell that came through a link."""
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
    """Return a directory of the command line as sessions name it."""
    return None if path is None else os.path.abspath(path)  # noqa: PTH100  (links stay what they are)


def short_id(session: str) -> str:
    """Return the beginning of an id that is shown, and that commands understand."""
    return session.removeprefix("sess_")[:SHORT]
