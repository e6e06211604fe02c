"""The requests by which a version 1 agent has files and commands seen to by its client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.client.services import ReadFile, WriteFile

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.client.services import Services
    from holdfast.client.session import ClientSession
    from holdfast.peer import Routes


def errands(routes: Routes, services: Services, find: Callable[[object], ClientSession]) -> None:
    """Add what is allowed to the routes; what is not has none, and is refused as unknown."""

    async def read(it: ReadFile) -> object:
        return await services.read_file(find(it.session_id), it)

    async def write(it: WriteFile) -> object:
        return await services.write_file(find(it.session_id), it)

    if services.files is not False:
        routes.request("fs/read_text_file", read, ReadFile)
        routes.request("fs/write_text_file", write, WriteFile)
    if services.terminals:
        from holdfast.client.terminals import Create, OfTerminal, Terminals  # noqa: PLC0415  (few agents want them)

        async def create(it: Create) -> object:
            return await services.commands(find(it.session_id)).create(it)

        def of_terminal(method: Callable[[Terminals, OfTerminal], Any]) -> Callable[[OfTerminal], Any]:
            return lambda it: method(services.commands(find(it.session_id)), it)

        routes.request("terminal/create", create, Create)
        routes.request("terminal/output", of_terminal(Terminals.output), OfTerminal)
        routes.request("terminal/wait_for_exit", of_terminal(Terminals.wait_for_exit), OfTerminal)
        routes.request("terminal/kill", of_terminal(Terminals.kill), OfTerminal)
        routes.request("terminal/release", of_terminal(Terminals.release), OfTerminal)
