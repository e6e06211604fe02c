"""The command line of `holdfast check`; the check itself is in `holdfast_app.check`, imported when needed."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from holdfast_app.cli.agent_command import AgentCommand, command_behind

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine

    from holdfast_app.check import CheckSettings, Report, Result, Target

HELP = """Check whether an agent keeps the promises of the protocol, and ours.

AGENT is a Python file that declares one (FILE or FILE:NAME), or `demo`, or `code`; any other is given by its command
behind `--`, or by its address. Each check starts it afresh in an empty directory.
With a real model this costs turns; `--model-server` starts a scripted one instead. Prompts for the demo, weather.py of
the README and the agents that `holdfast setup` knows are built in. If a prompt makes your agent do nothing, the last
line is the command to run again, with the prompts to fill in.

\b
  holdfast check weather.py --prompt-tool "How warm?"   your own agent, with what makes it do something
  holdfast check -- gemini --acp                        a verdict, and 0 or 1 as the status
  holdfast check --profile sessions -- my-agent         what users lose most often
  holdfast check --json r.json --html r.html -- my-agent
  holdfast check --baseline known.toml -- my-agent      for CI: fails on what is new, and on lines that are stale
  holdfast check --url wss://host/acp --token-file t    a remote agent
  holdfast check --compare a.json b.json                the matrix of several reports
  holdfast check --verbose --only load-ids -- my-agent  one rule again, with the frames
  holdfast check --client --json r.json                 the other way round: an agent that watches its client

Ctrl-C stops the run; the reports are written all the same, and say what was not run.

Status: 0 nothing failed, also if something could not be tested; 1 a rule or a promise failed; 2 the agent could not be
checked, or not to the end. What is merely advised never counts.
"""


_GROUPS = {
    "What is checked": ("profiles", "only", "protocol", "lists"),
    "The agent": ("variables", "cwd", "session_options", "model_server", "url", "token_file", "name"),
    "What makes it do something (some agents are known, see docs/check.md)": (
        "prompt_talk", "prompt_tool", "prompt_ask", "prompt_long", "prompt_think",
    ),
    "How long to wait": ("deadline", "exit_deadline", "quiet", "jobs"),
    "Reports": ("verbose", "json_file", "junit", "html", "markdown", "compare"),
    "What is known to fail, for CI": ("baseline", "write_baseline"),
}  # fmt: skip
"""The options by what they are about, as `--help` shows them; the others come last."""


class CheckCommand(AgentCommand):
    """Shows its many options in groups."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each group of options under its name."""
        options = (param for param in self.get_params(ctx) if isinstance(param, click.Option))
        left = {option.name: record for option in options if (record := option.get_help_record(ctx))}
        for title, names in _GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([left.pop(name) for name in names])
        with formatter.section("Other"):
            formatter.write_dl(list(left.values()))


_FILE = click.Path(dir_okay=False, path_type=Path)
_EXISTING = click.Path(dir_okay=False, exists=True, path_type=Path)


