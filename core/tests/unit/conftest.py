"""What tests of the client library share."""

from __future__ import annotations

import pytest


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait only briefly for agents that never do what they are asked to."""
    monkeypatch.setattr("holdfast.client.open_session.PATIENCE", 0.3)
    monkeypatch.setattr("holdfast.client.connecting.EXIT_SECONDS", 0.3)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait longer for the rest of a replay: on a busy machine an agent may be held up in the middle of it."""
    monkeypatch.setattr("holdfast.client.open_session.QUIET_SECONDS", 3.0)
