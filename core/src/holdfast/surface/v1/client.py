"""What a version 1 client has said it can do."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from holdfast.model import Update

_CAPABILITIES = {"plan_update": "plan", "subagent_update": "subagents"}
"""By kind of update, the capability of clients that understand it; both are unstable."""


class Client:
    """The capabilities of one client, as questions."""

    __slots__ = ("_session", "capabilities", "services")

    def __init__(self, capabilities: Update) -> None:
        self.capabilities: Update = capabilities
        self._session: Update = _object(capabilities, "session")
        files = _object(capabilities, "fs")
        offered = {
            "read": files.get("readTextFile") is True,
            "write": files.get("writeTextFile") is True,
            "terminal": capabilities.get("terminal") is True,
        }
        self.services: frozenset[str] = frozenset(name for name, can in offered.items() if can)
        """Of ``read``, ``write`` and ``terminal``, what it does for the agent."""

    @property
    def switches(self) -> bool:
        """Whether it knows options that are on or off (D3)."""
        return isinstance(_object(self._session, "configOptions").get("boolean"), dict)

    def wants(self, kind: str) -> bool:
        """Return whether the client asked for updates of a kind that not every client understands."""
        if kind == "notice":
            return isinstance(self._session.get("notices"), dict)
        if kind in ("compaction_update", "compaction_summary_chunk"):
            return isinstance(self._session.get("compaction"), dict)
        if kind in _CAPABILITIES:
            return isinstance(self.capabilities.get(_CAPABILITIES[kind]), dict)
        return False


def _object(holder: Update, name: str) -> Update:
    value = holder.get(name)
    return cast("Update", value) if isinstance(value, dict) else {}