@click.command("check", cls=CheckCommand, help=HELP)
@click.argument("reports", nargs=-1, type=_FILE, metavar="[AGENT | -- COMMAND…]")
@click.option(
    "--profile",
    "profiles",
    multiple=True,
    help="spec, spec-v1, spec-v2, sessions, durability, hostile, mcp, client-services, remote, all; may be given "
    "several times (default: spec, sessions, durability, hostile).",
)
@click.option(
    "--only",
    multiple=True,
    metavar="ID",
    help="Check this requirement, and what it needs, instead of profiles; may be given several times.",
)
@click.option(
    "--protocol",
    type=click.Choice(["1", "2", "auto"]),
    default="auto",
    show_default=True,
    help="The version to check; auto is each that the agent speaks.",
)
@click.option(
    "--env",
    "variables",
    multiple=True,
    metavar="NAME=VALUE",
    help="A variable for the agent; may be given several times.",
)
@click.option("--name", default="", help="What to call the agent in reports (default: as it calls itself).")
@click.option("--url", help="The address of a remote agent: wss://host/acp, or https://host/acp.")
@click.option("--token-file", type=_EXISTING, help="The token for --url (default: as for `connect`).")
@click.option(
    "--cwd",
    metavar="PATH",
    help="The directory of all sessions, where the agent may not work in any: an absolute path, over there with --url "
    "(default: a fresh one for each check).",
)
@click.option(
    "--option",
    "session_options",
    multiple=True,
    metavar="ID=VALUE",
    help="An option of the agent's that is set in every new session, as mode=ask; may be given several times.",
)
@click.option("--prompt-talk", metavar="TEXT", help="Words on which the agent says something.")
@click.option("--prompt-tool", metavar="TEXT", help="…uses a tool.")
@click.option("--prompt-ask", metavar="TEXT", help="…asks for permission, each time.")
@click.option("--prompt-long", metavar="TEXT", help="…talks for some seconds, in pieces.")
@click.option("--prompt-think", metavar="TEXT", help="…shows its thoughts, if it has any.")
@click.option(
    "--deadline",
    type=click.FloatRange(0.1),
    default=60.0,
    show_default=True,
    help="Seconds for an answer or a turn. An agent that does not answer `initialize` in time is not asked again.",
)
@click.option(
    "--exit-deadline",
    type=click.FloatRange(0.1),
    default=10.0,
    show_default=True,
    help="Seconds for the exit once the input has ended.",
)
@click.option(
    "--quiet",
    type=click.FloatRange(0.01),
    default=0.5,
    show_default=True,
    help="What did not come after so many seconds does not come.",
)
@click.option("--jobs", type=click.IntRange(1, 32), default=1, show_default=True, help="So many agents at once.")
@click.option(
    "--schemas",
    type=click.Path(path_type=Path),
    help="The folder of an official TypeScript SDK, for its schemas (default: the installed Python SDK).",
)
@click.option("--json", "json_file", type=_FILE, help="Write the report as JSON.")
@click.option("--junit", type=_FILE, help="…as JUnit XML.")
@click.option("--html", type=_FILE, help="…as one HTML page.")
@click.option("--markdown", type=_FILE, help="…as a summary in Markdown.")
@click.option(
    "--baseline",
    type=_EXISTING,
    help="A list of what is known to fail (TOML): other failures fail the check, and so do lines that no longer fail.",
)
@click.option("--write-baseline", type=_FILE, help="Write what fails now as such a list, with what was seen.")
@click.option("--compare", is_flag=True, help="Print the matrix of the reports that follow.")
@click.option("--list", "lists", is_flag=True, help="Print what is required, and end.")
@click.option(
    "--client",
    is_flag=True,
    help="Be an agent on stdio, for a client's settings, and report what the client does wrong.",
)
@click.option(
    "--model-server",
    is_flag=True,
    help="Start a scripted model for the agent, which obeys the default prompts, and print the variables it gets. An "
    "agent that reads its model's address from a file: `python -m holdfast.testing.model_server --help`.",
)
@click.option("--verbose", is_flag=True, help="Show the frames of what failed, and every check in a log.")
@click.pass_context
def check(ctx: click.Context, /, **options: Any) -> int:
    """See HELP."""
    command = command_behind(ctx, None) or ()
    if options["lists"]:
        return _list()
    if options["compare"]:
        return _compare(options["reports"])
    if options["client"]:
        return _check_client(command, options)
    named = _named_agent(options["reports"])
    if bool(command) + bool(named) + (options["url"] is not None) != 1:
        raise click.UsageError("give a Python file with an agent, or a command behind `--`, or an address by --url")
    if not named:
        return _run(command, options)
    from tempfile import TemporaryDirectory  # noqa: PLC0415

    with TemporaryDirectory(prefix="holdfast-check-") as place:  # its sessions are none of the user's
        own = (sys.executable, "-m", "holdfast", "run", named, "--store", str(Path(place) / "sessions.db"))
        return _run(own, options)


def _files(options: dict[str, Any]) -> dict[str, Path]:
    """Return the files that reports are to be written to, by their form."""
    given = {name.removesuffix("_file"): options[name] for name in ("json_file", "junit", "html", "markdown")}
    return {name: path for name, path in given.items() if path is not None}


def _check_client(command: tuple[str, ...], options: dict[str, Any]) -> int:
    """Be an agent that watches its client."""
    given = [name for name in ("url", "baseline", "write_baseline", "model_server") if options[name]]
    if command or options["reports"] or given:
        said = "agent" if command or options["reports"] else f"--{given[0].replace('_', '-')}"
        raise click.UsageError(
            f"--client is an agent itself and takes no {said}: give it --json, --junit, --html, --markdown or --schemas"
        )
    _expect_folders(options)
    from holdfast_app.check.client_check import check_client  # noqa: PLC0415

    return check_client(_files(options), options["schemas"])


