"""`holdfast sessions stats`: how many sessions there are, what they take, and what they have cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from holdfast_app.cli import output
from holdfast_app.cli.store_arguments import on_store

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.store import AgentUsage, SessionStore, Stats


@click.command("stats")
@on_store()
async def stats(store: SessionStore, *, as_json: bool) -> None:
    """Count sessions, messages, tokens and cost, and the space they take.

    Tokens and cost are what agents told: of each session what its turns took together, and the cost that was told last.
    A session whose agent tells nothing counts as none. The cost of a fork may include what was spent before it began.

    With --json: {"sessions", "archived", "blank", "messages", "entries", "historyBytes", "texts", "oldest", "newest",
    "size": {"used", "free"}, "tokens": {"inputTokens": …}, "contextTokens", "cost": {"USD": …}, "agents": [{"agent",
    "model", "sessions", "messages", "tokens", "contextTokens", "cost"}, …], "directories": [{"cwd", "sessions",
    "messages", "updatedAt"}, …]}.
    """
    with output.working("Counting"):
        found = await store.stats()
    if as_json:
        output.say(output.json_text(_document(found)))
        return
    for row in output.columns(list(_totals(found))):
        output.say("  ".join(row))
    if found.agents:
        output.say()
        for line in _agents(found.agents):
            output.say(line)
    if found.directories:
        output.say()
        for line in _directories(found):
            output.say(line)


def _document(found: Stats) -> dict[str, Any]:
    from holdfast.document import times  # noqa: PLC0415

    tokens, context, cost = _all_usage(found.agents)
    return {
        "sessions": found.sessions,
        "archived": found.archived,
        "blank": found.blank,
        "messages": found.messages,
        "entries": found.entries,
        "historyBytes": found.history_bytes,
        "texts": found.texts,
        "oldest": None if found.oldest is None else times.written(found.oldest),
        "newest": None if found.newest is None else times.written(found.newest),
        "size": found.size,
        "tokens": tokens,
        "contextTokens": context,
        "cost": cost,
        "agents": [
            {
                "agent": row.agent,
                "model": row.model or None,
                "sessions": row.sessions,
                "messages": row.messages,
                "tokens": row.tokens,
                "contextTokens": row.context_tokens,
                "cost": row.cost,
            }
            for row in found.agents
        ],
        "directories": [
            {
                "cwd": row.cwd,
                "sessions": row.sessions,
                "messages": row.messages,
                "updatedAt": times.written(row.updated_at),
            }
            for row in found.directories
        ],
    }


def _all_usage(agents: Iterable[AgentUsage]) -> tuple[dict[str, int], int, dict[str, float]]:
    tokens: dict[str, int] = {}
    cost: dict[str, float] = {}
    context = 0
    for row in agents:
        context += row.context_tokens
        for kind, count in row.tokens.items():
            tokens[kind] = tokens.get(kind, 0) + count
        for currency, amount in row.cost.items():
            cost[currency] = cost.get(currency, 0) + amount
    return tokens, context, cost


def _totals(found: Stats) -> Iterator[tuple[str, str]]:
    yield "Sessions", f"{found.sessions:,}" + (f", {found.archived:,} archived" if found.archived else "")
    yield "Never prompted", f"{found.blank:,}"
    yield "Messages", f"{found.messages:,}"
    tokens, context, cost = _all_usage(found.agents)
    if tokens or context:
        yield "Tokens", _token_words(tokens, context)
    if cost:
        yield "Cost", _cost_words(cost)
    yield "Entries", f"{found.entries:,} ({output.size(found.history_bytes)})"
    yield "Texts to search", f"{found.texts:,}"
    empty = f", {output.size(found.size.free)} empty" if found.size.free else ""
    yield "On disk", output.size(found.size.used) + empty
    if found.oldest is not None and found.newest is not None:
        yield "Oldest", output.moment(found.oldest)
        yield "Last activity", output.moment(found.newest)


def _token_words(tokens: dict[str, int], context: int) -> str:
    named = {"inputTokens": "in", "outputTokens": "out", "thoughtTokens": "thought", "cachedReadTokens": "from cache"}
    parts = [f"{tokens[kind]:,} {word}" for kind, word in named.items() if tokens.get(kind)]
    if context:
        parts.append(f"{context:,} in contexts now")
    return ", ".join(parts)


def _cost_words(cost: dict[str, float]) -> str:
    from holdfast.view.safe_text import safe_line  # noqa: PLC0415

    return " + ".join(output.money(amount, safe_line(currency)[:8]) for currency, amount in sorted(cost.items()))


def _agents(agents: Iterable[AgentUsage]) -> Iterator[str]:
    from holdfast.view.safe_text import safe_line  # noqa: PLC0415

    heading = ("SESSIONS", "MESSAGES", "TOKENS", "COST", "AGENT", "MODEL")
    rows = [
        (
            f"{row.sessions:,}",
            f"{row.messages:,}",
            f"{row.tokens.get('totalTokens', 0):,}" if row.tokens else "-",
            _cost_words(row.cost) if row.cost else "-",
            safe_line(row.agent) or "-",
            safe_line(row.model) or "-",
        )
        for row in agents
    ]
    yield from _table(heading, rows, (True, True, True, True))


def _directories(found: Stats) -> Iterator[str]:
    from holdfast.view.safe_text import safe_line  # noqa: PLC0415

    rows = [
        (f"{row.sessions:,}", f"{row.messages:,}", output.ago(row.updated_at), safe_line(row.cwd))
        for row in found.directories
    ]
    yield from _table(("SESSIONS", "MESSAGES", "UPDATED", "DIRECTORY"), rows, (True, True))


def _table(heading: tuple[str, ...], rows: list[tuple[str, ...]], right: tuple[bool, ...]) -> Iterator[str]:
    first, *rest = output.columns([heading, *rows], right)
    yield output.painter()("  ".join(first), bold=True)
    for row in rest:
        yield "  ".join(row).rstrip()
