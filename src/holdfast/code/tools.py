"""What the model can do: look, change files, run commands. Files only inside the session's directories (P9)."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING, Any

from pydantic_ai import FunctionToolset, RunContext, ToolFailed, WrapperToolset

from holdfast.agent import Turn
from holdfast.errors import HoldfastError
from holdfast.integrations.pydantic_ai import current_call, shown
from holdfast.integrations.secrets import environment

if TYPE_CHECKING:
    from pydantic_ai import ToolsetTool

    from holdfast.agent import ToolCall

CHANGING = frozenset({"edit", "write", "run"})
"""The tools that change something: not offered in mode `ask`, asked for in mode `code`."""

SKIPPED = (".git", ".hg", ".venv", "node_modules", "__pycache__")
"""Directories that searching and listing by pattern pass over."""

MAX_LINES = 2000
MAX_CHARACTERS = 100_000
"""What the model reads at once…"""
MAX_FOUND = 200
MAX_LISTED = 1000
MAX_OUTPUT = 30_000
"""…and what it is told of the output of a command, the last of it."""
MAX_DIFF = 1 << 20
"""The change of a longer text is not shown."""

_files = FunctionToolset[Turn](id="files")


class Explained(WrapperToolset[Turn]):
    """Tells the model what went wrong with a file instead of ending the turn."""

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Turn], tool: ToolsetTool[Turn]
    ) -> Any:
        """Call a tool."""
        try:
            return await super().call_tool(name, tool_args, ctx, tool)
        except (OSError, HoldfastError) as e:
            raise ToolFailed(_explained(e)) from None


tools = Explained(_files)


def _explained(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


# Looking


@_files.tool(name="read", metadata=shown(kind="read", title="Read {path}", path="path"))
async def read(ctx: RunContext[Turn], path: str, line: int = 1, limit: int = MAX_LINES) -> str:
    """Read a text file.

    Args:
        ctx: The run.
        path: The file, relative to the working directory or absolute.
        line: The number of the first line to read, from 1.
        limit: How many lines to read.

    """
    limit = max(1, min(limit, MAX_LINES))
    text = await ctx.deps.files.read_text(path, line=max(1, line), limit=limit)
    if len(text) > MAX_CHARACTERS:
        return f"{text[:MAX_CHARACTERS]}\n[cut off: the lines are very long; read fewer]"
    if text.count("\n") >= limit:
        return f"{text}[there may be more; go on with line={max(1, line) + limit}]"
    return text or "[there is nothing in it]"


@_files.tool(name="list", metadata=shown(kind="read", title="List {path}", path="path"))
async def list_files(ctx: RunContext[Turn], path: str = ".", pattern: str = "") -> str:
    """List a directory, or find files by a pattern.

    Args:
        ctx: The run.
        path: The directory.
        pattern: If given, files beneath it whose paths fit, as `**/*.py`; otherwise everything directly in it.

    """
    if pattern:
        where = pattern if path in ("", ".") else f"{path.rstrip('/')}/{pattern}"
        found = await ctx.deps.files.glob(where, limit=MAX_LISTED, skip=SKIPPED)
        names, more = list(found), found.truncated
    else:
        entries = await ctx.deps.files.list(path or ".", limit=MAX_LISTED)
        names, more = [it.name + ("/" if it.kind == "directory" else "") for it in entries], entries.truncated
    return "\n".join([*names, "[and more]"] if more else names) or "[nothing]"


@_files.tool(name="search", metadata=shown(kind="search", title="Search for {text}"))
async def search(
    ctx: RunContext[Turn], text: str, path: str = ".", glob: str = "*", *, ignore_case: bool = False
) -> str:
    """Find the lines that hold a text, in a file or in all text files beneath a directory.

    Args:
        ctx: The run.
        text: What to look for, literally (no regular expression), within one line.
        path: The file or directory.
        glob: Which files, as `*.py`.
        ignore_case: Whether upper and lower case are the same.

    """
    found = await ctx.deps.files.search(
        text, path or ".", glob=glob or "*", ignore_case=ignore_case, limit=MAX_FOUND, skip=SKIPPED
    )
    lines = [f"{it.path}:{it.line}: {it.text}" for it in found]
    return "\n".join([*lines, "[and more]"] if found.truncated else lines) or "[nothing]"


# Changing: one after the other, in the order in which the model wants it


def _asks(turn: Turn) -> bool:
    """Ask in every mode but `auto`: the mode may have changed since the model was offered the tool."""
    return turn.session.mode != "auto"


async def _preview_edit(turn: Turn, call: ToolCall, arguments: dict[str, Any]) -> None:
    old, new = await _edited(turn, arguments["path"], arguments["old"], arguments["new"], arguments.get("all") is True)
    await _show_change(call, arguments["path"], old, new)


async def _preview_write(turn: Turn, call: ToolCall, arguments: dict[str, Any]) -> None:
    path, text = arguments["path"], arguments["text"]
    try:
        old = await turn.files.read_text(path) if await turn.files.exists(path) else None
    except (OSError, HoldfastError) as e:
        raise ToolFailed(_explained(e)) from None
    await _show_change(call, path, old, text)


async def _show_change(call: ToolCall, path: str, old: str | None, new: str) -> None:
    if len(old or "") + len(new) <= MAX_DIFF:
        await call.diff(path, old, new)
    else:
        await call.text(f"{path}: a change too long to show")


async def _edited(turn: Turn, path: str, old: str, new: str, all_of_them: bool) -> tuple[str, str]:  # noqa: FBT001
    """Give a file's text before and after an edit."""
    try:
        text = await turn.files.read_text(path)
    except (OSError, HoldfastError) as e:
        raise ToolFailed(_explained(e)) from None
    if old not in text and "\r\n" in text:  # models write lines as they are nowhere but here
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    count = text.count(old) if old else 0
    if count == 0:
        raise ToolFailed(f"{path} does not hold the text that was to be replaced; read it again")
    if count > 1 and not all_of_them:
        raise ToolFailed(f"{path} holds that text {count} times; give more of what is around it, or say all")
    return text, text.replace(old, new)


