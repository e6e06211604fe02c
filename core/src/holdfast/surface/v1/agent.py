"""What a version 1 agent has said it can do, and how it is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from holdfast.surface.description import FORK_AT, MCP

if TYPE_CHECKING:
    from holdfast.model import Update

VERSION = 1

_CONTENT = {"image": "image", "audio": "audio", "resource": "embeddedContext"}

CANCEL = "session/cancel"
CLOSE = "session/close"
DELETE = "session/delete"
LIST = "session/list"
PROMPT = "session/prompt"


def initialize_params(name: str, version: str, *, files: bool, terminals: bool, questions: bool) -> Update:
    """Return what a client tells an agent about itself, as params of `initialize`."""
    capabilities: Update = {
        "fs": {"readTextFile": files, "writeTextFile": files},
        "terminal": terminals,
        "session": {"configOptions": {"boolean": {}}, "notices": {}, "compaction": {}},
    }
    if questions:
        capabilities["elicitation"] = {"form": {}, "url": {}}
    return {"clientInfo": {"name": name, "version": version}, "clientCapabilities": capabilities}


class RemoteAgent:
    """One agent, by its answer to `initialize`."""

    version = VERSION

    def __init__(self, answer: Update) -> None:
        info = _object(answer, "agentInfo")
        self.name: str = str(info.get("name") or "")
        self.title: str | None = str(info["title"]) if info.get("title") else None
        self.release: str = str(info.get("version") or "")
        self.capabilities: Update = _object(answer, "agentCapabilities")
        methods = answer.get("authMethods")
        listed = cast("list[Any]", methods) if isinstance(methods, list) else []
        self.auth_methods: tuple[Update, ...] = tuple(
            cast("Update", method) for method in listed if isinstance(method, dict)
        )
        self._session = _object(self.capabilities, "sessionCapabilities")
        advertised = _object(self.capabilities, "mcpCapabilities")
        self.mcp_kinds: frozenset[str] = frozenset(
            {"stdio", *(kind for kind in advertised if advertised[kind] is True)}
        )
        """The kinds of MCP servers that it connects; every agent connects those on stdio."""

    def can(self, what: str) -> bool:
        """Return whether the agent has advertised an ability."""
        if what == "load":
            return self.capabilities.get("loadSession") is True
        if what in _CONTENT:
            return _object(self.capabilities, "promptCapabilities").get(_CONTENT[what]) is True
        if what.startswith(MCP):
            return what.removeprefix(MCP) in self.mcp_kinds
        if what == "logout":
            return _object(self.capabilities, "auth").get("logout") not in (None, False)
        if what == "fork_at":
            return FORK_AT in _object(_object(self._session, "fork"), "_meta")
        return self._session.get(what) not in (None, False)

    def login(self, method_id: str) -> tuple[str, Update]:
        """Return the request that logs in."""
        return "authenticate", {"methodId": method_id}

    def logout(self) -> tuple[str, Update]:
        """Return the request that logs out."""
        return "logout", {}

    def new(self, roots: Update) -> tuple[str, Update]:
        """Return the request that creates a session."""
        return "session/new", _roots(roots)

    def load(self, session_id: str, roots: Update) -> tuple[str, Update]:
        """Return the request that brings a session back with its past."""
        return "session/load", {"sessionId": session_id, **_roots(roots)}

    def resume(self, session_id: str, roots: Update) -> tuple[str, Update]:
        """Return the request that brings a session back without its past."""
        return "session/resume", {"sessionId": session_id, **_roots(roots)}

    def fork(self, session_id: str, roots: Update) -> tuple[str, Update]:
        """Return the request that forks a session."""
        return "session/fork", {"sessionId": session_id, **_roots(roots)}


def _roots(roots: Update) -> Update:
    """Return the roots with `mcpServers` as version 1 wants them: those on stdio have no type (B2)."""
    servers: list[Update] = roots["mcpServers"]
    return {**roots, "mcpServers": [_server(server) for server in servers]}


def _server(server: Update) -> Update:
    if server.get("type") == "stdio":
        server = {name: value for name, value in server.items() if name != "type"}
    return {"args": [], "env": [], **server} if "command" in server else server


def _object(holder: Update, name: str) -> Update:
    value = holder.get(name)
    return cast("Update", value) if isinstance(value, dict) else {}
