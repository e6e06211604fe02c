"""`holdfast sessions share` and `unshare`."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from app.tests.support.commands import HERE, a_store, live_at, sessions
from holdfast_app.share_links import ShareLinks

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    live_at(tmp_path / "s.db", monkeypatch, tmp_path)
    return tmp_path / "s.db"


def test_a_link_is_made_listed_and_revoked(place: Path) -> None:
    (only,) = asyncio.run(a_store(place, (HERE, ("say hello",))))
    made = json.loads(sessions("share", only, "--for", "2h", "--url", "https://x.example/", "--json").out)
    assert made["link"].startswith("https://x.example/share/") and made["session"] == only and made["redacted"] is True
    secret = made["link"].rpartition("/")[2]
    links = ShareLinks(place.parent / "shares")
    assert links.find(secret) is not None

    whole = sessions("share", only, "--no-redact")
    assert whole.out.startswith("http://127.0.0.1:8190/share/") and "unshare" in whole.err
    listed = sessions("share")
    assert len(listed.out.splitlines()) == 2 and secret not in listed.out and "with secrets" in listed.out

    assert sessions("unshare", made["id"][:8]).status == 0
    assert links.find(secret) is None
    assert sessions("unshare", whole.out.strip()).status == 0
    assert "No session is shared" in sessions("share").err


def test_what_cannot_be_shared_is_refused_with_a_reason(place: Path) -> None:
    (only,) = asyncio.run(a_store(place, (HERE, ("say hello",))))
    assert "30m, 12h, 7d or 4w" in sessions("share", only, "--for", "soon").err
    assert "between a minute and a year" in sessions("share", only, "--for", "99w").err
    assert sessions("share", "nothing-like-it").status == 1
    assert "there is no such link" in sessions("unshare", "abcdef").err
