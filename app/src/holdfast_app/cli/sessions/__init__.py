"""`holdfast sessions …`: what people do with stored sessions. One module a family of commands, loaded when used."""

from __future__ import annotations

import click

from holdfast_app.cli.lazy_group import LazyGroup

_HERE = "holdfast_app.cli.sessions"

COMMANDS = {
    "list": (f"{_HERE}.listing:list_", "List sessions, newest first: this directory's, or --all"),
    "show": (f"{_HERE}.show:show", "Show a session as a readable transcript"),
    "follow": (f"{_HERE}.follow:follow", "Watch a session that is open in some program, as it happens"),
    "search": (f"{_HERE}.search:search", "Find words in titles, messages, thoughts and tool calls"),
    "export": (f"{_HERE}.export_import:export", "Write a session as one file: Markdown, HTML or JSON"),
    "share": (f"{_HERE}.share:share", "Make a link with which others read a session, for a while"),
    "unshare": (f"{_HERE}.share:unshare", "Revoke such a link"),
    "import": (f"{_HERE}.export_import:import_", "Add sessions from files, or what an agent has kept itself"),
    "fork": (f"{_HERE}.modify:fork", "Begin a new session where another one was"),
    "hand-over": (f"{_HERE}.modify:hand_over", "Let another agent go on with a session"),
    "permissions": (f"{_HERE}.permissions:permissions", 'List what was allowed "always", and take it back'),
    "rename": (f"{_HERE}.modify:rename", "Give a session another title"),
    "archive": (f"{_HERE}.modify:archive", "Put sessions away, or take them out again"),
    "delete": (f"{_HERE}.modify:delete", "Delete sessions for good"),
    "copy": (f"{_HERE}.copy:copy", "Copy all sessions into another store, as into PostgreSQL"),
    "stats": (f"{_HERE}.stats:stats", "Count sessions, tokens, cost, and the space they take"),
    "vacuum": (f"{_HERE}.maintenance:vacuum", "Give back the space of what was deleted"),
    "doctor": (f"{_HERE}.maintenance:doctor", "Check the store, and explain what is found"),
}

HELP = """Work with stored sessions. Without a command: list those of this directory.

A SESSION is named by its id, by the beginning of its id, or by `last`: the newest of this directory.

\b
  holdfast sessions                         this directory's sessions
  holdfast sessions show last               the newest one, to read
  holdfast sessions follow last             the same, as it happens in your editor
  holdfast sessions search crash recovery   where these words were said, thought, or in what tools gave
  holdfast sessions export 3fa9 -o talk.html
  holdfast sessions share 3fa9 --for 2h     a link to read it, without its secrets
  holdfast sessions fork 3fa9 --at 12       go on from its twelfth entry, as `show` numbers them
  holdfast sessions hand-over 3fa9 --to claude   go on with it in another agent

Every command has --json: one JSON object on stdout. The status is 0, 1 after an error, 2 for wrong usage.
"""


class SessionsGroup(LazyGroup):
    """The group; what begins with an option is meant for `list`: `holdfast sessions --all --json`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Return what is left of the arguments for the command."""
        if not args or (args[0].startswith("-") and args[0] not in ("-h", "--help")):
            args = ["list", *args]
        return super().parse_args(ctx, args)


@click.group(cls=SessionsGroup, lazy=COMMANDS, help=HELP)
def sessions() -> None:
    """See HELP."""
