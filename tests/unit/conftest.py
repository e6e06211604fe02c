"""What tests of the client library share."""

from __future__ import annotations

import pytest


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait only briefly for agents that never do what they are asked to."""
    monkeypatch.setattr("holdfast.client.open_session.PATIENCE", 0.3)
    monkeypatch.setattr("holdfast.client.connecting.EXIT_SECONDS", 0.3)
