"""A session as one file to keep or to share, as `holdfast sessions export` writes it: without secrets unless asked."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holdfast.document.session_document import DocumentWriter
from holdfast.redaction.redact import Redactor
from holdfast.store.entries import read_entries
from holdfast_app.export.markdown import MarkdownWriter
from holdfast_app.export.page import PageWriter
from holdfast_app.web.requests import Answer, PageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.model import SessionInfo
    from holdfast.store import Library
    from holdfast_app.export import Writer
    from holdfast_app.web.requests import PageRequest

_WRITERS: dict[str, tuple[Callable[[], Writer], str, str]] = {
    "html": (PageWriter, "text/html; charset=utf-8", "html"),
    "markdown": (MarkdownWriter, "text/markdown; charset=utf-8", "md"),
    "json": (DocumentWriter, "application/json", "json"),
}


async def export_session(library: Library, info: SessionInfo, request: PageRequest) -> Answer:
    """Return a session as a file to download."""
    chosen = _WRITERS.get(request.query.get("format", "html"))
    if chosen is None:
        raise PageError(400, f"There is no such format; there are {', '.join(_WRITERS)}")
    make, content_type, suffix = chosen
    redacts = request.query.get("secrets") != "keep"
    text = await written(library, info, make(), redacts=redacts)
    title = (Redactor().info(info) if redacts else info).title or "session"  # the name of a file says it too (P10)
    name = re.sub(r"[^A-Za-z0-9-]+", "-", title)[:60].strip("-") or "session"
    headers = (("content-disposition", f'attachment; filename="{name}.{suffix}"'),)
    return Answer(text.encode(errors="replace"), content_type, headers=headers, cache="no-store")


async def written(library: Library, info: SessionInfo, writer: Writer, *, redacts: bool) -> str:
    """Return a whole session as a writer writes it; without what looks like a secret where it `redacts`."""
    redactor = Redactor()
    seen = await library.snapshot(info.id)
    about = seen.record.info, seen.record.state
    pieces = [writer.opening(*(redactor.session(*about) if redacts else about))]
    async for _, entry in read_entries(library, seen):
        pieces.append(writer.entry(redactor.entry(entry) if redacts else entry))
    return "".join([*pieces, writer.closing(redactor.count)])
