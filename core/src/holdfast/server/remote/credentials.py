"""With what somebody was let in, and whether that still holds (F3).

Everything that stays open is bound to a `Credential`, not to a name: a name that is given a new token is not the old
token again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from holdfast.server.remote.authentication import Authenticator, Credential, Everybody, RevokingAuthenticator

if TYPE_CHECKING:
    from holdfast.server.remote.requests import RemoteRequest


@runtime_checkable
class CredentialAuthenticator(Authenticator, Protocol):
    """Tells credentials apart, so that one can be revoked and another of the same principal stays."""

    async def credential(self, request: RemoteRequest) -> Credential | None:
        """Return with what a request is made; None where it is not known, and the request gets 401."""
        ...

    def holds(self, credential: Credential) -> bool:
        """Return whether a credential is still valid. It is called twice a second for all that are in use."""
        ...


class Credentials:
    """The credentials of any authenticator. One that knows names alone has one credential for each name."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator

    async def of(self, request: RemoteRequest) -> Credential | None:
        """Return with what a request is made, if that is known."""
        asked = self._authenticator
        if isinstance(asked, CredentialAuthenticator):
            return await asked.credential(request)
        principal = await asked.principal(request)
        if principal is None:
            return None
        return Credential(principal, "" if isinstance(asked, Everybody) else principal)

    def hold(self, credential: Credential) -> bool:
        """Return whether a credential is still valid."""
        asked = self._authenticator
        if not credential.id or isinstance(asked, Everybody):
            return isinstance(asked, Everybody)
        if isinstance(asked, CredentialAuthenticator):
            return asked.holds(credential)
        is_name = credential.id == credential.principal
        return is_name and (not isinstance(asked, RevokingAuthenticator) or asked.knows(credential.principal))
