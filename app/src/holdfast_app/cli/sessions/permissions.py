"""`holdfast sessions permissions`: what was allowed or rejected "always" in a session, and taking it back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast_app.cli import output
from holdfast_app.cli.store_arguments import find_session, on_store, session_argument, short_id

if TYPE_CHECKING:
    from holdfast.store import SessionStore


@click.command("permissions")
@session_argument
@click.option("--forget", is_flag=True, help="Take them back: the agent asks again.")
@click.option("--only", metavar="WORDS", help="With --forget: the one question that is listed with these words.")
@on_store()
async def permissions(store: SessionStore, *, session: str, forget: bool, only: str | None, as_json: bool) -> None:
    """List what you have allowed or rejected "always" in a SESSION; with --forget take it back.

    A session that some program has open is closed there first: the program knows the answers by heart. What a wrapped
    agent remembers by itself is not listed. With --json: {"sessionId", "permissions": [{"question", "allow"}, …],
    "forgotten": […]}.
    """
    from holdfast.errors import UsageError  # noqa: PLC0415

    if only is not None and not forget:
        raise UsageError("--only says what to --forget")
    info = await find_session(store, session)
    known = (await store.get(info.id)).state.permissions
    if only is not None and only not in known:
        raise UsageError(f"no answer is remembered for {only[:80]!r}; `permissions {short_id(info.id)}` lists them")
    forgotten = await _forget(store, info.id, only) if forget and known else {}
    if as_json:
        left = {question: allow for question, allow in known.items() if question not in forgotten}
        listed = {"permissions": _listed(left), "forgotten": _listed(forgotten)}
        output.say(output.json_text({"sessionId": info.id, **listed}))
    elif not known:
        output.say(f"Nothing was allowed or rejected for ever in {short_id(info.id)}.")
    elif forget:
        output.say(f"Forgot {output.plural(len(forgotten), 'answer')}; the agent asks again.")
    else:
        _show(known)


def _listed(answers: dict[str, bool]) -> list[dict[str, object]]:
    return [{"question": question, "allow": allow} for question, allow in answers.items()]


def _show(known: dict[str, bool]) -> None:
    from holdfast.view.safe_text import safe_line  # noqa: PLC0415

    for question, allow in known.items():
        output.say(f"{'allowed ' if allow else 'rejected'}  {safe_line(question)}")


async def _forget(store: SessionStore, session: str, only: str | None) -> dict[str, bool]:
    """Forget one answer or all; return those that were forgotten."""
    import msgspec  # noqa: PLC0415

    from holdfast.engine import claim_session  # noqa: PLC0415
    from holdfast.errors import SessionBusy, SessionElsewhere, UsageError  # noqa: PLC0415
    from holdfast.store import Changes  # noqa: PLC0415

    try:
        claim, record, _ = await claim_session(store, session, begins_entries=False, take_over=False)
    except (SessionBusy, SessionElsewhere) as e:
        raise UsageError(f"{e.message}; close it there, then try again") from None
    try:
        answers = record.state.permissions
        forgotten = {question: allow for question, allow in answers.items() if only in (None, question)}
        rest = {question: allow for question, allow in answers.items() if question not in forgotten}
        await store.save(claim, Changes(state=msgspec.structs.replace(record.state, permissions=rest)))
    finally:
        await store.release(claim)
    return forgotten
