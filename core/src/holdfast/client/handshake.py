"""`initialize`: who we are, and which protocol version the agent speaks (A7, A8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from holdfast.client.dialect import dialect_for
from holdfast.errors import InvalidAnswer, RemoteError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.client.dialect import Dialect
    from holdfast.client.services import Services
    from holdfast.model import Update
    from holdfast.peer import Peer

ProtocolChoice: TypeAlias = Literal["auto", 1, 2]


class ClientInfo(NamedTuple):
    """How a client names itself to the agent; without a version it has that of Holdfast."""

    name: str = "holdfast"
    version: str | None = None
    meta: Mapping[str, Any] | None = None
    terminal_logins: bool = False
    """Whether it lets the user log in by a program in a terminal."""


async def negotiate(peer: Peer, services: Services, client: ClientInfo, protocol: ProtocolChoice) -> Dialect:
    """Send `initialize` and return the dialect the agent answers in.

    Raises `InvalidAnswer` if that is not the version asked for, or one that is unknown here.
    """
    first = 1 if protocol == 1 else 2
    try:
        answer = await _initialize(peer, services, client, first, both=protocol == "auto")
    except InvalidAnswer:
        raise
    except RemoteError:  # some agents of version 1 refuse whoever asks for version 2
        if protocol != "auto":
            raise
        answer = await _initialize(peer, services, client, 1, both=False)
    version = answered_version(answer)
    if protocol not in ("auto", version):
        raise InvalidAnswer(
            f'The agent speaks protocol version {version}, not {protocol}; connect with protocol="auto"'
        )
    return dialect_for(version, answer)


async def _initialize(peer: Peer, services: Services, client: ClientInfo, version: int, *, both: bool) -> Update:
    """Ask for a version; with `both`, say what either version wants to know, as the agent may answer in version 1."""
    from importlib.metadata import version as installed_version  # noqa: PLC0415

    from holdfast.surface.v1.agent import initialize_params as params_v1  # noqa: PLC0415
    from holdfast.surface.v2.agent import initialize_params as params_v2  # noqa: PLC0415

    params: Update = {"protocolVersion": version}
    about = (client.name, client.version or installed_version("holdfast-core"))
    asks = services.questions is not None
    if version == 1 or both:
        files = services.files is not False
        params |= params_v1(*about, files=files, terminals=services.terminals, questions=asks)
    if version == 2:
        params |= params_v2(*about, questions=asks)
    if client.terminal_logins:
        markers: Update = {"clientCapabilities": True, "capabilities": {}}
        for name in markers.keys() & params.keys():
            params[name] = {**params[name], "auth": {"terminal": markers[name]}}
    if client.meta is not None:
        params["_meta"] = dict(client.meta)
    return await peer.request("initialize", params, result=dict[str, Any])


def answered_version(answer: Update) -> int:
    """Return the version an answer is in: agents exist that say 2 and mean 1."""
    version = answer.get("protocolVersion", 1)
    if not isinstance(version, int) or version not in (1, 2):  # before version 1 they were texts
        raise InvalidAnswer(f"The agent speaks protocol version {str(version)[:20]}; Holdfast speaks 1 and 2")
    looks_like_1 = "agentCapabilities" in answer or "agentInfo" in answer
    return 2 if version == 2 and not looks_like_1 and ("info" in answer or "capabilities" in answer) else 1
