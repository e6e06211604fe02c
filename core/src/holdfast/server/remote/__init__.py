"""An agent over the network: WebSocket and HTTP, who may come in, how much each may take.

`RemoteServer` is one ASGI application that runs anywhere; `holdfast.server.remote.serving` runs it on our own uvicorn,
which can do more (`direct`). It is given a host and never looks behind it, as every server here.
"""

from holdfast.server.remote.application import RemoteServer
from holdfast.server.remote.authentication import Authenticator, Credential, Everybody, TokenFile
from holdfast.server.remote.limits import RemoteLimits
from holdfast.server.remote.names import Names, names_for
from holdfast.server.remote.requests import RemoteRequest
from holdfast.server.remote.sign_in import SignIn
from holdfast.server.remote.workspaces import Workspaces

__all__ = [
    "Authenticator",
    "Credential",
    "Everybody",
    "Names",
    "RemoteLimits",
    "RemoteRequest",
    "RemoteServer",
    "SignIn",
    "TokenFile",
    "Workspaces",
    "names_for",
]
