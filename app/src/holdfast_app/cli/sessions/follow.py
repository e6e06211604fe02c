"""`holdfast sessions follow`: a live transcript of a session, whichever program it is open in."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import click

from holdfast.cluster import PeerNeighbours, is_available
from holdfast.engine.relay.follower import FollowedSession
from holdfast.errors import HoldfastError, NeighbourLost, PositionLost, UsageError
from holdfast.model import LOCAL, ClientInfo, Scope
from holdfast.store import Snapshot
from holdfast.store.entries import read_entries
from holdfast.view.blocks import Note
from holdfast.view.live import LiveView
from holdfast_app.chat.paint import Painter, needs_blank_line
from holdfast_app.cli import output
from holdfast_app.cli.node_options import node_secret
from holdfast_app.cli.store_arguments import find_session, on_store, session_argument

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence

    from holdfast.engine import OpenAttachment
    from holdfast.model import Answer, Event, Position, Question, SessionInfo
    from holdfast.store import Owner, SessionStore
    from holdfast.view.blocks import Block

POLL_SECONDS = 0.5
"""How often somebody is looked for who has the session open."""


@click.command("follow")
@session_argument
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    metavar="N",
    help="Begin with the last N entries.",
)
@on_store()
async def follow(store: SessionStore, *, session: str, limit: int, as_json: bool) -> None:
    """Watch a SESSION as it happens, in whatever program it is open; Ctrl-C ends the watching, and nothing else.

    Where it is open nowhere, its last entries are shown, and then whatever comes when some program opens it. You are
    told when a question waits; answer it in the program, or join with `holdfast chat AGENT --resume SESSION`.

    With --json: one line for each update, {"position": "1.2.3", "update": {…}}; null for what has no position.
    """
    if not is_available():
        raise UsageError("sessions cannot be followed on this system; `holdfast sessions show` reads them")
    info = await find_session(store, session)
    watcher = Watcher(as_json=as_json, cwd=info.cwd)
    if limit and not as_json:
        await _show_past(store, info, watcher, limit)
    await Following(store, info, watcher).run()


async def _show_past(store: SessionStore, info: SessionInfo, watcher: Watcher, limit: int) -> None:
    seen = await store.snapshot(info.id)
    entries = [entry async for _, entry in read_entries(store, Snapshot(seen.record, None), last=limit)]
    watcher.print_blocks(LiveView().replay(entries))


class Following:
    """Follows one session from owner to owner."""

    def __init__(self, store: SessionStore, info: SessionInfo, watcher: Watcher) -> None:
        self._store = store
        self._info = info
        self._watcher = watcher
        self._neighbours = PeerNeighbours(secret=node_secret())
        self._lost = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._since: Position | None = None
        self._told = ""
        watcher.on_dropped = self._on_dropped

    async def run(self) -> None:
        """Follow as long as there is such a session; raise `UsageError` when it was deleted."""
        try:
            while True:
                owner = (await self._store.owners()).get(self._info.id)
                if owner is None or owner.address is None:
                    await find_session(self._store, self._info.id)
                    self._tell("It is open in no program now; waiting for one that opens it.")
                else:
                    await self._follow(owner)
                await asyncio.sleep(POLL_SECONDS)
        finally:
            await self._neighbours.close()

    async def _follow(self, owner: Owner) -> None:
        """Follow the session at its owner until that one is gone, or shows it no more."""
        assert owner.address is not None
        self._lost.clear()
        session = FollowedSession(
            self._info.id, Scope(LOCAL), self._watcher,
            neighbours=self._neighbours, on_lost=self._on_lost, start=self._start, is_guest=True,
        )  # fmt: skip
        session.owner = owner.name
        try:
            await session.open(owner.address)
            attachment = await self._attach(session)
        except (NeighbourLost, HoldfastError) as e:
            session.hang_up()
            self._tell(f"{owner.name} has it open, and does not answer: {e}")
            return
        self._tell(f"Open in {session.owner}.")
        if self._since is None:
            await self._watcher.show_unsealed(attachment)
        self._watcher.attachment = attachment
        attachment.follow()
        await self._lost.wait()
        self._since = attachment.position

    async def _attach(self, session: FollowedSession) -> OpenAttachment:
        try:
            return await session.attach(self._watcher, self._since)
        except PositionLost:
            self._tell("Something that happened meanwhile is not shown; `holdfast sessions show` has all of it.")
            return await session.attach(self._watcher)

    def _on_lost(self, _: FollowedSession, who: str) -> None:
        self._tell(f"{who} has left.")
        self._lost.set()

    def _on_dropped(self, reason: str) -> None:
        self._tell(reason)
        self._lost.set()

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _tell(self, says: str) -> None:
        if says != self._told:
            self._told = says
            self._watcher.tell(says)


class Watcher:
    """A client that only looks: it prints what it is shown."""

    info: ClientInfo = ClientInfo(protocol=2, name="holdfast sessions follow")
    principal = LOCAL
    session_id = ""
    meta = None
    roots: tuple[str, ...] = ("/",)
    mcp_servers: tuple[Any, ...] = ()
    system_prompt = None
    services: frozenset[str] = frozenset()
    elicitation: frozenset[str] = frozenset()
    is_remote = False
    backlog = 0

    def __init__(self, *, as_json: bool, cwd: str) -> None:
        self.attachment: OpenAttachment | None = None
        self.on_dropped: Callable[[str], None] = self.tell
        """Called with the reason when nothing more comes."""
        self._as_json = as_json
        self._view = LiveView()
        is_terminal = sys.stdout.isatty()
        self._painter = Painter(output.width() or 100, "yes" if is_terminal else "no", cwd=cwd)
        self._before: Block | None = None

    def show(self, events: Sequence[Event]) -> None:
        """Print what happened."""
        before = None if self.attachment is None else self.attachment.showing
        for at, event in enumerate(events, start=1):
            if self._as_json:
                position = None if before is None else str(before.after(at))
                output.say(output.json_text({"position": position, "update": event.update()}))
                continue
            self.print_blocks(self._view.feed(event))
            if event.kind == "state_update" and event.update().get("state") == "requires_action":
                self.tell("It waits for an answer.")
        sys.stdout.flush()

    async def show_unsealed(self, attachment: OpenAttachment) -> None:
        """Print what the running turn has said so far."""
        from holdfast.format import event_in  # noqa: PLC0415

        lines = getattr(attachment, "unsealed", [])
        self.show([event_in(line) for block in lines for line in block.split(b"\n")])

    def print_blocks(self, blocks: Iterable[Block]) -> None:
        """Print what is finished."""
        for block in blocks:
            if self._before is not None and needs_blank_line(self._before, block):
                output.say()
            for line in self._painter.lines(block):
                output.say(line)
            self._before = block

    def tell(self, says: str) -> None:
        """Say something about the watching itself."""
        if self._as_json:
            output.tell(says)
        else:
            self.print_blocks([Note(says)])
        sys.stdout.flush()

    async def drain(self) -> None:
        """Wait for nobody: what is printed is read, or blocks."""

    def embed_terminal(self, terminal_id: str, own_id: str) -> None: ...

    def can_answer(self, question: Question) -> bool:  # noqa: ARG002
        """Whether it can put this question to its user: it cannot."""
        return False

    async def ask(self, question: Question) -> Answer:  # noqa: ARG002
        """Answer nothing."""
        return None

    async def request(self, method: str, params: Mapping[str, Any]) -> Any:  # noqa: ARG002
        """Refuse what agents ask of clients."""
        raise UsageError(f"{method} is not offered")

    def notify(self, method: str, params: Mapping[str, Any]) -> None: ...

    def dropped(self, reason: str) -> None:
        """Note that nothing more comes, and why."""
        self.on_dropped(reason)

    def moved(self, attachment: OpenAttachment) -> None:
        """Watch through another attachment."""
        self.attachment = attachment
