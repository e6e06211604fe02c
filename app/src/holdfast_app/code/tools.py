"""The tools of the coding agent: read, change files, run commands. Files only inside the session's directories (P9)."""

from __future__ import annotations

import asyncio
import re
import shutil
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic_ai import FunctionToolset, RunContext, ToolFailed, WrapperToolset

from holdfast.errors import HoldfastError
from holdfast.integrations.pydantic_ai import current_call, tool_display
from holdfast.subprocesses.environment import DEVELOPMENT, passed_environment

if TYPE_CHECKING:
    from pydantic_ai import ToolsetTool

    from holdfast.agent import ToolCall, Turn

CHANGING = frozenset({"edit", "write", "run"})
"""The tools that change something: not offered in mode `ask`, asked for in mode `code`."""

SKIPPED = (".git", ".hg", ".venv", "node_modules", "__pycache__")
"""Directories that are skipped by searches and patterns."""

MAX_LINES = 2000
MAX_CHARACTERS = 100_000
"""The most that the model reads at once…"""
MAX_FOUND = 200
MAX_LISTED = 1000
MAX_OUTPUT = 30_000
"""…and the most that it is told of the output of a command, the end of it."""
MAX_DIFF = 1 << 20
"""The longest texts, together, of which a diff is shown."""


class CodingTurn(NamedTuple):
    """What the tools work with."""

    turn: Turn
    pass_env: tuple[str, ...] = ()
    """The environment variables that commands get, besides the usual ones."""


_files = FunctionToolset[CodingTurn](id="files")


class FileErrorsToModel(WrapperToolset[CodingTurn]):
    """Tells the model what went wrong with a file, instead of ending the turn."""

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[CodingTurn], tool: ToolsetTool[CodingTurn]
    ) -> Any:
        """Call a tool. Raises `ToolFailed` for errors of files."""
        try:
            return await super().call_tool(name, tool_args, ctx, tool)
        except (OSError, HoldfastError) as e:
            raise ToolFailed(_explain(e)) from None


tools: FileErrorsToModel = FileErrorsToModel(_files)


