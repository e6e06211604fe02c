"""The history of a session as a client holds it."""

from __future__ import annotations

from holdfast.model import History


class SessionHistory(History):
    """Messages, tool calls, plans, terminals in the order of their first appearance, folded as the agent folds them."""

    __slots__ = ()

    def markdown(self) -> str:
        """Return the conversation as Markdown, to read or to keep.

        Returns:
            The text.

        """
        from holdfast.view.transcript import markdown  # noqa: PLC0415  (only programs that print a transcript need it)

        return markdown(self)
