"""What a version 2 agent has said it can do, and how it is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from holdfast.model import Update

VERSION = 2

_CONTENT = {"image": "image", "audio": "audio", "resource": "embeddedContext"}
_BASELINE = frozenset({"list", "load", "resume", "close"})
"""What an agent can do that has sessions at all."""


def introduction(name: str, version: str, *, questions: bool) -> Update:
    """Say who we are and what we can do, as `initialize` wants it."""
    capabilities: Update = {"elicitation": {"form": {}, "url": {}}} if questions else {}
    return {"info": {"name": name, "version": version}, "capabilities": capabilities}


class Agent:
    """One agent, by its answer to `initialize`."""

    version = VERSION

    def __init__(self, answer: Update) -> None:
        info = _object(answer, "info")
        self.name = str(info.get("name") or "")
        self.title = str(info["title"]) if info.get("title") else None
        self.release = str(info.get("version") or "")
        self.capabilities = _object(answer, "capabilities")
        methods = answer.get("authMethods")
        listed = cast("list[Any]", methods) if isinstance(methods, list) else []
        self.auth_methods = tuple(_method(cast("Update", it)) for it in listed if isinstance(it, dict))
        self._session = _object(self.capabilities, "session")

    def can(self, what: str) -> bool:
        """Say whether it has said that it can do something."""
        if what in _BASELINE:
            return isinstance(self.capabilities.get("session"), dict)
        if what in _CONTENT:
            return _object(self._session, "prompt").get(_CONTENT[what]) is not None
        return self._session.get(what) not in (None, False)

    def login(self, method_id: str) -> tuple[str, Update]:
        """Say which request logs in."""
        return "auth/login", {"methodId": method_id}

    def new(self, roots: Update) -> tuple[str, Update]:
        """Say which request begins a session."""
        return "session/new", _roots(roots)

    def load(self, session_id: str, roots: Update) -> tuple[str, Update]:
        """Say which request brings a session back with its past; the early draft had one of its own (B9)."""
        if "load" in self._session and "resume" not in self._session:
            return "session/load", {"sessionId": session_id, **_roots(roots)}
        return "session/resume", {"sessionId": session_id, "replayFrom": {"type": "start"}, **_roots(roots)}

    def resume(self, session_id: str, roots: Update) -> tuple[str, Update]:
        """Say which request brings a session back without its past."""
        return "session/resume", {"sessionId": session_id, **_roots(roots)}

    def fork(self, session_id: str, roots: Update) -> tuple[str, Update]:
        """Say which request forks a session."""
        return "session/fork", {"sessionId": session_id, **_roots(roots)}


def _roots(roots: Update) -> Update:
    """Say `mcpServers` as version 2 does: each has a type."""
    servers: list[Update] = roots["mcpServers"]
    typed = [{"type": "stdio", **it} if "command" in it and it.get("type") is None else it for it in servers]
    return {**roots, "mcpServers": typed}


def _method(it: Update) -> Update:
    return {"id": it.get("methodId"), **it}


def _object(holder: Update, name: str) -> Update:
    value = holder.get(name)
    return cast("Update", value) if isinstance(value, dict) else {}
