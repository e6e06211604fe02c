"""`initialize`, for a client: the agent is told what the client can do, and answers in its own version (G1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.errors import InvalidAnswer, RemoteError
from holdfast.model.agents import STORES

if TYPE_CHECKING:
    from holdfast.model import ClientInfo, Update
    from holdfast.peer import Peer


async def initialize(
    peer: Peer, client: ClientInfo, served: frozenset[str] = frozenset(), store_mark: str | None = None
) -> Update:
    """Ask an agent for the version that the client speaks; one that refuses version 2 is asked for version 1.

    `served` is what a server has for the agent in the place of its clients: ``read``, ``write``, ``terminal``.
    `store_mark` stands for the store that the agent's sessions are kept in.
    """
    params = initialize_params(client)
    if store_mark is not None:
        params["_meta"] = _with_mark(params.get("_meta") or {}, store_mark)
    if served:
        params["clientCapabilities"] = served_capabilities(1, served)
    try:
        return await peer.request("initialize", params, result=dict[str, Any])
    except InvalidAnswer:
        raise
    except RemoteError:
        if client.protocol == 1:
            raise
    return await peer.request("initialize", {**params, "protocolVersion": 1}, result=dict[str, Any])


def _with_mark(meta: Update, mark: str) -> Update:
    """Return `_meta` with one more store: the Holdfasts before us have named theirs."""
    before: object = meta.get(STORES)
    return {**meta, STORES: [*(before if isinstance(before, list) else ()), mark]}


def initialize_params(client: ClientInfo) -> Update:
    """Return the parameters of `initialize`; for version 2 those of version 1 too, as the agent may answer in that."""
    about: Update = {"name": client.name or "holdfast", "version": client.version or "0"}
    if client.title is not None:
        about["title"] = client.title
    params: Update = {"protocolVersion": client.protocol, "clientInfo": about}
    if client.protocol == 1:
        params["clientCapabilities"] = client.capabilities
    else:
        params |= {"info": about, "capabilities": client.capabilities}
        params["clientCapabilities"] = _as_version_1(client.capabilities)
    return params if client.meta is None else {**params, "_meta": client.meta}


def served_capabilities(version: int, served: frozenset[str]) -> Update:
    """Return what a server that serves files and terminals says of itself, in place of its clients (H11)."""
    elicitation: Update = {"elicitation": {"form": {}, "url": {}}}
    if version == 2:
        return elicitation  # which has neither files nor terminals of clients
    files = {"readTextFile": "read" in served, "writeTextFile": "write" in served}
    return {**_as_version_1(elicitation), "fs": files, "terminal": "terminal" in served}


def _as_version_1(capabilities: Update) -> Update:
    """Return in version 1's words what a client of version 2 can do: it has no files and no terminals to offer."""
    lowered: Update = {
        "fs": {"readTextFile": False, "writeTextFile": False},
        "terminal": False,
        "session": {"configOptions": {"boolean": {}}, "notices": {}, "compaction": {}},
    }
    if "elicitation" in capabilities:
        lowered["elicitation"] = capabilities["elicitation"]
    if "auth" in capabilities:
        lowered["auth"] = {"terminal": "terminal" in (capabilities["auth"] or ())}
    return lowered
