"""`holdfast logs`: what went wrong in agents, with the traceback, found by the reference that a client was shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast_app.cli.store_arguments import json_option, store_option

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from holdfast.diagnostics.entries import LogEntry

LISTED = 20


@click.command("logs", short_help="Show what went wrong in an agent, with the traceback")
@click.argument("reference", required=False, metavar="[REF]")
@click.option(
    "-n", "--lines", "count", default=LISTED, show_default=True, help="List so many entries, the newest last."
)
@click.option("--agent", metavar="NAME", help="List only those of this agent, as it was named to `holdfast run`.")
@store_option
@json_option
def logs(reference: str | None, count: int, agent: str | None, place: str | None, *, as_json: bool) -> int:
    """Show what went wrong in an agent.

    Where a client says "The agent failed… (reference ref_…)", REF finds the traceback; its beginning is enough.
    `last` is the newest. Without REF the newest entries are listed.

    \b
      holdfast logs ref_8c1d2e3f
      holdfast logs last
      holdfast logs --agent weather.py

    Logs are kept in a file beside the store, at most 2 MiB of them. Keys that can be recognised are taken out.
    """  # noqa: D301  (where `\b` stands, click keeps the lines)
    from holdfast.diagnostics.log_file import read_log  # noqa: PLC0415  (help needs none)
    from holdfast.diagnostics.logging_setup import log_path  # noqa: PLC0415
    from holdfast.errors import UsageError  # noqa: PLC0415

    path = log_path(place)
    if path is None:
        raise UsageError("a store in memory has no log file")
    entries = [entry for entry in read_log(path) if agent is None or entry.agent == agent]
    if reference is not None:
        _show(_find(entries, reference, path), as_json=as_json)
        return 0
    _list(entries[-count:] if count > 0 else [], path, as_json=as_json)
    return 0


def _find(entries: list[LogEntry], reference: str, path: Path) -> LogEntry:
    """Return the newest entry that a reference, or its beginning, means. Raises `UsageError` if there is none."""
    from holdfast.errors import UsageError  # noqa: PLC0415

    if reference == "last" and entries:
        return entries[-1]
    wanted = (reference, f"ref_{reference}")
    found = next((entry for entry in reversed(entries) if entry.reference.startswith(wanted)), None)
    if found is None or not reference:
        raise UsageError(
            f"there is no entry {reference[:80]!r} in {path}. Another store has another log: --store FILE. "
            "An agent that logs elsewhere, or that somebody else started, has its log there"
        )
    return found


def _show(entry: LogEntry, *, as_json: bool) -> None:
    from holdfast.view.safe_text import safe_text  # noqa: PLC0415

    if as_json:
        _print_json([entry])
        return
    about = f"{entry.time}  {entry.level}  {entry.agent}  process {entry.process}"
    parts = (about, entry.message, entry.traceback)
    click.echo(safe_text("\n\n".join(part for part in parts if part)))


def _list(entries: list[LogEntry], path: Path, *, as_json: bool) -> None:
    from holdfast.diagnostics.tracebacks import author_part  # noqa: PLC0415
    from holdfast.view.safe_text import safe_line  # noqa: PLC0415

    if as_json:
        _print_json(entries)
        return
    if not entries:
        click.echo(f"Nothing is logged in {path}.")
    for entry in entries:
        name = entry.reference or "-"
        what = safe_line(author_part(entry.traceback).rpartition("\n")[2] or entry.message)
        click.echo(f"{safe_line(entry.time)}  {safe_line(entry.level):7}  {safe_line(entry.agent)}  {name:20}  {what}")


def _print_json(entries: Iterable[LogEntry]) -> None:
    from holdfast.diagnostics.entries import encode_entry  # noqa: PLC0415

    for entry in entries:
        click.echo(encode_entry(entry).decode().rstrip("\n"))