@_files.tool(
    name="edit",
    metadata=shown(kind="edit", title="Edit {path}", path="path", preview=_preview_edit, asks=_asks),
    sequential=True,
)
async def edit(ctx: RunContext[Turn], path: str, old: str, new: str, *, all: bool = False) -> str:
    """Replace a text in a file by another.

    Args:
        ctx: The run.
        path: The file.
        old: The text to replace, exactly as it is in the file, with enough around it to be found only once.
        new: What to put in its place.
        all: Whether to replace every occurrence.

    """
    _, text = await _edited(ctx.deps, path, old, new, all)
    await ctx.deps.files.write_text(path, text)
    return f"{path} is changed."


@_files.tool(
    name="write",
    metadata=shown(kind="edit", title="Write {path}", path="path", preview=_preview_write, asks=_asks),
    sequential=True,
)
async def write(ctx: RunContext[Turn], path: str, text: str) -> str:
    """Write a whole file: a new one, or in place of the one that is there. To change a part, use edit.

    Args:
        ctx: The run.
        path: The file; directories on the way are made.
        text: All that is to be in it.

    """
    await ctx.deps.files.write_text(path, text)
    return f"{path} is written."


@_files.tool(
    name="run", metadata=shown(kind="execute", title="Run {command}", remember="{command}", asks=_asks), sequential=True
)
async def run(ctx: RunContext[Turn], command: str, timeout: int = 120) -> str:  # noqa: ASYNC109
    """Run a shell command in the working directory and wait for its end. It has no input and no terminal.

    Args:
        ctx: The run.
        command: The command, for a POSIX shell.
        timeout: After so many seconds it is killed.

    """
    del ctx
    shell = shutil.which("bash") or "/bin/sh"
    try:
        async with asyncio.timeout(max(1, timeout)):
            done = await current_call().terminal(shell, "-c", command, env=environment(), limit=MAX_OUTPUT)
    except TimeoutError:
        raise ToolFailed(f"It did not end within {timeout} seconds and was killed") from None
    text = done.output.decode(errors="replace").strip("\n")
    cut = "[only the last of it]\n" if len(done.output) >= MAX_OUTPUT else ""
    return f"{cut}{text}\n[exit status {done.status}]".lstrip("\n")
