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
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.model import LOCAL

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

log: logging.Logger = logging.getLogger(__name__)

PRINCIPAL = "{principal}"

_NAME = re.compile(r"(?!\.{1,2}$)[^/\\\0]{1,200}")
"""Names that can be a directory's. An authenticator may give others, which then have none."""


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
        self.on_made: Callable[[str, Path], None] | None = None
        """Is called with the principal and a directory that was made for it."""

    def of(self, principal: str) -> tuple[str, ...] | None:
        """Return the directories of a principal, or None where it may work anywhere."""
        templates = () if self._named is None else tuple(self._named(principal))
        templates = templates or self._given
        if not templates and principal in self._anywhere:
            return None
        if not templates and self._own is not None:
            templates = (str(self._own / PRINCIPAL),)
        return tuple(self._made(principal, template) for template in templates if _has_room(template, principal))

    def _made(self, principal: str, template: str) -> str:
        """Return a directory of a principal's, which is made if its name is the principal's and it is not there."""
        directory = Path(template.replace(PRINCIPAL, principal))
        if PRINCIPAL in template and not directory.exists():
            try:
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                if self.on_made is not None:
                    self.on_made(principal, directory)
            except OSError as e:
                log.error("A directory of a principal cannot be made: %s", e)  # noqa: TRY400  (no trace is needed)
        return str(directory)


def _has_room(template: str, principal: str) -> bool:
    """Return whether the name of a principal can stand where a template has it."""
    return PRINCIPAL not in template or _NAME.fullmatch(principal) is not None
