"""`observe_wire`: what a connection shows its messages to, where the user wants to see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast_app.chat.settings import ChatSettings


def observe_wire(
    settings: ChatSettings, show: Callable[[str], object]
) -> Callable[[Literal["in", "out"], bytes], None] | None:
    """Return a function for `connect(on_frame=…)` that shows messages or writes them to a file; None for neither."""
    if not settings.wire and settings.wire_file is None:
        return None
    from holdfast.diagnostics.wire_log import WireLog, line_writer  # noqa: PLC0415  (few want to see it)

    write = show if settings.wire_file is None else line_writer(settings.wire_file)
    return WireLog("client", write).observe_frame
