"""One browser for all tests of a process, started by the first that needs one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.tests.support.browser import Browser

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Return the browser."""
    browser = Browser()
    yield browser
    browser.close()
