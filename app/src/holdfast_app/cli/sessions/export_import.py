"""`holdfast sessions export` and `import`: sessions as files."""

from __future__ import annotations

import io
import os
import re
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from holdfast_app.cli import output
from holdfast_app.cli.store_arguments import absolute, find_sessions, here, on_store, sessions_argument, short_id

if TYPE_CHECKING:
    from collections.abc import Generator

    from holdfast.document.session_document import ReadSession
    from holdfast.model import SessionInfo
    from holdfast.store import SessionStore
    from holdfast_app.export import Writer

FORMATS = {"markdown": ".md", "html": ".html", "json": ".json"}


@click.command("export")
@sessions_argument
@click.option(
    "--format", "as_format", type=click.Choice(list(FORMATS)), help="Default: by the name of FILE, or markdown."
)
@click.option(
    "-o",
    "--output",
    "target",
    metavar="FILE",
    help="Where to write (default: stdout); of several sessions, a directory.",
)
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@click.option("--no-redact", is_flag=True, help="Leave passwords, keys and tokens in.")
@on_store()
async def export(
    store: SessionStore,
    *,
    sessions: tuple[str, ...],
    as_format: str | None,
    target: str | None,
    force: bool,
    no_redact: bool,
    as_json: bool,
) -> None:
    """Write SESSIONS as files that need nothing else, one each: Markdown or HTML to read, JSON to import again.

    What looks like a password, a key or a token is taken out, and it is said how many were. That finds what is usual,
    not everything: look at the file before you share it. Files can be read by you alone. JSON has everything that is
    stored, so that `import` makes a session of it again. --json is short for --format json.
    """
    found = await find_sessions(store, sessions)
    named = next((name for name, suffix in FORMATS.items() if target and target.endswith(suffix)), "markdown")
    chosen = as_format or ("json" if as_json else named)
    for info, path in zip(found, _targets(target, found, chosen, redacts=not no_redact), strict=True):
        with _written(path, force=force) as file:
            count = await _export(store, info, chosen, file, redacts=not no_redact)
        if count:
            said = f"{output.plural(count, 'secret was', 'secrets were')} taken out; --no-redact leaves them in."
            output.tell(f"{short_id(info.id)}: {said}")
        if path is not None:
            output.tell(f"{short_id(info.id)} is now in {path}{_PRIVATE}")


_PRIVATE = "; nobody but you can read it" if sys.platform != "win32" else ""


async def _export(store: SessionStore, info: SessionInfo, as_format: str, file: TextIO, *, redacts: bool) -> int:
    """Write a session; return how many secrets were taken out."""
    from holdfast.redaction.redact import Redactor  # noqa: PLC0415
    from holdfast.store.entries import read_entries  # noqa: PLC0415

    writer, redactor = _writer(as_format), Redactor()
    seen = await store.snapshot(info.id)
    about = seen.record.info, seen.record.state
    file.write(writer.opening(*(redactor.session(*about) if redacts else about)))
    with output.working(f"Writing {short_id(info.id)}", seen.record.lines if file is not sys.stdout else None) as done:
        async for _, entry in read_entries(store, seen):
            file.write(writer.entry(redactor.entry(entry) if redacts else entry))
            done(1)
    file.write(writer.closing(redactor.count))
    return redactor.count


def _writer(as_format: str) -> Writer:
    match as_format:
        case "html":
            from holdfast_app.export.page import PageWriter  # noqa: PLC0415

            return PageWriter()
        case "json":
            from holdfast.document.session_document import DocumentWriter  # noqa: PLC0415

            return DocumentWriter()
        case _:
            from holdfast_app.export.markdown import MarkdownWriter  # noqa: PLC0415

            return MarkdownWriter()


