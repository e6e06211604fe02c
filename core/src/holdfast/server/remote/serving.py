"""Run a `RemoteServer` on our own uvicorn: one port, one process, one loop with the engine."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import uvicorn

from holdfast.errors import UsageError
from holdfast.server.remote.direct import DOOR, DirectHttpProtocol, DirectWebSocketProtocol
from holdfast.server.remote.door import Door

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from holdfast.server.remote.application import RemoteServer
    from holdfast.server.remote.door import DoorLimits

log: logging.Logger = logging.getLogger(__name__)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; raise `UsageError` where that is not possible."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host.strip("[]"), port), family=family, backlog=1_024)
    except OSError as e:
        advice = "; choose another --port" if port else ""
        raise UsageError(f"cannot listen at {host}:{port}: {e.strerror or e}{advice}") from None


def our_uvicorn(app: Any, **settings: Any) -> uvicorn.Server:
    """Return a server for an application, with our protocols; what it needs to be told by `settings` of uvicorn."""
    chosen: dict[str, Any] = {"ws": DirectWebSocketProtocol, "http": DirectHttpProtocol, **settings}
    config = uvicorn.Config(
        app, lifespan="off", log_config=None, access_log=False, server_header=False, ws_ping_interval=None,
        ws_per_message_deflate=False, timeout_keep_alive=75, timeout_graceful_shutdown=3, **chosen,
    )  # fmt: skip
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    return server


def open_door(server: uvicorn.Server, listening: socket.socket, limits: DoorLimits | None = None) -> Door:
    """Let a server that has started take what comes in at a socket."""
    config, loop = server.config, asyncio.get_running_loop()

    def protocol() -> asyncio.Protocol:
        make: Any = config.http_protocol_class
        return make(config=config, server_state=server.server_state, app_state={}, _loop=loop)

    door = Door(listening, protocol, tls=config.ssl, limits=limits)
    setattr(config, DOOR, door)
    server.servers.append(cast("Any", door))
    return door


async def serve(
    server: RemoteServer,
    listening: socket.socket,
    *,
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
    on_ready: Callable[[], None] | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT; then drain (H8). A second signal ends it at once."""
    tls: dict[str, Any] = {} if tls_cert is None else {"ssl_certfile": tls_cert, "ssl_keyfile": tls_key}
    try:
        inner = our_uvicorn(server, **tls)
    except (OSError, ValueError) as e:  # ssl's errors among them
        raise UsageError(f"the certificate or its key cannot be used: {e}") from None
    ending = asyncio.Event()
    loop = asyncio.get_running_loop()
    signals = (signal.SIGTERM, signal.SIGINT)
    for number in signals:
        with suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, _end, ending)
    await inner.startup(sockets=[])
    server.door = open_door(inner, listening)
    ticking = loop.create_task(inner.main_loop(), name="uvicorn")
    if on_ready is not None:
        on_ready()
    try:
        await ending.wait()
    finally:
        log.info("Draining")
        await server.close(server.limits.grace)
        inner.should_exit = True
        await ticking
        await inner.shutdown()


def _end(ending: asyncio.Event) -> None:
    if ending.is_set():
        sys.stderr.write("Ended at once; what was said is stored.\n")
        import os  # noqa: PLC0415

        os._exit(1)
    ending.set()
