"""What is typed: a line that is edited, single keys that answer questions, and the keys that stop and leave.

It knows nothing of how anything looks. A key means one thing at a time: it edits what is to be said, or it answers the
question that is asked; which, `ask` and `field` say.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer, Completion
from prompt_toolkit.filters import Always, Condition, has_completions
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.keys import Keys

from holdfast.view.safe_text import safe_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyPressEvent

    from holdfast.chat.screen import Ask, Field, Outlook

CALM = 0.5
"""A question is asked when no key was pressed for so long: what was being typed must not become an answer."""


class Keyboard:
    """See the module. `changed` is called when there is something new to draw."""

    def __init__(self, outlook: Outlook, changed: Callable[[], None], history: History | None) -> None:
        self.left = asyncio.Event()
        self.said: deque[str] = deque()
        """What was said and not read yet."""
        self.ask: Ask | None = None
        self.field: Field | None = None
        self.wrong = ""
        """What is wrong with the answer that was given last."""
        self.interrupts = 0
        """How often in a row the user wanted something to stop."""
        self.buffer = Buffer(
            completer=_Completer(outlook),
            complete_while_typing=Condition(lambda: self.buffer.text.startswith("/")),
            history=history or InMemoryHistory(),
            multiline=True,
        )
        self.answer = Buffer(multiline=False)
        self.focus: Callable[[Buffer], object] = lambda _: None
        """Directs the keys that edit to one of the two buffers."""
        self._outlook = outlook
        self._changed = changed
        self._news = asyncio.Event()
        self._asking = asyncio.Lock()
        self._answered: asyncio.Future[str | None] | None = None
        self._last_key = 0.0
        self._filled = 0.0  # when a line was asked for last

    async def read(self) -> str | None:
        """Wait for what the user says; None when the user leaves."""
        while not self.said and not self.left.is_set():
            self._news.clear()
            await self._news.wait()
        if self.left.is_set():
            return None
        self._changed()
        return self.said.popleft()

    def take_back(self) -> None:
        """Give what was said and not read yet back to be edited."""
        if self.said:
            self.buffer.text = "\n".join(filter(None, (*self.said, self.buffer.text)))
            self.buffer.cursor_position = len(self.buffer.text)
        self.said.clear()
        self._changed()

    async def choose(self, ask: Ask) -> str | None:
        """Ask for a key."""
        async with self._asking:
            await self._calm()
            self.ask = ask
            try:
                return await self._answer(ask.default)
            finally:
                self.ask = None

    async def fill(self, field: Field) -> str | None:
        """Ask for a line."""
        async with self._asking:
            if asyncio.get_running_loop().time() > self._filled + CALM:  # between fields nobody has to wait
                await self._calm()
            self.field, self.wrong = field, ""
            self.answer.reset()
            self.focus(self.answer)
            try:
                return await self._answer(None)
            finally:
                self.field = None
                self.focus(self.buffer)
                self._filled = asyncio.get_running_loop().time()

    def leave(self) -> None:
        """Read nothing more; what is asked gets no answer."""
        self.left.set()
        self._news.set()
        self._give(None if self.ask is None else self.ask.default)

    def key_pressed(self, _: object) -> None:
        """Note that somebody types."""
        self._last_key = asyncio.get_running_loop().time()

    async def _calm(self) -> None:
        loop = asyncio.get_running_loop()
        wait = self._last_key + CALM - loop.time()
        while wait > 0:
            await asyncio.sleep(wait)
            wait = self._last_key + CALM - loop.time()

    async def _answer(self, default: str | None) -> str | None:
        if self.left.is_set():
            return default
        self._answered = asyncio.get_running_loop().create_future()
        self._changed()
        try:
            return await self._answered
        finally:
            self._answered = None
            self._changed()

    def _give(self, answer: str | None) -> None:
        if self._answered is not None and not self._answered.done():
            self._answered.set_result(answer)

    # Keys

    def bindings(self) -> KeyBindings:
        """Say what each key does."""
        keys = KeyBindings()
        asking = Condition(lambda: self.ask is not None)
        filling = Condition(lambda: self.field is not None)
        editing = ~asking & ~filling
        always = Always()
        for pressed, when, does in (
            (("enter",), editing, self._say),
            (("escape", "enter"), editing, self._break_line),
            (("tab",), editing, self._complete),
            (("s-tab",), editing & has_completions, self._complete_back),
            (("c-d",), editing, self._delete_or_leave),
            ((Keys.Any,), editing, self._type),
            ((Keys.Any,), asking, self._choose),
            (("enter",), asking, self._take_default),
            (("escape",), asking, self._take_default),
            (("enter",), filling, self._fill),
            (("escape",), filling, self._decline),
            (("c-d",), ~editing, self._leave),
            (("c-c",), always, self._interrupt),
            (("c-z",), always, self._suspend),
            (("c-l",), always, self._clear),
        ):
            keys.add(*pressed, filter=when, eager=pressed == ("escape",))(does)
        return keys

    def _say(self, _: KeyPressEvent) -> None:
        self.interrupts = 0
        text = self.buffer.text
        if text.strip():
            self.buffer.append_to_history()
            self.buffer.reset()
            self.said.append(text)
            self._news.set()

    def _break_line(self, _: KeyPressEvent) -> None:
        self.buffer.insert_text("\n")

    def _type(self, event: KeyPressEvent) -> None:
        self.interrupts = 0
        self.buffer.insert_text(event.data * event.arg)

    def _complete(self, _: KeyPressEvent) -> None:
        if self.buffer.complete_state:
            self.buffer.complete_next()
        else:
            self.buffer.start_completion(select_first=True)

    def _complete_back(self, _: KeyPressEvent) -> None:
        self.buffer.complete_previous()

    def _delete_or_leave(self, _: KeyPressEvent) -> None:
        if self.buffer.text:
            self.buffer.delete()
        else:
            self.leave()

    def _interrupt(self, _: KeyPressEvent) -> None:
        """Stop what is being done, forget what was being typed, or leave: the second time in a row leaves."""
        if self.interrupts:
            self.leave()
        elif self._outlook.interrupt() or not self.buffer.text:
            self.interrupts += 1
        else:
            self.buffer.reset()
        self._changed()

    def _leave(self, _: KeyPressEvent) -> None:
        self.leave()

    def _suspend(self, event: KeyPressEvent) -> None:
        event.app.suspend_to_background()

    def _clear(self, event: KeyPressEvent) -> None:
        event.app.renderer.clear()

    def _choose(self, event: KeyPressEvent) -> None:
        self.interrupts = 0
        for it in self.ask.choices if self.ask is not None else ():
            if it.key == event.data:
                self._give(it.value)

    def _take_default(self, _: KeyPressEvent) -> None:
        self._give(None if self.ask is None else self.ask.default)

    def _decline(self, _: KeyPressEvent) -> None:
        self._give(None)

    def _fill(self, _: KeyPressEvent) -> None:
        self.interrupts = 0
        self.wrong = "" if self.field is None else self.field.check(self.answer.text)
        if not self.wrong:
            self._give(self.answer.text)
        self._changed()


class _Completer(Completer):
    def __init__(self, outlook: Outlook) -> None:
        self._outlook = outlook

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Complete the whole line."""
        del complete_event
        line = document.text
        if document.cursor_position == len(line) and "\n" not in line:
            for it in self._outlook.complete(line):
                about = safe_line(it.about)[:200]
                yield Completion(it.text, -len(line), display=safe_line(it.text), display_meta=about)
