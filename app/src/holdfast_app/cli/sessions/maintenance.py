"""`holdfast sessions vacuum` and `doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast_app.cli import output
from holdfast_app.cli.store_arguments import is_there, json_option, on_store, opened, run_async, store_option

if TYPE_CHECKING:
    from holdfast.store import Finding, SessionStore


@click.command("vacuum")
@on_store()
async def vacuum(store: SessionStore, *, as_json: bool) -> None:
    """Give back the space of what was deleted.

    Needs as much free space as the store takes, for a while; others wait when they want to write. Can be stopped
    without harm. PostgreSQL keeps the space for what is stored next, and nobody waits; VACUUM FULL gives it back to the
    system. With --json: {"before": bytes, "after": bytes, "reusable": bytes}.
    """
    before = await store.size()
    with output.working(f"Putting {output.size(before.used)} in order"):
        await store.vacuum()
    after = await store.size()
    reusable = 0 if after.shrinks else max(before.free - after.free, 0)
    if as_json:
        output.say(output.json_text({"before": before.used, "after": after.used, "reusable": reusable}))
    elif not after.shrinks:
        output.say(
            f"{output.size(after.used)} in the database; about {output.size(reusable)} of it was freed for reuse."
        )
    else:
        output.say(f"{output.size(before.used)} before, {output.size(after.used)} now.")


@click.command("doctor")
@click.option("--repair", is_flag=True, help="Put right what can be put right without losing anything.")
@store_option
@json_option
def doctor(*, repair: bool, place: str | None, as_json: bool) -> int:
    """Check the store and explain what is found: rights, damage, the search index, leftovers, who uses it, space.

    The status is 1 where there is a problem that is still there. With --json: {"findings": [{"about", "level": "ok" |
    "note" | "problem", "says", "advice", "repair"}, …], "repaired": […]}.
    """
    return run_async(_examined(place, repair=repair, as_json=as_json))


async def _examined(place: str | None, *, repair: bool, as_json: bool) -> int:
    from holdfast.errors import StoreError  # noqa: PLC0415
    from holdfast.store import Finding, default_address, shown_address  # noqa: PLC0415

    findings: list[Finding] = []
    repaired: list[str] = []
    paint = output.painter()
    if not as_json:
        output.say(paint(f"The session store {shown_address(place or default_address())}", bold=True))
    if not is_there(place):
        nothing = Finding("store", "ok", "There is none yet; an agent makes it when it runs for the first time")
        findings.append(nothing)
        _report(findings, repaired, as_json=as_json)
        return 0
    try:
        async with opened(place) as store:
            with output.working("Looking"):
                findings = [finding async for finding in store.examine()]
            if repair and any(finding.repair for finding in findings):
                with output.working("Repairing"):
                    repaired = [await store.repair(finding) for finding in findings if finding.repair]
                    findings = [finding async for finding in store.examine()]
    except StoreError as e:
        findings.append(Finding("store", "problem", str(e)))
    _report(findings, repaired, as_json=as_json)
    return 1 if any(finding.level == "problem" for finding in findings) else 0


def _report(findings: list[Finding], repaired: list[str], *, as_json: bool) -> None:
    from holdfast.view.safe_text import safe_line  # noqa: PLC0415

    if as_json:
        output.say(output.json_text({"findings": findings, "repaired": repaired}))
        return
    paint, width = output.painter(), output.width()
    signs = {"ok": ("✓", "green"), "note": ("·", "yellow"), "problem": ("✗", "red")}
    room = max((len(finding.about) for finding in findings), default=0)
    for finding in findings:
        sign, colour = signs[finding.level]
        lines = output.wrapped(safe_line(finding.says), width - room - 4 if width else None)
        if finding.advice:
            lines += output.wrapped(finding.advice, width - room - 4 if width else None)
        output.say(f"{paint(sign, fg=colour)} {output.padded(finding.about, room)}  {lines[0]}")
        for line in lines[1:]:
            output.say(" " * (room + 4) + line)
    for what in repaired:
        output.say(f"Repaired: {what}.")
    if any(finding.repair for finding in findings):
        output.say("`holdfast sessions doctor --repair` puts right what it can.")