def _explain(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


# Looking


@_files.tool(name="read", metadata=tool_display(kind="read", title="Read {path}", path="path"))
async def read(ctx: RunContext[CodingTurn], path: str, line: int = 1, limit: int = MAX_LINES) -> str:
    """Read a text file.

    Args:
        ctx: The run.
        path: The file, relative to the working directory or absolute.
        line: The number of the first line to read, from 1.
        limit: How many lines to read.

    """
    limit = max(1, min(limit, MAX_LINES))
    text = await ctx.deps.turn.files.read_text(path, line=max(1, line), limit=limit)
    if len(text) > MAX_CHARACTERS:
        return f"{text[:MAX_CHARACTERS]}\n[cut off: the lines are very long; read fewer]"
    if text.count("\n") >= limit:
        return f"{text}[there may be more; go on with line={max(1, line) + limit}]"
    return text or "[there is nothing in it]"


@_files.tool(name="list", metadata=tool_display(kind="read", title="List {path}", path="path"))
async def list_files(ctx: RunContext[CodingTurn], path: str = ".", pattern: str = "") -> str:
    """List a directory, or find files by a pattern.

    Args:
        ctx: The run.
        path: The directory.
        pattern: If given, files beneath it whose paths match, as `**/*.py`; otherwise everything directly in it.

    """
    files = ctx.deps.turn.files
    if pattern:
        where = pattern if path in ("", ".") else f"{path.rstrip('/')}/{pattern}"
        found = await files.glob(where, limit=MAX_LISTED, skip=SKIPPED)
        names, more = list(found), found.truncated
    else:
        entries = await files.list(path or ".", limit=MAX_LISTED)
        names = [entry.name + ("/" if entry.kind == "directory" else "") for entry in entries]
        more = entries.truncated
    return "\n".join([*names, "[and more]"] if more else names) or "[nothing]"


@_files.tool(name="search", metadata=tool_display(kind="search", title="Search for {text}"))
async def search(
    ctx: RunContext[CodingTurn], text: str, path: str = ".", glob: str = "*", *, ignore_case: bool = False
) -> str:
    """Find the lines that hold a text, in a file or in all text files beneath a directory.

    Args:
        ctx: The run.
        text: What to look for, literally (no regular expression), within one line.
        path: The file or directory.
        glob: Which files, as `*.py`.
        ignore_case: Whether upper and lower case are the same.

    """
    found = await ctx.deps.turn.files.search(
        text, path or ".", glob=glob or "*", ignore_case=ignore_case, limit=MAX_FOUND, skip=SKIPPED
    )
    lines = [f"{match.path}:{match.line}: {match.text}" for match in found]
    return "\n".join([*lines, "[and more]"] if found.truncated else lines) or "[nothing]"


# Changing: one after the other, in the order in which the model wants it. What a call is going to do is shown whole
# before the user is asked (P13).


def _asks(turn: Turn) -> bool:
    """Return whether the user is asked now. The mode may have changed since the model was offered the tool."""
    return turn.session.mode != "auto"


async def _preview_edit(turn: Turn, call: ToolCall, arguments: dict[str, Any]) -> None:
    path, old, new, every = arguments["path"], arguments["old"], arguments["new"], arguments.get("all") is True
    before, after = await _edited(turn, path, old, new, every)
    if len(before) + len(after) <= MAX_DIFF:
        await call.diff(path, before, after)
    elif len(old) + len(new) <= MAX_DIFF:  # of a large file, the change alone
        where = "everywhere" if every else "once"
        await call.text(f"In {path}, replace {where}\n\n{_fenced(old)}\n\nby\n\n{_fenced(new)}")
    else:
        await _show_no_diff(turn, call, path)


async def _preview_write(turn: Turn, call: ToolCall, arguments: dict[str, Any]) -> None:
    path, new = arguments["path"], arguments["text"]
    try:
        old = await turn.files.read_text(path) if await turn.files.exists(path) else None
    except (OSError, HoldfastError) as e:
        raise ToolFailed(_explain(e)) from None
    if len(old or "") + len(new) <= MAX_DIFF:
        await call.diff(path, old, new)
    elif len(new) <= MAX_DIFF:  # of what is overwritten, only how much it is
        await call.text(f"Replace the {len(old or ''):,} characters of {path} by\n\n{_fenced(new)}")
    else:
        await _show_no_diff(turn, call, path)


async def _preview_run(_turn: Turn, call: ToolCall, arguments: dict[str, Any]) -> None:
    """Show a command as it is, where its title, which is one line, cannot."""
    command = str(arguments.get("command", ""))
    if call.title != f"Run {command.strip()}":
        await call.text(_fenced(command, "sh"))


async def _show_no_diff(turn: Turn, call: ToolCall, path: str) -> None:
    """Refuse a change that is too long to show if the user would be asked: nobody can allow what nobody sees."""
    if _asks(turn):
        raise ToolFailed(f"The change of {path} is too long to be shown to the user. Make it in smaller parts.")
    await call.text(f"{path}: a change too long to show")


def _fenced(text: str, language: str = "") -> str:
    """Return a text as a code block, with a fence that is not in it."""
    fence = "`" * max(3, 1 + max((len(found) for found in re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


async def _edited(turn: Turn, path: str, old: str, new: str, every: bool) -> tuple[str, str]:  # noqa: FBT001
    """Return a file's text before and after an edit. Raises `ToolFailed` if there is not one place for it."""
    try:
        text = await turn.files.read_text(path)
    except (OSError, HoldfastError) as e:
        raise ToolFailed(_explain(e)) from None
    if old not in text and "\r\n" in text:  # models write other line ends than the file has
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    count = text.count(old) if old else 0
    if count == 0:
        raise ToolFailed(f"{path} does not hold the text that was to be replaced; read it again")
    if count > 1 and not every:
        raise ToolFailed(f"{path} holds that text {count} times; give more of what is around it, or say all")
    return text, text.replace(old, new)


@_files.tool(
    name="edit",
    metadata=tool_display(kind="edit", title="Edit {path}", path="path", preview=_preview_edit, asks=_asks),
    sequential=True,
)
async def edit(ctx: RunContext[CodingTurn], path: str, old: str, new: str, *, all: bool = False) -> str:
    """Replace a text in a file by another.

    Args:
        ctx: The run.
        path: The file.
        old: The text to replace, exactly as it is in the file, with enough around it to be found only once.
        new: What to put in its place.
        all: Whether to replace every occurrence.

    """
    _, text = await _edited(ctx.deps.turn, path, old, new, all)
    await ctx.deps.turn.files.write_text(path, text)
    return f"{path} is changed."


@_files.tool(
    name="write",
    metadata=tool_display(kind="edit", title="Write {path}", path="path", preview=_preview_write, asks=_asks),
    sequential=True,
)
async def write(ctx: RunContext[CodingTurn], path: str, text: str) -> str:
    """Write a whole file: a new one, or in place of the one that is there. To change a part, use edit.

    Args:
        ctx: The run.
        path: The file; directories on the way are made.
        text: All that is to be in it.

    """
    await ctx.deps.turn.files.write_text(path, text)
    return f"{path} is written."


@_files.tool(
    name="run",
    metadata=tool_display(
        kind="execute", title="Run {command}", remember="{command}", preview=_preview_run, asks=_asks
    ),
    sequential=True,
)
async def run(ctx: RunContext[CodingTurn], command: str, timeout: int = 120) -> str:  # noqa: ASYNC109
    """Run a shell command in the working directory and wait for its end. It has no input and no terminal.

    Args:
        ctx: The run.
        command: The command, for a POSIX shell.
        timeout: After so many seconds it is killed.

    """
    shell = shutil.which("bash") or "/bin/sh"
    environment = passed_environment(DEVELOPMENT, ctx.deps.pass_env)
    try:
        async with asyncio.timeout(max(1, timeout)):
            done = await current_call().terminal(shell, "-c", command, env=environment, limit=MAX_OUTPUT)
    except TimeoutError:
        raise ToolFailed(f"It did not end within {timeout} seconds and was killed") from None
    text = done.output.decode(errors="replace").strip("\n")
    cut = "[only the last of it]\n" if len(done.output) >= MAX_OUTPUT else ""
    return f"{cut}{text}\n[exit status {done.status}]".lstrip("\n")
