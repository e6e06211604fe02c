"""The image in the clipboard: whatever program of the system can read it. Where there is none, there is no image."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys

from holdfast_app.chat.attachments import MAX_IMAGE

SECONDS = 5.0


def _commands() -> list[tuple[str, ...]]:
    if sys.platform == "darwin":
        return [("pngpaste", "-")]
    wayland = [("wl-paste", "--no-newline", "--type", "image/png")] if os.environ.get("WAYLAND_DISPLAY") else []
    return [*wayland, ("xclip", "-selection", "clipboard", "-target", "image/png", "-out")]


async def image_in_clipboard() -> bytes | None:
    """Return the image in the clipboard as PNG; None where there is none, or no program to read it."""
    for command in _commands():
        if shutil.which(command[0]) is not None and (data := await _output(command)) is not None:
            return data
    return None


async def _output(command: tuple[str, ...]) -> bytes | None:
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(SECONDS):
            data, _ = await process.communicate()
    except TimeoutError:
        return None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    is_image = process.returncode == 0 and data.startswith(b"\x89PNG") and len(data) <= MAX_IMAGE
    return data if is_image else None
