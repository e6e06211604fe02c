"""What `holdfast check` prints at the end: what did not pass, each thing once, numbers, and the verdict as the last."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from holdfast.view.safe_text import safe_line, safe_text
from holdfast_app.check.documents import AGAINST, MARKS, failed, number_table, untested, verdict
from holdfast_app.check.report import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast_app.check.documents import Finding
    from holdfast_app.check.report import Report

WORDS = {
    "--prompt-talk": "WORDS IT ANSWERS",
    "--prompt-tool": "WORDS ON WHICH IT USES A TOOL",
    "--prompt-ask": "WORDS ON WHICH IT ASKS FOR PERMISSION",
    "--prompt-long": "WORDS ON WHICH IT TALKS FOR SECONDS",
}
"""What stands for a prompt in the command to copy."""


def show(report: Report, arguments: Sequence[str], *, verbose: bool) -> None:
    """Print a report.

    Args:
        report: what came out.
        arguments: the command line behind ``holdfast``, for a command that does better.
        verbose: show the frames of what failed too.

    """
    _show_failed(report, verbose=verbose)
    _show_untested(report)
    if report.count(Outcome.PASSED):
        click.echo(f"\n{number_table(report)}", nl=False)
    if not verbose and any(row.frames for row in report.results):
        click.secho("\nTo see the frames of a failure: add --verbose --only ID, or --html FILE", dim=True)
    if not report.schemas:
        click.secho("\nNo frame was checked by a schema: pip install 'holdfast[check]'", dim=True)
    wanted, needing = report.wanted_prompts(), len(report.need_prompts())
    bad = bool(report.failures()) or report.was_stopped
    click.secho(f"\n{safe_line(verdict(report))}", bold=True, fg="red" if bad else "green")
    if wanted:
        need = "1 needs a prompt" if needing == 1 else f"{needing} need prompts"
        click.secho(f"{need}: run again with", fg="yellow")
        click.echo(f"  {again(arguments, wanted)}")


def _show_failed(report: Report, *, verbose: bool) -> None:
    for counts, head in ((True, "Failed"), (False, "Against advice: does not count")):
        found = [each for each in failed(report) if each.rows[0].counts_against is counts]
        if found:
            click.secho(f"\n{head}", bold=True)
        for each in found:
            rule = each.rows[0].requirement
            mark = click.style(MARKS[Outcome.FAILED], fg="red") if counts else click.style(AGAINST, fg="yellow")
            click.echo(f"  {mark} {rule.text} ({rule.id}, {each.versions}, {rule.tier})")
            _explain(each)
            for row in each.rows if verbose else ():
                for frame in (*row.frames, *row.stderr.splitlines()):
                    click.secho(f"      {safe_text(frame)}", dim=True)


def _show_untested(report: Report) -> None:
    found, lacking = untested(report), report.lacking()
    if found or lacking:
        click.secho("\nNot tested", bold=True)
    for each in found:
        ids = ", ".join(dict.fromkeys(row.id for row in each.rows))
        click.echo(f"  {click.style(MARKS[Outcome.NOT_TESTED], fg='yellow')} {ids} ({each.versions})")
        _explain(each)
    if lacking:
        mark = click.style(MARKS[Outcome.NOT_TESTED], fg="yellow")
        click.echo(f"  {mark} {len(lacking)} more, because these did not pass: {', '.join(report.roots())}")


def _explain(finding: Finding) -> None:
    click.secho(f"      {safe_line(finding.told)[:400]}", dim=True)


def again(arguments: Sequence[str], prompts: Sequence[str]) -> str:
    """Return the command line that was run, with other prompts to fill in."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    kept: list[str] = []
    own = iter(arguments[:end])
    for argument in own:
        if argument in prompts:
            next(own, None)
        elif argument.partition("=")[0] not in prompts:
            kept.append(argument)
    added = [part for prompt in prompts for part in (prompt, WORDS[prompt])]
    return shlex.join(["holdfast", *kept, *added, *arguments[end:]])
