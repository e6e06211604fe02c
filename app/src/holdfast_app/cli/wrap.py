"""`holdfast wrap`: another agent on stdin and stdout, with sessions that hold."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING, NoReturn

from holdfast.diagnostics.logging_setup import start_logging
from holdfast.errors import UsageError
from holdfast.run.by_hand import tell_what_it_waits_for
from holdfast.server.host import Host
from holdfast.server.stdio import run_to_the_end, serve_stdio
from holdfast.store.address import store_mark
from holdfast_app.cli.agent_stderr import AgentStderr
from holdfast_app.wrap.launch import Launch
from holdfast_app.wrap.port import ProxyPort

if TYPE_CHECKING:
    import argparse

    from holdfast.diagnostics.wire_record import WireRecord
    from holdfast.store import SessionStore


EXIT_SECONDS = 0.25
"""When the client is gone the agent has so long to exit, and as long again once it is asked to: see A11."""


def wrap_agent(arguments: argparse.Namespace) -> NoReturn:
    """Serve until the client is gone."""
    command = tuple(arguments.command)
    if not command and sys.stdin.isatty():
        raise UsageError("wrap which agent? As in `holdfast wrap -- gemini --acp`; without one a conductor is expected")
    start_logging(
        arguments.log_level,
        agent=arguments.name or " ".join(command[:1]) or "wrap",
        store=arguments.store,
        file=arguments.log_file,
        format=arguments.log_format,
    )
    tell_what_it_waits_for(["--", *command], name=arguments.name, store=arguments.store)
    record = _record(arguments.record)
    launch = Launch(
        command,
        name=arguments.name,
        lost_context=arguments.on_lost_context,
        on_frame=record and record.between("holdfast", "agent"),
        on_stderr=AgentStderr().take,
        exit_seconds=EXIT_SECONDS,
        store_mark=store_mark(arguments.store),
    )
    on_frame = record and record.between("holdfast", "client")
    gc.freeze()
    gc.enable()

    async def serve() -> None:
        async with _port(launch, arguments) as port:
            host = Host(
                port, store=arguments.store, protocol=arguments.protocol, in_chain=not command, on_open=_join_names
            )
            await serve_stdio(host, on_frame=on_frame)

    run_to_the_end(serve())


async def _join_names(store: SessionStore) -> None:
    from holdfast_app.cli.name_joining import join_and_log  # noqa: PLC0415  (with the store, not before)

    await join_and_log(store)


def _port(launch: Launch, arguments: argparse.Namespace) -> ProxyPort:
    from holdfast.store.address import MEMORY  # noqa: PLC0415

    if not launch.command or arguments.store == MEMORY:
        return ProxyPort(launch)
    from holdfast_app.cli.remember import NotingPort, RememberingPort  # noqa: PLC0415

    return (RememberingPort if arguments.remember else NotingPort)(launch, arguments.store)


def _record(file: str | None) -> WireRecord | None:
    """Return the file that both sides of the wire are recorded in, if one is wanted."""
    if file is None:
        return None
    from holdfast.diagnostics.wire_record import WireRecord  # noqa: PLC0415  (seldom wanted)

    return WireRecord(file)
