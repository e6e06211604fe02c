"""Which directories each principal may open sessions in (H10).

Rules, in this order:

- what the file of tokens says of the principal;
- what the server was given for all, where ``{principal}`` in a name stands for theirs;
- those who may work anywhere: the user of this machine, on a server that nobody else can reach;
- a directory of their own, made when it is first needed.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, NamedTuple

from holdfast.errors import UsageError
from holdfast.model import LOCAL
from holdfast.server.access import Access
from holdfast.workspace.allowed import AllowedDirectories

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from concurrent.futures import ThreadPoolExecutor
    from pathlib import Path

    from holdfast.workspace.trusted_path import Owner

log: logging.Logger = logging.getLogger(__name__)

PRINCIPAL = "{principal}"

_NAME = re.compile(r"(?!\.{1,2}$)[^/\\\0]{1,200}")
"""Names that can be a directory's. An authenticator may give others, which then have none."""


class Tenant(NamedTuple):
    """How a principal's agent runs on this machine."""

    owner: Owner | None
    """The user that its directories belong to; None if it is ours."""
    home: str | None
    """The home of its agent; None if it has none of its own."""
    threads: ThreadPoolExecutor | None
    """The threads that touch files for it; None for any."""


class Workspaces:
    """The directories of all principals."""

    def __init__(
        self,
        given: Iterable[str] = (),
        *,
        named: Callable[[str], Sequence[str]] | None = None,
        own: Path | None = None,
        anywhere: Collection[str] = (LOCAL,),
    ) -> None:
        """Say who may work where.

        Args:
            given: directories for everybody; ``{principal}`` in one is replaced by the name.
            named: returns what is said of one principal by name, as `TokenFile.workspaces`.
            own: where directories of principals lie that were given none; without it they may work nowhere.
            anywhere: who may work anywhere as long as nothing else is said.

        """
        self._given = tuple(given)
        self._named = named
        self._own = own
        self._anywhere = frozenset(anywhere)
        self.tenant_of: Callable[[str], Tenant] | None = None
        """Tells how the agent of a principal runs, if a launcher starts it; raises `UsageError` if it cannot."""

    def of(self, principal: str) -> AllowedDirectories | None:
        """Return the directories of a principal, which are made if they have its name; None if it may work anywhere."""
        return self._directories(principal, self._tenant(principal))

    def access(self, principal: str, *, programs: bool = False) -> Access:
        """Return what a principal may use of this machine; `programs`: MCP servers that its clients name."""
        tenant = self._tenant(principal)
        allowed = self._directories(principal, tenant)
        return Access(allowed, starts_programs=programs or allowed is None, threads=tenant and tenant.threads)

    def _directories(self, principal: str, tenant: Tenant | None) -> AllowedDirectories | None:
        templates = () if self._named is None else tuple(self._named(principal))
        templates = templates or self._given
        if not templates and principal in self._anywhere:
            return None
        if not templates and self._own is not None:
            templates = (str(self._own / PRINCIPAL),)
        named = {
            template: template.replace(PRINCIPAL, principal) for template in templates if _has_room(template, principal)
        }
        closed = () if tenant is None or tenant.home is None else (tenant.home,)
        directories = AllowedDirectories(named.values(), closed=closed)
        if self.tenant_of is None or tenant is not None:
            own = [name for template, name in named.items() if name != template]
            directories.make(own, None if tenant is None else tenant.owner)
        return directories

    def _tenant(self, principal: str) -> Tenant | None:
        if self.tenant_of is None:
            return None
        try:
            return self.tenant_of(principal)
        except UsageError as e:  # whoever starts an agent for him is told so too
            log.error("Nothing is made for a principal: %s", e)  # noqa: TRY400  (no trace is needed)
            return None


def _has_room(template: str, principal: str) -> bool:
    """Return whether the name of a principal can stand where a template has it."""
    return PRINCIPAL not in template or _NAME.fullmatch(principal) is not None
