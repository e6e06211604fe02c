"""The options by which `list` and `search` say which sessions: of what directory, what agent, since when."""

from __future__ import annotations

import os
import re
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from holdfast_app.cli.store_arguments import absolute

if TYPE_CHECKING:
    from holdfast_app.cli.store_arguments import Decorator

_AGE = re.compile(r"(\d+)\s*(min|m|h|d|w|minutes?|hours?|days?|weeks?)")
_SECONDS = {"m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def _since(_ctx: click.Context, _param: click.Parameter, text: str | None) -> int:
    return 0 if text is None else parse_since(text)


def parse_since(text: str, now: float | None = None) -> int:
    """Return the moment that a user means, in microseconds since 1970: `3d`, `12h`, `yesterday`, `2026-11-01`.

    Raises `click.BadParameter` where it means none.
    """
    now = time.time() if now is None else now
    words = text.strip().lower()
    if found := _AGE.fullmatch(words):
        return max(0, int((now - int(found[1]) * _SECONDS[found[2][0]]) * 1e6))
    days = {"today": 0, "yesterday": 1}.get(words)
    try:
        if days is not None:
            midnight = datetime.fromtimestamp(now).astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
            return int((midnight.timestamp() - days * 86_400) * 1e6)
        return int(datetime.fromisoformat(text.strip()).timestamp() * 1e6)
    except (ValueError, OverflowError, OSError):
        raise click.BadParameter(f"{text[:80]!r} is no time; write 12h, 3d, 2w, yesterday, or 2026-11-01") from None


def area_options(archived_help: str) -> Decorator:
    """Add `--all`, `--cwd`, `--agent`, `--since` and `--archived` to a command."""
    options = (
        click.option("--all", "everywhere", is_flag=True, help="Sessions of every directory."),
        click.option(
            "--cwd",
            metavar="DIR",
            type=click.Path(file_okay=False),
            callback=absolute,
            help="Sessions of that directory instead of this one.",
        ),
        click.option("--agent", metavar="NAME", help="Only sessions of that agent."),
        click.option(
            "--since",
            metavar="WHEN",
            callback=_since,
            help="Only sessions with activity since then: 12h, 3d, 2w, yesterday, 2026-11-01.",
        ),
        click.option("--archived", is_flag=True, help=archived_help),
    )

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def with_home(path: str) -> str:
    """Return a path as people write it: their own directory as `~`."""
    home = os.path.expanduser("~")  # noqa: PTH111  (a text, not a path: it is only shown)
    return f"~{path[len(home) :]}" if path == home or path.startswith(home + os.sep) else path