def _targets(
    target: str | None, sessions: list[SessionInfo], as_format: str, *, redacts: bool
) -> list[Path] | list[None]:
    """Return where each session is written; None is stdout. Titles become names of files, without secrets (P10)."""
    from holdfast.errors import UsageError  # noqa: PLC0415
    from holdfast.redaction.redact import Redactor  # noqa: PLC0415

    path = None if target is None or target == "-" else Path(target)
    if path is not None and path.is_dir():
        named = [Redactor().info(info) if redacts else info for info in sessions]
        return [path / _file_name(info, as_format) for info in named]
    if len(sessions) > 1:
        raise UsageError("name a directory for the files of several sessions: -o DIR")
    return [None] if path is None else [path]


def _file_name(info: SessionInfo, as_format: str) -> str:
    words = "-".join(re.findall(r"[^\W_]+", (info.title or "session").lower()))[:50].strip("-")
    return f"{words or 'session'}-{short_id(info.id)}{FORMATS[as_format]}"


@contextmanager
def _written(target: Path | None, *, force: bool) -> Generator[TextIO]:
    """Open a file to write to, for the user alone. It is there when all of it is written, or not at all."""
    from holdfast.errors import UsageError  # noqa: PLC0415

    if target is None:
        stdout: TextIO = sys.stdout
        if isinstance(stdout, io.TextIOWrapper):
            stdout.reconfigure(encoding="utf-8")  # a file is the same wherever it is written
        yield sys.stdout
        return
    if target.exists() and not force:
        raise UsageError(f"{target} is there already; --force writes over it")
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        private = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(private, "w", encoding="utf-8", newline="\n") as file:
            yield file
        unfinished.replace(target)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


@click.command("import")
@click.argument("files", nargs=-1, type=click.Path(allow_dash=True))
@click.option(
    "--from",
    "source",
    type=click.Choice(["claude", "codex", "gemini", "opencode"]),
    help="Read what this agent has kept itself, instead of FILES.",
)
@click.option(
    "--home", metavar="DIR", help="With --from: the agent's own directory, as ~/.claude (default: the usual one)."
)
@click.option("--agent", metavar="NAME", help="With --from: the name that you wrap the agent with (`wrap --name`).")
@click.option(
    "--cwd",
    metavar="DIR",
    callback=absolute,
    help="The directory that the sessions shall belong to (default: the current one).",
)
@on_store(makes=True)
async def import_(
    store: SessionStore,
    *,
    files: tuple[str, ...],
    source: str | None,
    home: str | None,
    agent: str | None,
    cwd: str | None,
    as_json: bool,
) -> int:
    """Add sessions from FILES that `export --format json` wrote (`-` is stdin), or from an agent's own files.

    \b
      holdfast sessions import talk.json
      holdfast sessions import --from claude                  what Claude Code has kept
      holdfast sessions import --from gemini --agent gemini   for `holdfast wrap --name gemini -- …`

    With --from the agent's files are only read. Sessions keep their directories and belong to the agent, so that
    `holdfast wrap` lists them and goes on with them. What was imported before is left alone: run it again at any time,
    also after an interruption. With --json: {"agent", "sessions": [{"sessionId", "agentSessionId", "cwd"}, …],
    "present": number, "refused": [{"file", "reason"}, …]}.

    A session in FILES that is here already, with the same history and title, is left alone. If another one has its id,
    it gets a new one. A file gives no rights: it is imported into the current directory or --cwd, with the default mode
    and options, without additional directories, without the agent's memory, and the agent asks again for what was
    allowed for ever. What was reset is said. With --json: {"sessions": [{"file", "sessionId", "result": "imported" |
    "present" | "renumbered", "cwd", "reset": [what was]}, …], "refused": [{"file", "reason"}, …]}.
    """  # noqa: D301  (where `\b` stands, click keeps the lines)
    from holdfast.errors import UsageError  # noqa: PLC0415

    if source is not None:
        if files or cwd:
            raise UsageError(
                "--from reads the agent's own files, into their own directories: leave out FILES and --cwd"
            )
        from holdfast_app.cli.sessions.import_agent import import_agent, tell_imported  # noqa: PLC0415

        done = await import_agent(store, source, Path(home) if home else None, agent)
        tell_imported(source, done, as_json=as_json)
        return 1 if done.errors else 0
    if not files or home or agent:
        raise UsageError("import which FILES? --home and --agent go with --from, as in `import --from claude`")
    return await _import_files(store, files, cwd, as_json=as_json)


