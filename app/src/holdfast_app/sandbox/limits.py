"""How much one process of an agent may take, in the words of people and of the system."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, Self

from holdfast.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_AMOUNT = re.compile(r"(\d+)\s*([kmg]?)i?b?", re.IGNORECASE)

_OF_THE_SYSTEM = {
    "memory": "RLIMIT_AS",
    "processes": "RLIMIT_NPROC",
    "files": "RLIMIT_NOFILE",
    "cpu": "RLIMIT_CPU",
    "file_size": "RLIMIT_FSIZE",
}


class ProcessLimits(NamedTuple):
    """What a process and its children are held to by the system; None is no limit but the server's own."""

    memory: int | None = None
    """Bytes of address space of each process. Some runtimes, as Node's, reserve many gigabytes that they never use."""
    processes: int | None = None
    """Processes and threads of its user, all together."""
    files: int | None = None
    """Open files of each process."""
    cpu: int | None = None
    """Seconds of each process on the processor."""
    file_size: int | None = None
    """Bytes of a file that it writes."""

    @classmethod
    def parse(cls, given: Mapping[str, object]) -> Self:
        """Read limits as people write them, as ``{"memory": "2G", "file-size": "100M"}``; raise `UsageError`."""
        amounts: dict[str, int] = {}
        for written, value in given.items():
            name = written.replace("-", "_")
            amount = _AMOUNT.fullmatch(str(value).strip())
            if name not in cls._fields or amount is None:
                known = ", ".join(field.replace("_", "-") for field in cls._fields)
                raise UsageError(f"{written}={value} is no limit; there are {known}, as memory=2G")
            amounts[name] = int(amount[1]) * _UNITS[amount[2].lower()]
        return cls(**amounts)

    def of_the_system(self) -> dict[str, int]:
        """Return them by the names that the system has for them."""
        return {_OF_THE_SYSTEM[name]: value for name, value in self._asdict().items() if value is not None}
