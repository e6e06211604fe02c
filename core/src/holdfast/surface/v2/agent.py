"""What a version 2 agent has said it can do, and how it is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from holdfast.surface.description import FORK_AT, MCP

if TYPE_CHECKING:
    from holdfast.model import Update

VERSION = 2

_CONTENT = {"image": "image", "audio": "audio", "resource": "embeddedContext"}
_BASELINE = frozenset({"list", "load", "resume", "close"})
"""The abilities of every agent that has sessions. In the early draft, an agent advertised each of them."""


def initialize_params(name: str, version: str, *, questions: bool) -> Update:
    """Return what a client tells an agent about itself, as params of `initialize`."""
    capabilities: Update = {"elicitation": {"form": {}, "url": {}}} if questions else {}
    return {"info": {"name": name, "version": version}, "capabilities": capabilities}


class RemoteAgent:
    """One agent, by its answer to `initialize`."""

    version = VERSION

    def __init__(self, answer: Update) -> None:
        info = _object(answer, "info")
        self.name: str = str(info.get("name") or "")
        self.title: str | None = str(info["title"]) if info.get("title") else None
        self.release: str = str(info.get("version") or "")
        self.capabilities: Update = _object(answer, "capabilities")
        methods = answer.get("authMethods")
        listed = cast("list[Any]", methods) if isinstance(methods, list) else []
        self.auth_methods: tuple[Update, ...] = tuple(
            _method(cast("Update", method)) for method in listed if isinstance(method, dict)
        )
        self._session = _object(self.capabilities, "session")
        self._is_of_early_draft = "load" in self._session  # later drafts have no `session/load` (B9)
        self.mcp_kinds: frozenset[str] = _marked(_object(self._session, "mcp"))
        """The kinds of MCP servers that it connects."""

    def can(self, what: str) -> bool:
        """Return whether the agent has advertised an ability."""
        if what in _BASELINE and not self._is_of_early_draft:
            return isinstance(self.capabilities.get("session"), dict)
        if what.startswith(MCP):
            return what.removeprefix(MCP) in self.mcp_kinds
        if what in _CONTENT:
            return _object(self._session, "prompt").get(_CONTENT[what]) is not None
        if what == "logout":
            return bool(self.auth_methods)  # whoever lets log in lets log out
        if what == "fork_at":
            return FORK_AT in _object(_object(self._session, "fork"), "_meta")
        return self._session.get(what) not in (None, False)

    def login(self, method_id: str) -> tuple[str, Update]:
        """Return the request that logs in."""
        return "auth/login", {"methodId": method_id}

    def logout(self) -> tuple[str, Update]:
        """Return the request that logs out."""
        return "auth/logout", {}

    def new(self, roots: Update) -> tuple[str, Update]:
        """Return the request that creates a session."""
        return "session/new", _roots(roots)

    def load(self, session_id: str, roots: Update) -> tuple[str, Update]:
        """Return the request that brings a session back with its past; the early draft had one of its own (B9)."""
        if self._is_of_early_draft and not self.can("resume"):
            return "session/load", {"sessionId": session_id, **_roots(roots)}
        return "session/resume", {"sessionId": session_id, "replayFrom": {"type": "start"}, **_roots(roots)}

    def resume(self, session_id: str, roots: Update) -> tuple[str, Update]:
        """Return the request that brings a session back without its past."""
        return "session/resume", {"sessionId": session_id, **_roots(roots)}

    def fork(self, session_id: str, roots: Update) -> tuple[str, Update]:
        """Return the request that forks a session."""
        return "session/fork", {"sessionId": session_id, **_roots(roots)}


def _roots(roots: Update) -> Update:
    """Return the roots with `mcpServers` as version 2 wants them: each has a type."""
    servers: list[Update] = roots["mcpServers"]
    return {**roots, "mcpServers": [_server(server) for server in servers]}


def _server(server: Update) -> Update:
    return {"type": "stdio", **server} if "command" in server and server.get("type") is None else server


def _method(method: Update) -> Update:
    """Return a way to log in with the id and the variables as version 1 has them: `id`, and a map by name (C12)."""
    named: Update = {"id": method.get("methodId"), **method}
    if isinstance(env := method.get("env"), list):
        variables = [cast("Update", variable) for variable in cast("list[object]", env) if isinstance(variable, dict)]
        named["env"] = {each["name"]: each["value"] for each in variables if each.keys() >= {"name", "value"}}
    return named


def _marked(abilities: Update) -> frozenset[str]:
    """Return the names of the abilities that have a marker of support."""
    return frozenset(name for name, marker in abilities.items() if name != "_meta" and marker not in (None, False))


def _object(holder: Update, name: str) -> Update:
    value = holder.get(name)
    return cast("Update", value) if isinstance(value, dict) else {}
