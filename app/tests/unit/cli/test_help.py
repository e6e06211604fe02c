"""What `--help` says, of every command."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast_app.cli.commands import holdfast

if TYPE_CHECKING:
    from collections.abc import Iterator


def every_command(command: click.Command, above: click.Context | None = None) -> Iterator[tuple[str, str]]:
    """Yield how each command is called, and its help."""
    # What is imported when it is used is so now; arguments that lack are no fault here.
    context = command.make_context(command.name, [], parent=above, resilient_parsing=True)
    yield context.command_path, context.get_help()
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            found = context.command.get_command(context, name)
            assert found is not None
            yield from every_command(found, context)


def test_examples_keep_their_lines() -> None:
    told = dict(every_command(holdfast))
    assert len(told) > 30
    assert not [name for name, text in told.items() if "\\b" in text]
    assert "\n    holdfast token list              who has tokens\n" in told["holdfast token"]