async def _import_files(store: SessionStore, files: tuple[str, ...], cwd: str | None, *, as_json: bool) -> int:
    from holdfast.errors import HoldfastError  # noqa: PLC0415

    results: list[dict[str, Any]] = []
    target = cwd or await here(store)
    with output.working("Importing", len(files)) as done:
        for name in files:
            try:
                results.append({"file": name, **await _import(store, _read(name), target)})
            except HoldfastError as e:
                results.append({"file": name, "error": str(e)})
            done(1)
    for result in results:
        if "error" in result:
            output.tell(f"holdfast: {result['file']} was not imported: {result['error']}")
        elif not as_json:
            _tell_imported(result)
    if as_json:
        refused = [{"file": result["file"], "reason": result["error"]} for result in results if "error" in result]
        imported = [result for result in results if "error" not in result]
        output.say(output.json_text({"sessions": imported, "refused": refused}))
    return 1 if any("error" in result for result in results) else 0


_IMPORTED = {
    "imported": "{sessionId} was imported from {file}",
    "present": "{sessionId} is here already, the same as in {file}",
    "renumbered": "{sessionId} was imported from {file}; another session has the id it had",
}
_RESET = {
    "cwd": "the directory",
    "options": "mode and options",
    "permissions": "what was allowed for ever",
    "memory": "the agent's memory",
    "additionalDirectories": "additional directories",
}


def _tell_imported(result: dict[str, Any]) -> None:
    output.say(_IMPORTED[result["result"]].format_map(result))
    if result.get("reset"):
        output.say(f"  Reset, for a file gives no rights: {', '.join(_RESET[name] for name in result['reset'])}")


def _read(name: str) -> bytes:
    from holdfast.errors import UsageError  # noqa: PLC0415

    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as e:
        raise UsageError(f"it cannot be read ({e.strerror})") from None


async def _import(store: SessionStore, data: bytes, cwd: str) -> dict[str, Any]:
    """Add the session of a document to the store; return what became of it."""
    import msgspec  # noqa: PLC0415

    from holdfast.document.session_document import read_document  # noqa: PLC0415
    from holdfast.errors import SessionNotFound  # noqa: PLC0415
    from holdfast.format import lines_of  # noqa: PLC0415
    from holdfast.model import new_session_id  # noqa: PLC0415

    read = read_document(data, cwd)
    info = msgspec.structs.replace(read.info, updated_at=min(read.info.updated_at, time.time_ns() // 1_000))
    result = "imported"
    try:
        there = (await store.snapshot(info.id)).record
    except SessionNotFound:
        if not _ID.fullmatch(info.id):
            info = msgspec.structs.replace(info, id=new_session_id())
            result = "renumbered"
    else:
        if await _is_same(store, there.info, read):
            return {"sessionId": info.id, "result": "present", "cwd": there.info.cwd, "reset": []}
        info = msgspec.structs.replace(info, id=new_session_id())
        result = "renumbered"
    await store.add(info, read.state, lines_of(read.history))
    reset = [*(["cwd"] if read.cwd != cwd else ()), *read.reset]
    return {"sessionId": info.id, "result": result, "cwd": cwd, "reset": reset}


_ID = re.compile(r"sess_[0-9a-f]{32,64}")
"""The pattern of our own ids; another one might be guessed, and is replaced."""


async def _is_same(store: SessionStore, there: SessionInfo, read: ReadSession) -> bool:
    """Return whether a stored session has the title and the history that was read."""
    from itertools import zip_longest  # noqa: PLC0415

    from holdfast.document.session_document import encoded  # noqa: PLC0415
    from holdfast.store.entries import read_entries  # noqa: PLC0415

    if there.title != read.info.title:
        return False
    seen = await store.snapshot(there.id)
    stored = [list(encoded(numbered.entry)) async for numbered in read_entries(store, seen)]
    pairs = zip_longest(stored, (list(encoded(entry)) for entry in read.history))
    return all(theirs == ours for theirs, ours in pairs)