def _named_agent(names: tuple[Path, ...]) -> str:
    """Return the agent that a command line names without its command, by its whole path; empty where it names none."""
    from holdfast.agent_name import split_agent_name  # noqa: PLC0415

    if not names:
        return ""
    file, name = split_agent_name(str(names[0]))
    if len(names) > 1 or not (Path(file).is_file() or file in ("demo", "code")):
        told = " ".join(map(str, names))
        raise click.UsageError(f"there is no file {told}; any other agent is given by its command: -- {told}")
    if not Path(file).is_file():
        return file
    return f"{Path(file).absolute()}:{name}" if name else str(Path(file).absolute())


def _run(command: tuple[str, ...], options: dict[str, Any]) -> int:
    import asyncio  # noqa: PLC0415  (`--help` needs none of it)

    from holdfast.errors import UsageError  # noqa: PLC0415
    from holdfast_app.check.report import read_baseline  # noqa: PLC0415

    settings = _settings(options)
    _expect_folders(options)
    try:
        known = None if options["baseline"] is None else read_baseline(options["baseline"].read_bytes())
        report = asyncio.run(_until_told(lambda stop: _check(command, options, settings, stop)))
    except UsageError as e:
        raise click.UsageError(str(e)) from None
    _write(report, options)
    from holdfast_app.cli.check_report import show  # noqa: PLC0415

    show(report, sys.argv[1:], verbose=options["verbose"])
    if report.was_stopped:
        return 2
    if known is None:
        return 1 if report.failures() else 0
    difference = known.compare(report.results)
    for key in difference.new:
        click.echo(f"new failure: {key}")
    for key in difference.stale:
        click.echo(f"no longer fails, take it out of the baseline: {key}")
    return 1 if difference.new or difference.stale else 0


def _expect_folders(options: dict[str, Any]) -> None:
    """Say at once, not after many minutes, where a report cannot be written."""
    for name in ("json_file", "junit", "html", "markdown", "write_baseline"):
        if options[name] is not None and not options[name].absolute().parent.is_dir():
            raise click.UsageError(f"{options[name]} cannot be written: there is no directory {options[name].parent}")


async def _until_told(checking: Callable[[asyncio.Event], Coroutine[Any, Any, Report]]) -> Report:
    """Run until the end, or until Ctrl-C or SIGTERM comes (as CI sends it): the report then says how far the run came.

    What was started is ended first, always. The second signal ends without a report.
    """
    import asyncio  # noqa: PLC0415

    stop = asyncio.Event()
    task = asyncio.ensure_future(checking(stop))

    def told() -> None:
        if stop.is_set():
            task.cancel()
        stop.set()

    if sys.platform != "win32":
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, told)
    try:
        return await task
    except asyncio.CancelledError:
        raise click.Abort from None


def _settings(options: dict[str, Any]) -> CheckSettings:
    from holdfast_app.check import PROFILES, CheckSettings, Prompts  # noqa: PLC0415
    from holdfast_app.check.schemas import find_schemas  # noqa: PLC0415

    versions = (1, 2) if options["protocol"] == "auto" else (int(options["protocol"]),)
    profiles: list[str] = []
    for profile in options["profiles"] or ("spec", "sessions", "durability", "hostile"):
        name, _, version = profile.partition("-v")
        if profile == "all":
            profiles += [one for one in PROFILES if one != "remote" or options["url"] is not None]
        elif name == "spec" and version in ("1", "2"):
            versions = (int(version),)
            profiles.append(name)
        elif profile in PROFILES:
            profiles.append(profile)
        else:
            raise click.UsageError(f"there is no profile {profile!r}: {', '.join(PROFILES)}, spec-v1, spec-v2, all")
    given = {name: options[f"prompt_{name}"] for name in ("talk", "tool", "ask", "long", "think")}
    prompts = Prompts(**{name: text.strip() for name, text in given.items() if text is not None})
    if options["cwd"] is not None and not options["cwd"].startswith("/") and options["cwd"][1:2] != ":":
        raise click.UsageError(f"--cwd {options['cwd']!r} should be an absolute path")
    return CheckSettings(
        profiles=tuple(dict.fromkeys(profiles)), only=_known(options["only"]), versions=versions,
        prompts=prompts, cwd=options["cwd"],
        options=tuple(_pair("--option", given) for given in options["session_options"]),
        deadline=options["deadline"], exit_deadline=options["exit_deadline"], name=options["name"],
        quiet=options["quiet"], jobs=options["jobs"], schemas=find_schemas(options["schemas"]),
    )  # fmt: skip


