"""Agents on the official Python SDK get sessions that hold, by one line.

::

    from holdfast_app.acp_sdk import run_agent  # in the place of: from acp import run_agent

    asyncio.run(run_agent(MyAgent()))

The agent stays as it is, in this process. Between it and the client stand our sessions, as they do for an agent that is
wrapped (`holdfast wrap`): what is shown is stored before, load and list are ours, and an agent that has forgotten a
conversation, as after a restart, is told it again with the next prompt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine

    from holdfast_app.wrap.launch import LostContext


async def run_agent(
    agent: Any,
    *,
    name: str | None = None,
    store: str | None = None,
    protocol: Literal["1", "2", "auto"] = "auto",
    lost_context: LostContext = "seed",
    sdk: Callable[..., Coroutine[Any, Any, None]] | None = None,
    **options: Any,
) -> None:
    """Serve an agent of the official SDK on stdin and stdout until the client is gone.

    Args:
        agent: the agent, as `acp.run_agent` takes it.
        name: the name its sessions belong to; without one, what the agent calls itself.
        store: where sessions are kept: a path, or another address; by default the user's own store.
        protocol: which versions clients may speak, whatever the agent itself speaks.
        lost_context: what to do where the agent has forgotten a conversation: tell it again ("seed"), refuse to go on
            ("refuse"), or begin anew ("new").
        sdk: the SDK's own function, where it is not `acp.run_agent`: `acp.experimental.v2.run_agent` of the 1.0
            pre-releases, for agents that speak version 2.
        options: what else `acp.run_agent` takes, as `use_unstable_protocol`.

    Raises:
        UsageError: the SDK is not installed.

    """
    from holdfast.errors import UsageError  # noqa: PLC0415
    from holdfast.server import Host, serve_stdio  # noqa: PLC0415
    from holdfast_app.wrap.in_process import InProcessTransport  # noqa: PLC0415
    from holdfast_app.wrap.launch import Launch  # noqa: PLC0415
    from holdfast_app.wrap.port import ProxyPort  # noqa: PLC0415

    if sdk is None:
        try:
            from acp import run_agent as sdk  # noqa: PLC0415
        except ImportError:
            raise UsageError("the official SDK is not installed: pip install agent-client-protocol") from None
    serve_by_sdk: Callable[..., Coroutine[Any, Any, None]] = sdk

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await serve_by_sdk(agent, writer, reader, **options)

    async def open_agent(max_line: int) -> InProcessTransport:
        return await InProcessTransport.start(serve, max_line)

    launch = Launch((type(agent).__name__,), name=name, lost_context=lost_context, open=open_agent)
    async with ProxyPort(launch) as port:
        await serve_stdio(Host(port, store=store, protocol=protocol))
