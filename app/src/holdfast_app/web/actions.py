"""What a user does with a session: one POST each, ``/sessions/ID/NAME``, JSON in and out.

============ ============================================ ============================================================
name         takes                                        answers
============ ============================================ ============================================================
prompt       prompt: content blocks, request: a name      message: the id of the message, once it is in line
cancel                                                    withdrawn: the prompts that were in line
withdraw     message: of a prompt in line                 withdrawn: that prompt, or nothing where it was too late
answer       question, option | action and content        answered: whether it was the first
option       option, value
rename       title
archive
unarchive
delete                                                    undo: how many seconds there are for `undelete`
undelete                                                  undone
fork         entry (all of it without one)                session, href
resend       entry: my message, prompt, request           session, href: a fork that goes on with another prompt
hand-over    agent
seen
logins                                                    login: the ways to log in to its agent
share        seconds, secrets: whether to show them       path: of the link, shown this once, id, until, redacted
shares                                                    links: those that lead to it
unshare      link: its id
============ ============================================ ============================================================

``POST /login`` takes an agent and one of its methods. What an agent refuses because the user has to log in is answered
with ``login``: the agent, its title, and the ways to log in that it offers.

A prompt of the same `request` is taken once, so that it can be sent again when it is not known whether it arrived.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from holdfast.engine import claim_session
from holdfast.errors import HoldfastError, RequestError, SessionNotFound
from holdfast.format import fork_note
from holdfast.model import ElicitationAnswer, Scope, checked_cwd, forked, new_session_id
from holdfast.store import Claim
from holdfast_app.share_links.pages import PREFIX as SHARED
from holdfast_app.web.history_pages import read_lines
from holdfast_app.web.logins import login_refusal, wants_login, ways_to_log_in
from holdfast_app.web.requests import PageError, json_answer, read_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from holdfast.model import SessionInfo
    from holdfast.server.access import Access
    from holdfast_app.share_links import ShareLink, ShareLinks
    from holdfast_app.web.agents import PageAgent
    from holdfast_app.web.principal import Desk
    from holdfast_app.web.requests import Answer, PageRequest, Receive


TALKING = frozenset({"prompt", "cancel", "withdraw", "answer", "option", "resend"})
"""What makes an agent work, or lets it."""


class Body(msgspec.Struct):
    """What actions take."""

    prompt: list[dict[str, Any]] = []
    request: str | None = None
    question: str = ""
    option: str | None = None
    action: Literal["accept", "decline", "cancel"] | None = None
    content: dict[str, Any] | None = None
    value: str | bool = ""
    title: str = ""
    agent: str = ""
    method: str = ""
    cwd: str = ""
    entry: str | None = None
    seconds: float = 0
    secrets: bool = False
    link: str = ""
    message: str = ""


class Actions:
    """Does what users ask for."""

    def __init__(self, desk: Desk, credential: str = "") -> None:
        """Do it on behalf of whoever showed a credential: what it makes for others ends with that one."""
        self._desk = desk
        self._credential = credential
        self._actions: dict[str, Callable[[SessionInfo, Body], Awaitable[object]]] = {
            "prompt": self._prompt,
            "cancel": self._cancel,
            "withdraw": self._withdraw,
            "answer": self._answer,
            "option": self._option,
            "rename": self._rename,
            "archive": self._archive,
            "unarchive": self._unarchive,
            "delete": self._delete,
            "undelete": self._undelete,
            "fork": self._fork,
            "resend": self._resend,
            "hand-over": self._hand_over,
            "seen": self._seen,
            "logins": self._logins,
            "share": self._share,
            "shares": self._list_shares,
            "unshare": self._unshare,
        }

    async def do(self, name: str, session: str, request: PageRequest, receive: Receive) -> Answer:
        """Do one thing with a session."""
        action = self._actions.get(name)
        if action is None:
            raise PageError(404, "There is no such action")
        info = await self._desk.find(session, request.principal)
        if name in TALKING:
            await _refusals(self._check_may_talk(info, request.access))
        body = await read_json(receive, request, Body)
        work = self._or_login(self._desk.agent_of(info), request.principal, action(info, body))
        return json_answer(await _refusals(work) or {})

    async def create(self, request: PageRequest, receive: Receive) -> Answer:
        """Create a session with an agent, in a directory."""
        body = await read_json(receive, request, Body)
        agent = self._desk.agents.known().get(body.agent)
        if agent is None:
            raise PageError(400, f"The page may not start an agent {body.agent[:80]!r}; see `holdfast web add --help`")
        creating = self._or_login(agent, request.principal, self._create(agent, request, body.cwd))
        session = await _refusals(creating)
        return json_answer({"session": session, "href": f"/sessions/{session}"})

    async def log_in(self, request: PageRequest, receive: Receive) -> Answer:
        """Log the principal in to an agent, by one of the ways it offers."""
        body = await read_json(receive, request, Body)
        agent = self._desk.agents.known().get(body.agent)
        if agent is None:
            raise PageError(400, f"The page may not start an agent {body.agent[:80]!r}; see `holdfast web add --help`")
        await _refusals(agent.log_in(body.method, request.principal))
        return json_answer({})

    async def _or_login(self, agent: PageAgent | None, principal: str, work: Awaitable[Any]) -> Any:
        """Do some work; where its agent wants a login first, refuse with the ways to log in."""
        try:
            return await work
        except HoldfastError as e:
            if agent is None or not wants_login(e):
                raise
            raise await login_refusal(agent, principal, e) from None

    async def _create(self, agent: PageAgent, request: PageRequest, cwd: str) -> str:
        request.access.check(checked_cwd(cwd), ())
        return await self._desk.create(agent, request.principal, cwd)

    # Talking

    async def _prompt(self, info: SessionInfo, body: Body) -> object:
        async with self._desk.watching(info) as watched:
            return {"message": await watched.prompt(body.prompt, body.request)}

    async def _cancel(self, info: SessionInfo, _: Body) -> object:
        """Stop the agent; what waited for it is given back."""
        async with self._desk.watching(info) as watched:
            return {"withdrawn": await watched.line.withdraw(await watched.open_to_talk())}

    async def _withdraw(self, info: SessionInfo, body: Body) -> object:
        async with self._desk.watching(info) as watched:
            return {"withdrawn": await watched.line.withdraw(await watched.open_to_talk(), body.message)}

    async def _answer(self, info: SessionInfo, body: Body) -> object:
        async with self._desk.watching(info) as watched:
            asked = watched.questions.get(body.question)
            if asked is None or asked.answer.done():
                return {"answered": False}
            answer = body.option if body.action is None else ElicitationAnswer(body.action, body.content)
            asked.answer.set_result(answer)
            return {"answered": True}

    async def _option(self, info: SessionInfo, body: Body) -> None:
        async with self._desk.watching(info) as watched:
            await (await watched.open_to_talk()).set_option(body.option or "", body.value)

    async def _check_may_talk(self, info: SessionInfo, access: Access) -> None:
        """Refuse where the agent may not be started here, or the principal may not work in these directories (H10)."""
        if self._desk.agent_of(info) is None:
            raise PageError(403, f"You can only read sessions of {info.agent or 'no agent'} here")
        access.check(info.cwd, info.additional)

    # Keeping order

    async def _rename(self, info: SessionInfo, body: Body) -> None:
        title = " ".join(body.title.split())[:500] or None
        if (engine := self._desk.engine_having(info)) is not None:
            await engine.rename(info.id, title, scope=_scope(info))
        else:
            await self._desk.library.edit(info.id, title=title)

    async def _archive(self, info: SessionInfo, _: Body) -> None:
        if (engine := self._desk.engine_having(info)) is not None:
            await engine.archive(info.id, archived=True, scope=_scope(info))
        else:
            await self._desk.library.edit(info.id, archived=True)

    async def _unarchive(self, info: SessionInfo, _: Body) -> None:
        await self._desk.library.edit(info.id, archived=False)

    async def _delete(self, info: SessionInfo, _: Body) -> object:
        self._desk.deletions.add(info.id)
        return {"undo": self._desk.deletions.seconds}

    async def _undelete(self, info: SessionInfo, _: Body) -> object:
        return {"undone": self._desk.deletions.undo(info.id)}

    async def _seen(self, info: SessionInfo, _: Body) -> None:
        self._desk.marks.mark(info.principal, info)

    async def _logins(self, info: SessionInfo, _: Body) -> object:
        agent = self._desk.agent_of(info)
        return {} if agent is None else await ways_to_log_in(agent, info.principal)

    async def _hand_over(self, info: SessionInfo, body: Body) -> None:
        known = {*self._desk.agents.known(), *await self._desk.library.agents(info.principal)}
        if body.agent not in known:
            raise PageError(400, f"There is no agent {body.agent[:80]!r}")
        await self._desk.library.hand_over(info.id, body.agent)

    # Sharing

    def _shares(self) -> ShareLinks:
        if self._desk.shares is None:
            raise PageError(404, "Sessions cannot be shared here: this server keeps nothing")
        return self._desk.shares

    async def _share(self, info: SessionInfo, body: Body) -> object:
        secret, link = self._shares().add(
            info.id, info.principal, body.seconds, redacts=not body.secrets, credential=self._credential
        )
        return {"path": f"{SHARED}{secret}", **_described(link)}

    async def _list_shares(self, info: SessionInfo, _: Body) -> object:
        return {"links": [_described(link) for link in self._shares().links(info.principal, info.id)]}

    async def _unshare(self, info: SessionInfo, body: Body) -> None:
        for link in self._shares().links(info.principal, info.id):
            if link.id == body.link:
                self._shares().revoke(link)

    # Forks

    async def _fork(self, info: SessionInfo, body: Body) -> object:
        fork = await self._make_fork(info, body.entry)
        return {"session": fork, "href": f"/sessions/{fork}"}

    async def _resend(self, info: SessionInfo, body: Body) -> object:
        """Fork before a message of the user, and go on there with another one."""
        before = await self._key_before(info, body.entry or "")
        agent = self._desk.agent_of(info)
        assert agent is not None
        if before is None:
            fork = await self._desk.create(agent, info.principal, info.cwd)
        else:
            fork = await self._make_fork(info, before)
        found = await self._desk.find(fork, info.principal)
        async with self._desk.watching(found) as watched:
            await watched.prompt(body.prompt, body.request)
        return {"session": fork, "href": f"/sessions/{fork}"}

    async def _key_before(self, info: SessionInfo, key: str) -> str | None:
        """Return the id of the last message or tool call before a message; None where it is the first.

        Raise `PageError` where there is no such message.
        """
        from holdfast.format import event_in  # noqa: PLC0415

        library = self._desk.library
        before: str | None = None
        async for line in read_lines(library, info.id, 0, (await library.get(info.id)).lines):
            event = event_in(line)
            if event.rule.key not in ("messageId", "toolCallId"):
                continue
            if event.key == key:
                return before
            before = event.key
        raise PageError(404, "This message is not stored yet; wait until the turn has ended")

    async def _make_fork(self, info: SessionInfo, up_to: str | None) -> str:
        """Fork a session, whoever has it: nothing of it is written."""
        library = self._desk.library
        seen = await library.snapshot(info.id)
        if seen.unsealed is not None and seen.unsealed.running_in is None:
            claim, *_ = await claim_session(library, info.id, begins_entries=False)  # its turn broke: it is ended first
            await library.release(claim)
            seen = await library.snapshot(info.id)
        record = seen.record
        source = msgspec.structs.replace(record.info, additional=())
        fork, state = forked(source, record.state, fork_id=new_session_id(), now=time.time_ns() // 1_000)
        if up_to is not None:
            state.background = ()
        made = await library.fork(Claim(info.id, record.epoch), fork, state, up_to=up_to, lines=[], earlier=fork_note())
        await library.release(made.claim)
        return fork.id


def _described(link: ShareLink) -> dict[str, object]:
    until = datetime.fromtimestamp(link.until, UTC).isoformat().replace("+00:00", "Z")
    return {"id": link.id, "until": until, "redacted": link.redacts}


def _scope(info: SessionInfo) -> Scope:
    return Scope(info.principal, info.agent or None)


async def _refusals(work: Awaitable[Any]) -> Any:
    """Return what something returns; make of what it refuses an answer that a person can read."""
    try:
        return await work
    except SessionNotFound:
        raise PageError(404, "There is no such session") from None
    except RequestError as e:
        raise PageError(400, e.message) from None
    except HoldfastError as e:
        raise PageError(409, str(e)) from None
