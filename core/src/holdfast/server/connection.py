"""`ClientConnection`: negotiates the version and knows who asks, then lets the dialect of that version speak."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.errors import AuthRequired, InvalidRequest, SessionNotFound, UnsupportedVersion
from holdfast.model import LOCAL, AgentDescription, ClientInfo, Scope
from holdfast.model.agents import SAME_STORE, STORES
from holdfast.peer import Peer, Routes
from holdfast.server.access import Access
from holdfast.server.audit import audited
from holdfast.server.positions import ASKED, PROCESS, InMeta
from holdfast.surface import air

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.jsonrpc import Request
    from holdfast.peer import Observer, PeerLimits
    from holdfast.server.audit import AuditLog
    from holdfast.server.dialect import Dialect
    from holdfast.server.host import Host
    from holdfast.server.positions import PositionTelling, SeenUpTo
    from holdfast.transport import Transport

log: logging.Logger = logging.getLogger(__name__)


class _Implementation(msgspec.Struct):
    """What a client calls itself."""

    name: str | None = None
    version: str | None = None
    title: str | None = None


class _Initialize(msgspec.Struct, rename="camel"):
    """What every version's `initialize` has in common."""

    protocol_version: int
    client_capabilities: dict[str, Any] | None = None
    client_info: _Implementation | None = None
    capabilities: dict[str, Any] | None = None
    info: _Implementation | None = None
    meta: dict[str, Any] | None = msgspec.field(name="_meta", default=None)