def _known(ids: tuple[str, ...]) -> tuple[str, ...]:
    from holdfast_app.check.requirements import BY_ID  # noqa: PLC0415

    for id_ in ids:
        if id_ not in BY_ID:
            raise click.UsageError(f"there is no requirement {id_!r}; `holdfast check --list` prints all")
    return ids


async def _check(
    command: tuple[str, ...], options: dict[str, Any], settings: CheckSettings, stop: asyncio.Event
) -> Report:
    from holdfast_app.check import run_checks  # noqa: PLC0415

    variables = dict(_pair("--env", given) for given in options["variables"])
    remote = options["url"], options["token_file"]
    progress = _progress(verbose=options["verbose"])
    if not options["model_server"]:
        return await run_checks(_target(command, variables, *remote), settings, progress, stop)
    from holdfast.testing.model_server import ModelServer, obey  # noqa: PLC0415

    async with ModelServer(obey) as server:
        models = {
            "OPENAI_BASE_URL": f"{server.root}/v1", "OPENAI_API_KEY": "x", "ANTHROPIC_BASE_URL": server.root,
            "ANTHROPIC_API_KEY": "x", "GOOGLE_GEMINI_BASE_URL": server.root, "GEMINI_API_KEY": "x",
            "HOLDFAST_MODEL": "scripted", "HOLDFAST_BASE_URL": f"{server.root}/v1",
        }  # fmt: skip
        click.echo("The agent gets: " + " ".join(f"{name}={value}" for name, value in models.items()), err=True)
        return await run_checks(_target(command, {**models, **variables}, *remote), settings, progress, stop)


def _target(command: tuple[str, ...], variables: dict[str, str], url: str | None, token_file: Path | None) -> Target:
    from holdfast_app.check import CommandTarget  # noqa: PLC0415

    if url is None:
        return CommandTarget(command, variables)
    from holdfast_app.check.remote import UrlTarget  # noqa: PLC0415
    from holdfast_app.cli.connect import find_token  # noqa: PLC0415

    return UrlTarget(url, find_token(url, token_file))


def _pair(option: str, given: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not equals or not name:
        raise click.UsageError(f"{option} {given!r} should be NAME=VALUE")
    return name, value


def _progress(*, verbose: bool) -> Any:
    """Return what shows how far the run is: one line that changes on a terminal, one a check in a log if `verbose`."""
    if not sys.stderr.isatty():
        return _note if verbose else None

    def show(result: Result, number: int, total: int) -> None:
        sys.stderr.write(f"\r\x1b[K{number} of {total}  v{result.version} {result.id}: {result.outcome}")
        if number == total:
            sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()

    return show


def _note(result: Result, number: int, total: int) -> None:
    """Write a line about a check."""
    seconds = f"{result.seconds:.1f} s"
    click.echo(f"{number} of {total}  v{result.version} {result.id}: {result.outcome} ({seconds})", err=True)


def _write(report: Report, options: dict[str, Any]) -> None:
    from holdfast_app.check.report import baseline_of  # noqa: PLC0415
    from holdfast_app.check.written_reports import write_reports  # noqa: PLC0415

    write_reports(report, _files(options))
    if options["write_baseline"] is not None:
        options["write_baseline"].write_text(baseline_of(report), encoding="utf-8")


def _list() -> int:
    from holdfast_app.check import REQUIREMENTS  # noqa: PLC0415

    profile = None
    for row in REQUIREMENTS:
        if row.profile != profile:
            profile = row.profile
            click.secho(f"\n{profile}", bold=True)
        versions = "" if row.versions == (1, 2) else f", version {row.versions[0]} only"
        click.echo(f"  {row.id:26}{row.text} ({row.tier}; {row.source}{versions})")
    return 0


def _compare(files: tuple[Path, ...]) -> int:
    from holdfast.errors import UsageError  # noqa: PLC0415
    from holdfast_app.check.documents import matrix  # noqa: PLC0415
    from holdfast_app.check.report import from_json  # noqa: PLC0415

    if not files:
        raise click.UsageError("--compare wants the reports to compare, as files that --json wrote")
    reports: list[Report] = []
    for file in files:
        try:
            reports.append(from_json(file.read_bytes()))
        except (UsageError, OSError) as e:
            raise click.UsageError(f"{file} cannot be compared: {e}") from None
    click.echo(matrix(reports), nl=False)
    return 0
