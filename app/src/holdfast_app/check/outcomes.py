"""How a script can end other than well. All of these are caught by the runner; none leaves the package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.errors import without_chatter

if TYPE_CHECKING:
    from holdfast_app.check.wire import Wire


class CheckFailed(Exception):
    """The agent did something else than is required."""

    def __init__(self, expected: str, seen: str, where: tuple[Wire, int] | None = None) -> None:
        super().__init__(f"expected {expected}, saw {seen}")
        self.expected = expected
        self.seen = seen
        self.where = where
        """The conversation in which it was seen, and how many of its frames show it: the last of them is the one."""


class NotTested(Exception):
    """What is needed to test it did not happen."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class NotAdvertised(NotTested):
    """The agent does not say that it can do this."""


class Refused(Exception):
    """A request was answered with an error; or, raised by an answerer, is to be."""

    def __init__(self, method: str, code: object, message: str) -> None:
        super().__init__(f"{method} was refused with {code}: {message[:300]}")
        self.code = code
        self.message = message


class NoAnswer(Exception):
    """The agent did not answer in time."""


class AgentGone(Exception):
    """The agent's output ended."""

    def __init__(self, what: str, stderr: str) -> None:
        last = without_chatter(stderr)[-500:]
        super().__init__(f"{what}; its last words: {last}" if last else what)