class ClientConnection:
    """One client's connection to a host: its version, its principal, its login, and the sessions it has open."""

    def __init__(
        self,
        host: Host,
        transport: Transport,
        *,
        principal: str = LOCAL,
        limits: PeerLimits | None = None,
        is_only: bool = False,
        access: Access | None = None,
        on_frame: Observer | None = None,
    ) -> None:
        self.host = host
        self.principal = principal
        self.is_only = is_only
        """Whether the host ends with it: its turns are then cancelled, otherwise they go on without it."""
        self.access: Access = access or Access()
        """What it may use of this machine (H10)."""
        self.peer: Peer = Peer(transport, self._first_routes(), limits=limits)
        if on_frame is not None:
            self.peer.observe(on_frame)
        self.info: ClientInfo = ClientInfo(protocol=0)
        """What the client said about itself."""
        self.description: AgentDescription = AgentDescription(name="")
        """What the agent says about itself to this client."""
        self.scope: Scope = Scope(principal, "")
        """Whose sessions this client may see (F1)."""
        self.login_needed: bool = False
        """Whether the client has to log in before anything else."""
        self._logged_in_here = False
        self.positions: PositionTelling | None = None
        """How the client is told positions, if it is (H4)."""
        self.audit: AuditLog | None = None
        """Where it is noted what the client does (H11)."""
        self.max_sessions: int | None = None
        """How many sessions the client may have open at once; None is any number."""
        self._dialect: Dialect | None = None

    async def run(self) -> None:
        """Serve until the client is gone."""
        try:
            await self.peer.run()
        finally:
            if self._dialect is not None:
                self._dialect.leave()

    async def resume_at(self, session_id: str, seen: SeenUpTo) -> None:
        """Show a client again, from where it was cut, a session that it has open (H4).

        Raises a `RequestError` where that is not possible: it has to load the session.
        """
        if self._dialect is None:
            raise SessionNotFound(session_id)
        await self._dialect.resume_at(session_id, seen)

    def reopen(self, session_id: str, cwd: str, additional: Sequence[str]) -> None:
        """Note a session that the client had open before this process began."""
        assert self._dialect is not None
        self._dialect.reopen(session_id, cwd, additional)

    def record(self, did: str, /, **what: Any) -> None:
        """Note what the client's principal did, where that is wanted (H11)."""
        if self.audit is not None:
            self.audit.record(did, self.principal, client=self.info.name, **what)

    # Logging in: each connection by itself (C12)

    async def log_in(self, method_id: str) -> None:
        """Log in by one of the agent's methods."""
        await self.host.port.log_in(method_id, self)
        self.login_needed = False
        self._logged_in_here = True

    async def log_out(self) -> None:
        """Log out."""
        self.login_needed = self.description.auth_required
        self._logged_in_here = False
        await self.host.port.log_out(self)

    async def check_login(self) -> None:
        """Raise `AuthRequired` before what may not be done without a login."""
        if self.login_needed and not await self._is_logged_in_elsewhere():
            methods = [method.id for method in self.description.auth_methods]
            how = "" if methods else ": this agent's ways to log in need a client that starts it in a terminal"
            raise AuthRequired(f"Log in first{how}", {"methods": methods})
        self.login_needed = False

    async def auth_state(self) -> str:
        """Return the state of the login in the words of `auth/status`."""
        if self._logged_in_here or await self._is_logged_in_elsewhere():
            return "authenticated"
        return "unauthenticated" if self.login_needed else "not_required"

    async def _is_logged_in_elsewhere(self) -> bool:
        """Return whether the agent knows of a login that this connection has not made, as one in a terminal."""
        if self.description.logged_in is None:
            return False
        try:
            return await self.description.logged_in()
        except Exception:
            log.exception("The agent could not say whether the user is logged in")
            return False

    # What an agent may use of the client, in no session

    async def request(self, method: str, params: Mapping[str, Any]) -> Any:
        """Send the client a request and return its result."""
        return msgspec.json.decode(await self.peer.request(method, params))

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send the client a notification."""
        self.peer.notify(method, params)

    # Beginning

    def _first_routes(self) -> Routes:
        routes = Routes(fallback=_not_yet)
        self._route_initialize(routes)
        return routes

    def _route_initialize(self, routes: Routes) -> None:
        method = "proxy/initialize" if self.host.in_chain else "initialize"
        routes.request(method, self._initialize, _Initialize, ordered=True)
        if self.host.in_chain:
            routes.request("initialize", _not_in_a_chain)

    async def _initialize(self, params: _Initialize) -> object:
        version = self._negotiate(params.protocol_version)
        if self._dialect is None or self._dialect.version != version:
            if self._dialect is not None:
                self._dialect.leave()
            self.info = _client_info(version, params)
            self.host.introduce(self.info.name)
            if self.positions is None and (params.meta or {}).get(ASKED) is True:
                self.positions = InMeta(self.peer)
            self.description = await self.host.port.describe(self)
            if self.description.protocol is not None and self.description.protocol != version:
                version = self.description.protocol
                self.info = _client_info(version, params)
            self.scope = Scope(self.principal, self.description.name)
            self.login_needed = self.description.auth_required
            self._dialect = self._speak(version)
            routes = self._dialect.routes()
            self._route_initialize(routes)  # some send it twice (A6)
            if self.audit is not None:
                audited(routes, self.record)
            self.peer.routes = routes
        answer = self._dialect.initialized()
        if self._dialect.has_index:
            answer["_meta"] = air.with_capabilities(answer.get("_meta") or {}, air.SERVED)
        if isinstance(self.positions, InMeta):
            answer["_meta"] = {**(answer.get("_meta") or {}), PROCESS: self.host.process}
        if self.host.is_in((params.meta or {}).get(STORES)):
            answer["_meta"] = {**(answer.get("_meta") or {}), SAME_STORE: True}
        return answer

    def _negotiate(self, asked: int) -> int:
        """Choose the highest version that both sides speak (A7, A8)."""
        spoken = [version for version in self.host.versions if version <= asked]
        if spoken:
            return max(spoken)
        if self.host.versions == (2,) or asked < 1:
            supported = list(self.host.versions)
            raise UnsupportedVersion(
                f"This agent does not speak protocol version {asked}", {"requested": asked, "supported": supported}
            )
        return 1

    def _speak(self, version: int) -> Dialect:
        # Only the version that is spoken is loaded.
        if version == 1:
            from holdfast.server.v1 import Version1  # noqa: PLC0415

            return Version1(self)
        from holdfast.server.v2 import Version2  # noqa: PLC0415

        return Version2(self)


def _client_info(version: int, params: _Initialize) -> ClientInfo:
    capabilities = params.client_capabilities if version == 1 else params.capabilities
    named = (params.client_info if version == 1 else params.info) or _Implementation()
    return ClientInfo(
        protocol=version,
        capabilities=capabilities or {},
        name=named.name,
        version=named.version,
        title=named.title,
        meta=params.meta,
    )


async def _not_in_a_chain(_: msgspec.Raw) -> object:
    raise InvalidRequest("A conductor is expected here, with `wrap/initialize`; or run `holdfast wrap -- COMMAND`")


async def _not_yet(request: Request) -> object:
    raise InvalidRequest(f"{request.method[:100]} came before initialize")
