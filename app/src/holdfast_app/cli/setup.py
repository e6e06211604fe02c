"""`holdfast setup`: put an agent into an editor's settings, and take it out again."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holdfast.agent_name import name_of_command, split_agent_name
from holdfast.errors import UsageError
from holdfast_app.editor_setup import EDITORS, Entry, changes_made, plan_change, plan_undo
from holdfast_app.known_agents import KNOWN_AGENTS, installed_command, name_of_program, one_name

if TYPE_CHECKING:
    from holdfast_app.editor_setup import Change

HELP = f"""Put an agent into an editor's settings: shows what would change, and asks.

\b
  holdfast setup zed weather.py             your agent
  holdfast setup zed claude                 an agent that you have, wrapped, so that its sessions hold
  holdfast setup jetbrains -- gemini --acp  any other agent that speaks ACP, wrapped
  holdfast setup zed demo                   the agent that comes along; `code` is the coding agent
  holdfast setup zed --undo                 take back what was done last
  holdfast setup                            what was done so far

EDITOR is one of {", ".join(EDITORS)}. AGENT is a Python file, `code`, `demo`, or one of {", ".join(KNOWN_AGENTS)}.

Everything else in the file stays as it is, comments too. What was there before is kept beside your sessions."""


@click.command("setup", help=HELP, context_settings={"ignore_unknown_options": False})
@click.argument("editor", required=False, type=click.Choice(list(EDITORS)), metavar="[EDITOR]")
@click.argument("agent", nargs=-1, metavar="[AGENT | -- COMMAND]")
@click.option("--title", help="What the editor lists the agent under.")
@click.option("--name", help="The name its sessions belong to (default: what the agent calls itself).")
@click.option(
    "--file", "settings", type=click.Path(path_type=Path, dir_okay=False), help="The settings file, if it is elsewhere."
)
@click.option("--undo", is_flag=True, help="Take back the last change of this editor's settings.")
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def setup(
    editor: str | None,
    agent: tuple[str, ...],
    title: str | None,
    name: str | None,
    settings: Path | None,
    undo: bool,  # noqa: FBT001
    dry_run: bool,  # noqa: FBT001
    yes: bool,  # noqa: FBT001
) -> None:
    """See HELP."""
    if editor is None:
        return _list()
    if undo:
        if agent or title or name or settings:
            raise click.UsageError("--undo takes back what was done last; it needs the editor alone")
        return _undo(editor, dry_run=dry_run, yes=yes)
    if not agent:
        raise click.UsageError(f"Which agent? For instance: holdfast setup {editor} weather.py")
    chosen = EDITORS[editor]
    entry = _entry(agent, title, name, chosen.wrapped_title)
    if chosen.file is None:
        click.echo(chosen.value(entry), nl=False)
        return click.echo(chosen.after, err=True)
    change = plan_change(editor, settings or chosen.file(), (chosen.section, entry.title), chosen.value(entry))
    if change.replaces is not None and title is None:
        raise UsageError(
            f"{chosen.title} has an agent {entry.title!r} already, which starts another command: {change.replaces}; "
            f"give this one another --title, or --title {shlex.quote(entry.title)} to replace that one"
        )
    if change.is_nothing:
        return click.echo(f"{change.file} has it already.")
    if _agreed(change, dry_run=dry_run, yes=yes):
        backup = change.make()
        kept = f" As it was: {backup}." if backup is not None else ""
        click.echo(f"Done.{kept} To take it back: holdfast setup {editor} --undo\n{chosen.after}")
    return None


def _undo(editor: str, *, dry_run: bool, yes: bool) -> None:
    change = plan_undo(editor)
    if change is None:
        raise UsageError(f"nothing was set up for {EDITORS[editor].title} that could be undone")
    if change.is_nothing:
        change.make()
        return click.echo(f"{change.file} has it no longer.")
    if _agreed(change, dry_run=dry_run, yes=yes):
        change.make()
        click.echo(f"Done: {change.file} is as it was, but for what you have changed since.")
    return None


def _list() -> None:
    made = changes_made()
    for record in made:
        click.echo(f"{record['editor']:15} {record['path'][-1]}  ({record['file']})")
    if not made:
        click.echo("Nothing was set up yet. For instance: holdfast setup zed demo")


def _agreed(change: Change, *, dry_run: bool, yes: bool) -> bool:
    """Show what would change; return whether it shall be done."""
    for line in change.difference():
        colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
        click.secho(line, fg=colour)
    if dry_run:
        return False
    if yes:
        return True
    if not sys.stdin.isatty():
        raise UsageError("nobody is here to ask; add --yes, or --dry-run to look only")
    return click.confirm(f"\nChange {change.file}?", default=True)


def _entry(agent: tuple[str, ...], title: str | None, name: str | None, wrapped_title: str) -> Entry:
    """Return what an editor starts for an agent, with paths that hold wherever the editor is started."""
    first, rest = agent[0], agent[1:]
    file = split_agent_name(first)[0]
    file = file if file.endswith(".py") else ""
    if not rest and (file or first in ("code", "demo")):
        if file and not Path(file).is_file():
            raise UsageError(f"there is no {file} here")
        target = str(Path(file).absolute()) + first[len(file) :] if file else first
        called = name or (Path(file).stem if file else f"holdfast {first}")
        return Entry(title or called, (*_ourselves(), "run", *_name_option(name), target))
    known = KNOWN_AGENTS.get(one_name(first)) if not rest else None
    if known is not None:
        command = _found(installed_command(known))
        called, shown = name or one_name(first), known.title
    else:
        command = _found(agent)
        called, shown = name or name_of_program(agent), name or name_of_command(agent)
    return Entry(title or wrapped_title.format(shown), (*_ourselves(), "wrap", *_name_option(called), "--", *command))


def _name_option(name: str | None) -> tuple[str, ...]:
    """Return the option for the name that sessions belong to; without one it is what the agent calls itself."""
    return ("--name", name) if name is not None else ()


def _found(command: tuple[str, ...]) -> tuple[str, ...]:
    program = shutil.which(command[0])
    if program is None:
        raise UsageError(
            f"there is no program {command[0]} on this machine; name a Python file, or a command behind `--`"
        )
    return (str(Path(program).absolute()), *map(_in_any_directory, command[1:]))


def _in_any_directory(argument: str) -> str:
    """Return an argument of a command for editors, which start it elsewhere: a file that is here, by its whole path."""
    is_file = not argument.startswith("-") and Path(argument).suffix and Path(argument).is_file()
    return str(Path(argument).absolute()) if is_file else argument


def _ourselves() -> tuple[str, ...]:
    """Return how an editor starts us, which may not know the PATH of this terminal."""
    beside = Path(sys.executable).parent / ("holdfast.exe" if sys.platform == "win32" else "holdfast")
    if beside.is_file():
        return (str(beside),)
    found = shutil.which("holdfast")
    return (str(Path(found).absolute()),) if found else (sys.executable, "-m", "holdfast")
