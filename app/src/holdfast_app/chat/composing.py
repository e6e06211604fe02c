"""`Composer`: what goes into the next prompt besides what is typed: files, pasted images, the output of commands."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from holdfast.view.blocks import Note
from holdfast_app.chat.attachments import (
    Takes,
    attach_files,
    complete_files,
    image_block,
    image_of_bytes,
    mention_before,
)
from holdfast_app.chat.attachments import pasted_image as image_named
from holdfast_app.chat.clipboard import image_in_clipboard

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.client import ClientSession
    from holdfast_app.chat.conversation import Conversation
    from holdfast_app.chat.screen import Candidate
    from holdfast_app.chat.shell_command import ShellResult

_IMAGE = re.compile(r"\[image (\d+)\]")


class Composer:
    """What goes with the next prompt."""

    def __init__(self, chat: Conversation) -> None:
        self._chat = chat
        self._images: dict[str, dict[str, Any]] = {}
        self._outputs: list[ShellResult] = []

    def add_output(self, result: ShellResult) -> None:
        """Send the output of a command along with the next prompt."""
        self._outputs.append(result)

    def complete(self, line: str) -> Iterator[Candidate]:
        """Yield the files that a line could name at its end."""
        typed, session = mention_before(line), self._chat.session
        if typed is not None and session is not None:
            for found in complete_files(typed, (session.cwd, *session.additional)):
                yield found._replace(replaces=len(typed) + 1)

    def paste(self, text: str) -> str:
        """Return what is typed for a text that was pasted; the name of an image file stands for the image."""
        path = image_named(text)
        if path is None:
            return text
        try:
            return self._add_image(image_block(path)) or text
        except (OSError, ValueError) as e:
            self._chat.screen.show(Note(f"{path.name} is not sent: {e}", tone="warning"))
            return text

    async def paste_image(self) -> str:
        """Return what stands for the image in the clipboard; nothing where there is none."""
        data = await image_in_clipboard()
        if data is None:
            self._chat.screen.show(
                Note("There is no image in the clipboard, or nothing to read it with (wl-paste, xclip).")
            )
            return ""
        return self._add_image(image_of_bytes(data, "image/png"))

    def _add_image(self, block: dict[str, Any]) -> str:
        if not self._takes().images:
            self._chat.screen.show(Note("This agent takes no images.", tone="warning"))
            return ""
        number = str(len(self._images) + 1)
        self._images[number] = block
        return f"[image {number}]"

    def _takes(self) -> Takes:
        can = self._chat.connection.can
        return Takes(can("image"), can("resource"))

    def compose(self, text: str, session: ClientSession) -> list[dict[str, Any]]:
        """Return the blocks of a prompt, and begin a new one."""
        attached = attach_files(text, (session.cwd, *session.additional), self._takes())
        for remark in attached.remarks:
            self._chat.screen.show(Note(remark, tone="warning"))
        outputs = [{"type": "text", "text": result.as_prompt()} for result in self._outputs]
        named = dict.fromkeys(_IMAGE.findall(text))
        images = [self._images[number] for number in named if number in self._images]
        self._outputs.clear()
        return [{"type": "text", "text": text}, *outputs, *attached.blocks, *images]
