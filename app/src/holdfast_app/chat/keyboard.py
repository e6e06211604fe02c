"""What is typed: a line that is edited, single keys that answer questions, and the keys that stop and leave.

It does not know how anything looks. A key means one thing at a time: it edits the prompt, or it answers the question
that is being asked, `key_question` or `line_question`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer, Completion
from prompt_toolkit.filters import Always, Condition, has_completions, is_searching
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.keys import Keys

from holdfast.view.safe_text import safe_line
from holdfast_app.chat.attachments import mention_before

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyPressEvent

    from holdfast_app.chat.screen import KeyQuestion, LineQuestion, ListQuestion, ScreenDelegate

CALM = 0.5
"""A question is asked when no key was pressed for so many seconds: what was being typed must not become an answer."""

ALONE = 0.3
"""A key answers a question if no other follows within so many seconds: what is typed in one go is a prompt."""


TWICE = 0.8
"""Escape is pressed twice if no more than so many seconds are between."""


class Keyboard:
    """Reads prompts and answers from keys. `changed` is called when there is something new to draw."""

    def __init__(self, delegate: ScreenDelegate, changed: Callable[[], None], history: History | None) -> None:
        self.left: asyncio.Event = asyncio.Event()
        self.prompts: deque[str] = deque()
        """Prompts that were sent off and not read yet."""
        self.key_question: KeyQuestion | None = None
        self.line_question: LineQuestion | None = None
        self.list_question: ListQuestion | None = None
        self.chosen: int = 0
        """Which of the items that fit is marked."""
        self.away: bool = False
        """Whether another program has the terminal."""
        self.wrong: str = ""
        """What is wrong with the line that was given last."""
        self.typed_on: bool = False
        """Whether a text was typed while a key was asked for."""
        self.interrupts: int = 0
        """How often in a row the user wanted something to stop."""
        self.buffer: Buffer = Buffer(
            completer=_Completer(delegate),
            complete_while_typing=Condition(self._completes_by_itself),
            history=history or InMemoryHistory(),
            multiline=True,
            tempfile_suffix=".md",
        )
        self.answer: Buffer = Buffer(multiline=False)
        self.focus: Callable[[Buffer], object] = lambda _: None
        """Directs the keys that edit to one of the two buffers."""
        self._delegate = delegate
        self._changed = changed
        self._news = asyncio.Event()
        self._asking = asyncio.Lock()
        self._answered: asyncio.Future[str | None] | None = None
        self._last_key = 0.0
        self._filled = 0.0  # when a line was asked for last
        self._pressed: list[tuple[str, str | None]] = []  # keys that may be an answer, or a text; the answer of each
        self._settling: asyncio.TimerHandle | None = None
        self._escaped = 0.0  # when Escape was pressed last, with nothing to stop

    async def read(self) -> str | None:
        """Wait for the next prompt; return None when the user leaves."""
        while not self.prompts and not self.left.is_set():
            self._news.clear()
            await self._news.wait()
        if self.left.is_set():
            return None
        self._changed()
        return self.prompts.popleft()

    def take_back(self) -> None:
        """Put prompts that were not read yet back into the edited line."""
        if self.prompts:
            self.buffer.text = "\n".join(filter(None, (*self.prompts, self.buffer.text)))
            self.buffer.cursor_position = len(self.buffer.text)
        self.prompts.clear()
        self._changed()

    async def ask_key(self, question: KeyQuestion) -> str | None:
        """Ask for a key; return the value of the answer, or the default."""
        async with self._asking:
            await self._calm()
            self.key_question, self.typed_on = question, False
            try:
                return await self._answer(question.default)
            finally:
                self._type_on()
                self.key_question = None

    async def ask_line(self, question: LineQuestion) -> str | None:
        """Ask for a line; return None if the user declines."""
        async with self._asking:
            if asyncio.get_running_loop().time() > self._filled + CALM:  # between fields nobody has to wait
                await self._calm()
            self.line_question, self.wrong = question, ""
            self.answer.reset()
            self.focus(self.answer)
            try:
                return await self._answer(None)
            finally:
                self.line_question = None
                self.focus(self.buffer)
                self._filled = asyncio.get_running_loop().time()

    async def ask_item(self, question: ListQuestion) -> str | None:
        """Let the user choose one of many; return its value, or None."""
        async with self._asking:
            self.list_question, self.chosen = question, 0
            self.answer.reset()
            self.focus(self.answer)
            try:
                return await self._answer(None)
            finally:
                self.list_question = None
                self.focus(self.buffer)

    def fitting(self) -> list[tuple[str, str]]:
        """Return the items that have all that was typed in their names."""
        words = self.answer.text.lower().split()
        items = () if self.list_question is None else self.list_question.items
        return [item for item in items if all(word in item[0].lower() for word in words)]

    def send(self, text: str) -> None:
        """Take a text as if the user had sent it."""
        self.prompts.append(text)
        self._news.set()

    def edit(self, text: str) -> None:
        """Put a text into the edited line."""
        self.buffer.text = text
        self.buffer.cursor_position = len(text)
        self._changed()

    def leave(self) -> None:
        """Read nothing more; what is asked gets no answer."""
        self.left.set()
        self._news.set()
        self._give(None if self.key_question is None else self.key_question.default)

    def key_pressed(self, _: object) -> None:
        """Note that somebody is typing."""
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
        """Return what each key does."""
        keys = KeyBindings()
        asking = Condition(lambda: self.key_question is not None)
        filling = Condition(lambda: self.line_question is not None)
        picking = Condition(lambda: self.list_question is not None)
        editing = ~asking & ~filling & ~picking & ~is_searching
        always = Always()
        for pressed, when, does in (
            (("enter",), editing, self._send),
            (("escape", "enter"), editing, self._break_line),
            (("c-j",), editing, self._break_line),
            (("escape",), editing, self._stop_or_give_up),
            (("c-x", "c-e"), editing, self._open_editor),
            (("c-v",), editing, self._paste_clipboard),
            ((Keys.BracketedPaste,), editing, self._paste),
            (("enter",), picking, self._pick),
            (("escape",), picking, self._decline),
            (("up",), picking, self._mark_above),
            (("down",), picking, self._mark_below),
            (("c-p",), picking, self._mark_above),
            (("c-n",), picking, self._mark_below),
            (("tab",), editing, self._complete),
            (("s-tab",), editing & has_completions, self._complete_back),
            (("c-d",), editing, self._delete_or_leave),
            ((Keys.Any,), editing, self._type),
            ((Keys.Any,), asking, self._choose),
            ((Keys.BracketedPaste,), asking, self._paste_on),
            (("enter",), asking, self._confirm),
            (("escape",), asking, self._give_up),
            (("enter",), filling, self._fill),
            (("escape",), filling, self._decline),
            (("c-d",), ~editing & ~is_searching, self._leave),
            (("c-c",), always, self._interrupt),
            (("c-z",), always, self._suspend),
            (("c-l",), always, self._clear),
        ):
            keys.add(*pressed, filter=when, eager=pressed == ("escape",) and when is not editing)(does)
        return keys

    def _send(self, _: KeyPressEvent) -> None:
        self.interrupts = 0
        self._send_line()

    def _send_line(self) -> None:
        text = self.buffer.text
        if text.strip():
            self.buffer.append_to_history()
            self.buffer.reset()
            self.prompts.append(text)
            self._news.set()

    def _break_line(self, _: KeyPressEvent) -> None:
        self.buffer.insert_text("\n")

    def _type(self, event: KeyPressEvent) -> None:
        self.interrupts = 0
        self.buffer.insert_text(event.data * event.arg)

    def _completes_by_itself(self) -> bool:
        before = self.buffer.document.text_before_cursor
        return before.startswith("/") or mention_before(before) is not None

    def _stop_or_give_up(self, _: KeyPressEvent) -> None:
        """Close the menu of completions, stop what is being done, or forget what was being edited again."""
        if self.buffer.complete_state:
            self.buffer.cancel_completion()
        elif self._delegate.is_busy():
            self._delegate.interrupt()
        else:
            self._delegate.edit_given_up()
            now = asyncio.get_running_loop().time()
            if not self.buffer.text and now < self._escaped + TWICE:
                self._delegate.edited_again()
            self._escaped = now
        self._changed()

    def _paste(self, event: KeyPressEvent) -> None:
        self.interrupts = 0
        text = event.data.replace("\r\n", "\n").replace("\r", "\n")
        self.buffer.insert_text(self._delegate.paste(text))

    def _paste_clipboard(self, event: KeyPressEvent) -> None:
        async def paste() -> None:
            self.buffer.insert_text(await self._delegate.paste_image())

        event.app.create_background_task(paste())

    def _open_editor(self, event: KeyPressEvent) -> None:
        """Let the user edit the line in the editor of his choice."""

        async def edit() -> None:
            self.away = True
            try:
                await self.buffer.open_in_editor()
            finally:
                self.away = False
                self._changed()

        event.app.create_background_task(edit())

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
        elif self._delegate.interrupt() or not self.buffer.text:
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
        choices = self.key_question.choices if self.key_question is not None else ()
        self._press(event.data, next((choice.value for choice in choices if choice.key == event.data), None))

    def _confirm(self, _: KeyPressEvent) -> None:
        """Take the answer of Enter; where there is none, it is no answer."""
        question = self.key_question
        if question is not None and question.enter_ends_text:
            self._give(question.default)
        else:
            self._press("\n", None if question is None else question.default)

    def _paste_on(self, event: KeyPressEvent) -> None:
        self._pressed += [(character, None) for character in event.data.replace("\r\n", "\n").replace("\r", "\n")]
        self._type_on()

    def _press(self, key: str, answer: str | None) -> None:
        """Take a key that answers a question if it stays alone."""
        self._pressed.append((key, answer))
        if self._settling is not None:
            self._settling.cancel()
        self._settling = asyncio.get_running_loop().call_later(ALONE, self._settle)

    def _settle(self) -> None:
        if len(self._pressed) > 1:
            self._type_on()
        elif (answer := self._pressed.pop()[1]) is not None:
            self._give(answer)

    def _type_on(self) -> None:
        """Put what was typed in one go where it would have gone without a question; forget a single key."""
        if self._settling is not None:
            self._settling.cancel()
        typed, self._pressed = [key for key, _ in self._pressed], []
        for key in typed if len(typed) > 1 else ():
            self.typed_on = True
            if key == "\n":
                self._send_line()
            elif key.isprintable():
                self.buffer.insert_text(key)
        self._changed()

    def _give_up(self, _: KeyPressEvent) -> None:
        self._give(None if self.key_question is None else self.key_question.default)

    def _pick(self, _: KeyPressEvent) -> None:
        if fitting := self.fitting():
            self._give(fitting[min(self.chosen, len(fitting) - 1)][1])

    def _mark_above(self, _: KeyPressEvent) -> None:
        self.chosen = max(min(self.chosen, len(self.fitting()) - 1) - 1, 0)
        self._changed()

    def _mark_below(self, _: KeyPressEvent) -> None:
        self.chosen = max(min(self.chosen + 1, len(self.fitting()) - 1), 0)
        self._changed()

    def _decline(self, _: KeyPressEvent) -> None:
        self._give(None)

    def _fill(self, _: KeyPressEvent) -> None:
        self.interrupts = 0
        self.wrong = "" if self.line_question is None else self.line_question.check(self.answer.text)
        if not self.wrong:
            self._give(self.answer.text)
        self._changed()


class _Completer(Completer):
    def __init__(self, delegate: ScreenDelegate) -> None:
        self._delegate = delegate

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Yield completions of the whole line."""
        del complete_event
        line = document.text_before_cursor
        if line.startswith("/") and (document.cursor_position < len(document.text) or "\n" in line):
            return
        for candidate in self._delegate.complete(line):
            about, replaces = safe_line(candidate.about)[:200], candidate.replaces
            start = -len(line) if replaces is None else -replaces
            yield Completion(candidate.text, start, display=safe_line(candidate.text), display_meta=about)
