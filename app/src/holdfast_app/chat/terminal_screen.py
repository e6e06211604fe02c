"""`TerminalScreen`: what is finished scrolls by, and below it a small part stays alive.

Nothing takes the whole screen. What is finished is printed once, above; the lower part is drawn again whenever
something changes: what is not finished, what is being done, a question or the line that is edited, one line of status.
All text comes painted (`Painter`) or is made harmless here.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from prompt_toolkit.application import Application, in_terminal
from prompt_toolkit.filters import Condition, has_completions
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.layout import BufferControl, ConditionalContainer, FormattedTextControl, HSplit, Layout, Window
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.layout.processors import BeforeInput, HighlightIncrementalSearchProcessor
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.styles import Style
from prompt_toolkit.utils import get_cwidth
from prompt_toolkit.widgets import SearchToolbar

from holdfast.view.safe_text import safe_line
from holdfast_app.chat import terminal_keys
from holdfast_app.chat.keyboard import Keyboard
from holdfast_app.chat.paint import Painter, needs_blank_line
from holdfast_app.chat.program_in_terminal import run_in_terminal
from holdfast_app.chat.terminal_output import REFLOWS, TerminalOutput

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from typing import TextIO

    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.history import History
    from prompt_toolkit.input import Input

    from holdfast.view.blocks import Block
    from holdfast_app.chat.paint import Colours
    from holdfast_app.chat.program_in_terminal import ProgramEnd
    from holdfast_app.chat.screen import KeyQuestion, LineQuestion, ListQuestion, ScreenDelegate
    from holdfast_app.chat.theme import Theme

FRAME = 1 / 25
"""The screen is not drawn again for so many seconds."""
TICK = 0.2
ESCAPE = 0.1
"""Escape is a key of its own if nothing follows it for so many seconds."""
LIVE_LINES = 12
"""What is live takes no more: where a terminal becomes lower than what is drawn, the rest stays in the scrollback."""
WAITING = 3
"""So many of the prompts that wait are shown."""
BLOCKS = 200
"""So many blocks are painted at once before keys are looked at again."""

_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_MONO = {
    "prompt": "bold", "ask": "bold", "key": "bold", "chosen": "bold", "completion-menu": "bg:default",
    "completion-menu.completion": "bg:default", "completion-menu.completion.current": "reverse",
    "completion-menu.meta.completion": "bg:default", "completion-menu.meta.completion.current": "bg:default",
}  # fmt: skip
_COLOURS = {
    **_MONO, "prompt": "ansicyan bold", "status": "ansibrightblack", "busy": "ansiyellow", "ask": "ansiyellow bold",
    "good": "ansigreen", "error": "ansired", "hint": "ansibrightblack",
    "completion-menu.meta.completion": "bg:default ansibrightblack",
    "completion-menu.meta.completion.current": "bg:default ansibrightblack",
}  # fmt: skip


def _styles(colours: Colours, theme: Theme) -> dict[str, str]:
    """Return how the lower part looks; on a light background yellow and cyan cannot be read."""
    if colours != "yes":
        return _MONO
    if theme == "dark":
        return _COLOURS
    return {
        name: style.replace("ansiyellow", "ansimagenta").replace("ansicyan", "ansiblue")
        for name, style in _COLOURS.items()
    }


class TerminalScreen:
    """A `Screen` in a terminal; see the module."""

    interactive = True

    def __init__(
        self,
        delegate: ScreenDelegate,
        stdout: TextIO,
        *,
        input: Input | None = None,
        colours: Colours = "yes",
        unicode: bool = True,
        cwd: str = "",
        history: History | None = None,
        theme: Theme = "dark",
    ) -> None:
        self._theme: Theme = theme
        self._delegate = delegate
        self._colours: Colours = colours
        self._unicode = unicode
        self._cwd = cwd
        self._output = TerminalOutput.over(stdout)
        self._keyboard = Keyboard(delegate, self.changed, history)
        self.left: asyncio.Event = self._keyboard.left
        self._pending: deque[Block] = deque()
        self._before: Block | None = None
        self._live: list[str] = []
        self._dirty = asyncio.Event()
        self._spins = 0
        self._columns_drawn = 0
        self._app = _Application(
            on_resize=self._fit,
            layout=self._layout(),
            key_bindings=self._keyboard.bindings(),
            style=Style.from_dict(_styles(colours, theme)),
            include_default_pygments_style=False,
            color_depth=ColorDepth.DEPTH_4_BIT if colours == "yes" else ColorDepth.DEPTH_1_BIT,
            erase_when_done=True,
            output=self._output,
            input=input,
            before_render=self._fit,
            after_render=self._release,
        )
        terminal_keys.learn_keys()
        self._app.ttimeoutlen = self._app.timeoutlen = ESCAPE
        self._keyboard.focus = self._app.layout.focus
        self._app.key_processor.before_key_press += self._keyboard.key_pressed

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        """Read keys and draw while the block runs; print what is left at its end."""
        self._output.write_raw(terminal_keys.ASK)
        app = asyncio.create_task(self._app.run_async(handle_sigint=False, set_exception_handler=False), name="keys")
        app.add_done_callback(lambda _: self.leave())
        drawing = [
            asyncio.create_task(self._frames(), name="frames"),
            asyncio.create_task(self._ticks(), name="ticks"),
        ]
        for task in drawing:
            task.add_done_callback(lambda _: self.leave())
        try:
            yield
        finally:
            for task in drawing:
                task.cancel()
            await asyncio.wait(drawing)
            if self._app.is_running and not self._app.is_done:
                self._app.exit()
            await asyncio.wait([app])
            with suppress(EOFError, OSError):  # the terminal may be gone
                app.result()
                self._output.release()
                self._output.write_raw(self._painted(len(self._pending)) + terminal_keys.END)
                self._output.flush()
            for task in drawing:
                if not task.cancelled():
                    task.result()  # a mistake of ours: it must not go unseen

    # What a screen does

    def show(self, *blocks: Block) -> None:
        """Print blocks."""
        self._pending += blocks
        self._dirty.set()

    def changed(self) -> None:
        """Draw again what may change."""
        self._dirty.set()

    async def read(self) -> str | None:
        """Wait for the next prompt."""
        return await self._keyboard.read()

    def take_back(self) -> None:
        """Put prompts that were not read yet back into the edited line."""
        self._keyboard.take_back()

    async def ask_key(self, question: KeyQuestion) -> str | None:
        """Ask for a key."""
        return await self._keyboard.ask_key(question)

    async def ask_line(self, question: LineQuestion) -> str | None:
        """Ask for a line."""
        return await self._keyboard.ask_line(question)

    async def ask_item(self, question: ListQuestion) -> str | None:
        """Let the user choose one of many."""
        return await self._keyboard.ask_item(question)

    def send(self, text: str) -> None:
        """Take a text as if the user had sent it."""
        self._keyboard.send(text)

    def edit(self, text: str) -> None:
        """Put a text into the edited line."""
        self._keyboard.edit(text)

    async def run_elsewhere(self, command: tuple[str, ...], cwd: str, env: dict[str, str]) -> ProgramEnd | None:
        """Let a program have the terminal until it ends; return how it did."""
        self._keyboard.away = True
        try:
            async with in_terminal():
                return await run_in_terminal(command, cwd, env)
        finally:
            self._keyboard.away = False
            self.changed()

    def leave(self) -> None:
        """Read nothing more."""
        self._keyboard.leave()

    # Drawing

    def _painter(self) -> Painter:
        return Painter(self._columns(), self._colours, self._unicode, self._cwd, self._theme)

    def _columns(self) -> int:
        return max(self._output.get_size().columns, 8)

    async def _frames(self) -> None:
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            self._draw()
            await asyncio.sleep(0 if self._pending else FRAME)

    async def _ticks(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            if self._delegate.busy():
                self._spins += 1
                self._dirty.set()

    def _draw(self) -> None:
        if self._keyboard.away:
            return
        self._fit()
        height = len(self._live)
        printed = self._painted(BLOCKS)
        room = min(self._output.get_size().rows // 2, LIVE_LINES)
        self._live = self._painter().live(self._delegate.live(), room)
        if self._live and self._before is not None:
            self._live.insert(0, "")
        if self._pending:
            self._dirty.set()
        if printed or len(self._live) < height:
            self._output.hold()
            self._app.renderer.erase(leave_alternate_screen=False)
            self._output.write_raw(printed)
        self._app.invalidate()

    def _painted(self, count: int) -> str:
        lines: list[str] = []
        painter = self._painter()
        for _ in range(min(count, len(self._pending))):
            block = self._pending.popleft()
            if self._before is not None and needs_blank_line(self._before, block):
                lines.append("")
            lines += painter.lines(block)
            self._before = block
        return "".join(f"{line}\r\n" for line in lines)

    def _fit(self, _: object = None) -> None:
        """Erase what was drawn if the terminal has become narrower: it has broken our lines, so there are more now."""
        columns = self._output.get_size().columns
        screen = self._app.renderer.last_rendered_screen
        if screen is not None and columns < self._columns_drawn:
            cursor = screen.get_cursor_position(self._app.layout.current_window)
            if REFLOWS:
                rows = (screen.data_buffer[y] for y in range(cursor.y))
                ends = [max((x for x, cell in row.items() if cell.char != " "), default=0) for row in rows]
                self._output.cursor_up(sum(end // columns for end in (*ends, cursor.x)))
            self._app.renderer.erase(leave_alternate_screen=False)
        self._columns_drawn = columns

    def _release(self, _: object) -> None:
        self._output.release()

    # The lower part

    def _layout(self) -> Layout:
        keyboard = self._keyboard
        asking = Condition(lambda: keyboard.key_question is not None)
        filling = Condition(lambda: keyboard.line_question is not None)
        picking = Condition(lambda: keyboard.list_question is not None)
        searching = SearchToolbar(ignore_case=True)
        sign = BeforeInput(lambda: [("class:prompt", self._painter().sign("prompt"))])
        edited = Window(
            BufferControl(
                keyboard.buffer,
                input_processors=[sign, HighlightIncrementalSearchProcessor()],
                search_buffer_control=searching.control,
                preview_search=True,
            ),
            height=lambda: Dimension(min=1, max=max(self._output.get_size().rows // 3, 1)),
            dont_extend_height=True,
            wrap_lines=True,
            get_line_prefix=lambda line, wrap: "" if line == wrap == 0 else "  ",
        )
        answer = Window(BufferControl(keyboard.answer, input_processors=[sign]), height=1, dont_extend_height=True)

        def text(of: Callable[[], Any], *, wrap: bool = True) -> Window:
            return Window(FormattedTextControl(of), dont_extend_height=True, wrap_lines=wrap)

        parts = [
            ConditionalContainer(
                text(lambda: ANSI("\n".join(self._live)), wrap=False), Condition(lambda: bool(self._live))
            ),
            text(self._activity),
            ConditionalContainer(text(self._question), asking | filling | picking),
            ConditionalContainer(answer, filling | picking),
            ConditionalContainer(text(self._items, wrap=False), picking),
            ConditionalContainer(edited, ~asking & ~filling & ~picking),
            searching,
            ConditionalContainer(CompletionsMenu(max_height=8), has_completions & ~asking & ~filling & ~picking),
            Window(FormattedTextControl(self._status), height=1),
        ]
        return Layout(HSplit(parts), focused_element=edited)

    def _activity(self) -> StyleAndTextTuples:
        """Return what is being done and which prompts wait, after an empty line."""
        text: StyleAndTextTuples = [("", "")]
        if busy := self._delegate.busy():
            signs = _SPINNER if self._unicode else "|/-\\"
            text += [("", "\n"), ("class:busy", self._cut(f"{signs[self._spins % len(signs)]} {safe_line(busy)}"))]
        for prompt in list(self._keyboard.prompts)[:WAITING]:
            line = f"{self._painter().sign('more')} then: {safe_line(prompt)}"
            text += [("", "\n"), ("class:hint", self._cut(line))]
        return text

    def _question(self) -> StyleAndTextTuples:
        key_question, line_question = self._keyboard.key_question, self._keyboard.line_question
        text: StyleAndTextTuples = []
        if key_question is not None:
            text += [("class:ask", safe_line(key_question.text))]  # one line: no text can look like a choice
            for choice in key_question.choices:
                label = self._cut(safe_line(choice.label), 20)
                text += [("", "\n  "), ("class:key", f"[{choice.key}]"), (f"class:{choice.tone}", f" {label}")]
                if choice.value == key_question.default:
                    text += [("class:hint", " (Enter)")]
            if self._keyboard.typed_on:
                text += [("", "\n"), ("class:hint", self._cut("What you typed is kept. Answer with one of the keys."))]
        elif self._keyboard.list_question is not None:
            text += [("class:ask", self._cut(safe_line(self._keyboard.list_question.text)))]
        elif line_question is not None:
            text += [
                ("class:ask", safe_line(line_question.label)),
                ("class:hint", f" ({safe_line(line_question.hint)})"),
            ]
            if self._keyboard.wrong:
                text += [("", "\n"), ("class:error", safe_line(self._keyboard.wrong))]
        return text

    def _items(self) -> StyleAndTextTuples:
        """Return the items of a list around the marked one."""
        keyboard = self._keyboard
        fitting = keyboard.fitting()
        if not fitting:
            return [("class:hint", "  nothing fits")]
        marked = min(keyboard.chosen, len(fitting) - 1)
        room = max(min(self._output.get_size().rows // 2, LIVE_LINES) - 1, 1)
        first = max(min(marked - room // 2, len(fitting) - room), 0)
        text: StyleAndTextTuples = []
        for at, (label, _) in enumerate(fitting[first : first + room], first):
            sign, style = (self._painter().sign("prompt"), "class:chosen") if at == marked else ("  ", "")
            text += [(style, self._cut(f"{sign}{safe_line(label)}")), ("", "\n")]
        return [*text, ("class:hint", self._cut(f"  {marked + 1} of {len(fitting)}"))]

    def _status(self) -> StyleAndTextTuples:
        if self._keyboard.interrupts:
            return [("class:status", self._cut("Ctrl-C again to leave"))]
        return [("class:status", self._cut(safe_line(self._delegate.status())))]

    def _cut(self, text: str, less: int = 2) -> str:
        """Cut a line to less than the width: one that fills it would break when the terminal becomes narrower."""
        room = max(self._columns() - less, 4)
        if get_cwidth(text) <= room:
            return text
        while text and get_cwidth(text) > room - 1:
            text = text[:-1]
        return f"{text}…" if self._unicode else text


class _Application(Application[None]):
    """Lets us look at what was drawn before it is erased because the terminal has another size now."""

    def __init__(self, *, on_resize: Callable[[], None], **more: Any) -> None:
        super().__init__(**more)
        self._before_resize = on_resize

    def _on_resize(self) -> None:
        self._before_resize()
        super()._on_resize()
