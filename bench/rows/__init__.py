"""All benchmarks, in the order of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.rows import (
    demo,
    durable,
    finding,
    folding,
    growth,
    helping,
    idling,
    items,
    lagging,
    long_line,
    mcp_flood,
    mcp_servers,
    receiving,
    relaying,
    replaying,
    round_trip,
    sending,
    serving,
    short_turns,
    stalled,
    starting,
    terminal_bytes,
    wrapping,
)

if TYPE_CHECKING:
    from bench.model import Benchmark

BENCHMARKS: tuple[Benchmark, ...] = (
    sending.BURST,
    sending.TICK,
    receiving.RECEIVE,
    folding.FOLD,
    round_trip.ASK,
    round_trip.ANSWER,
    starting.START,
    long_line.LONG_LINE,
    stalled.STALLED,
    relaying.RELAY,
    relaying.FOLLOWERS,
    *durable.STREAMS,
    short_turns.SHORT_TURNS,
    short_turns.TURN_CPU,
    short_turns.MANY_PROCESSES,
    growth.PYDANTIC_GROWTH,
    lagging.LAG,
    replaying.V2,
    replaying.V1,
    finding.PAGES,
    finding.SEARCH,
    idling.IDLE,
    items.APPEND,
    mcp_servers.CONNECT,
    mcp_flood.MCP_FLOOD,
    terminal_bytes.TERMINAL_BYTES,
    demo.DEMO_START,
    demo.DEMO_STREAM,
    helping.HELP,
    wrapping.WRAP,
    wrapping.WRAP_DELAY,
    wrapping.WRAP_START,
    wrapping.WRAP_IDLE,
    *serving.SERVING,
)
