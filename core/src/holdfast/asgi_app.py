"""`asgi`: an agent as an ASGI application, to be served alone or mounted in another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.agent.port import AuthorAgent
from holdfast.engine import EngineLimits
from holdfast.server.host import Host
from holdfast.server.remote import Names, RemoteServer, Workspaces
from holdfast.store import EventWindow
from holdfast.store.address import default_address, directory_beside

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from holdfast.agent import Agent
    from holdfast.server.host import ProtocolChoice
    from holdfast.server.remote import Authenticator, RemoteLimits


def asgi(
    agent: Agent,
    *,
    authenticator: Authenticator,
    hosts: Iterable[str],
    origins: Iterable[str] = (),
    store: str | Path | None = None,
    protocol: ProtocolChoice = "auto",
    limits: RemoteLimits | None = None,
    path: str = "/acp",
    workspaces: Iterable[str] = (),
) -> RemoteServer:
    """Return an ASGI application that serves an agent over WebSocket and HTTP.

    ``async with`` it, or call its `close` when your application ends: an application that is mounted in another is not
    told by itself, and turns that run are to be ended in order.

    Args:
        agent: the agent.
        authenticator: tells who asks; `holdfast.server.remote.TokenFile` knows tokens, `Everybody` lets everybody in.
        hosts: the values of `Host` under which it may be asked, as ``agents.example.org`` or ``127.0.0.1:8000``.
        origins: origins of pages, besides its own, that may use it from a browser.
        store: where sessions are kept; by default where `holdfast run` keeps them.
        protocol: the versions to speak.
        limits: how much it takes from each principal.
        path: where the agent is, below what the application is mounted under.
        workspaces: the directories in which sessions may be opened; ``{principal}`` in one stands for who asks. Without
            any, each principal has a directory of its own beside the store.

    Returns:
        The application.

    """
    engine_limits = EngineLimits(keep_events=EventWindow())
    host = Host(
        AuthorAgent(agent),
        store=None if store is None else str(store),
        protocol=protocol,
        limits=engine_limits,
        name="a server",
    )
    own = directory_beside(default_address() if store is None else str(store)) / "workspaces"
    return RemoteServer(
        host,
        names=Names(hosts, origins),
        authenticator=authenticator,
        limits=limits,
        path=path,
        workspaces=Workspaces(workspaces, own=own),
    )
