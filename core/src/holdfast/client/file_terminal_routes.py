"""The requests by which a version 1 agent uses files and terminals of its client (C11)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.client.file_requests import ReadTextFile, WriteTextFile

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.client.open_session import OpenSession
    from holdfast.client.services import Services
    from holdfast.peer import Routes


def add_file_routes(routes: Routes, services: Services, find_session: Callable[[object], OpenSession]) -> None:
    """Answer `fs/*`, if files are allowed; without a route they are refused as unknown methods."""

    async def read(params: ReadTextFile) -> object:
        return await services.read_file(find_session(params.session_id), params)

    async def write(params: WriteTextFile) -> object:
        return await services.write_file(find_session(params.session_id), params)

    if services.files is not False:
        routes.request("fs/read_text_file", read, ReadTextFile)
        routes.request("fs/write_text_file", write, WriteTextFile)


def add_terminal_routes(routes: Routes, services: Services, find_session: Callable[[object], OpenSession]) -> None:
    """Answer `terminal/*`, if terminals are allowed."""
    if not services.terminals:
        return
    from holdfast.client.terminals import CreateTerminal, TerminalParams, Terminals  # noqa: PLC0415  (few use them)

    async def create(params: CreateTerminal) -> object:
        return await services.terminals_of(find_session(params.session_id)).create(params)

    def with_terminal(method: Callable[[Terminals, TerminalParams], Any]) -> Callable[[TerminalParams], Any]:
        return lambda params: method(services.terminals_of(find_session(params.session_id)), params)

    routes.request("terminal/create", create, CreateTerminal)
    routes.request("terminal/output", with_terminal(Terminals.output), TerminalParams)
    routes.request("terminal/wait_for_exit", with_terminal(Terminals.wait_for_exit), TerminalParams)
    routes.request("terminal/kill", with_terminal(Terminals.kill), TerminalParams)
    routes.request("terminal/release", with_terminal(Terminals.release), TerminalParams)
