"""Links with which others read one session, and nothing else."""

from __future__ import annotations

import gzip
import time
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from core.tests.support.stores import info, lines
from holdfast.errors import UsageError
from holdfast.model import SessionState
from holdfast.store import open_store
from holdfast_app.share_links import SharedPages, ShareLinks
from holdfast_app.share_links import pages as pages_module

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.store import SessionStore

KEY = "sk-ant-api03-" + "Zq8" * 30


class Reader:
    """Somebody who opens links."""

    def __init__(self, store: SessionStore, links: ShareLinks) -> None:
        async def opened() -> SessionStore:
            return store

        self._pages = SharedPages(opened, links)

    async def get(self, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        async def receive() -> Any:
            raise AssertionError("nothing is read")

        fields = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        await self._pages({"type": "http", "method": method, "path": path, "headers": fields}, receive, send)
        got = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        assert [message["more_body"] for message in sent[1:]][-1] is False
        return sent[0]["status"], got, b"".join(message["body"] for message in sent[1:])


def said(text: str) -> Any:
    return {"sessionUpdate": "user_message", "messageId": "m1", "content": [{"type": "text", "text": text}]}


@pytest.mark.requirement("P10", "P12")
async def test_a_link_shows_one_session_without_its_secrets(tmp_path: Path) -> None:
    store, links = await open_store(str(tmp_path / "s.db")), ShareLinks(tmp_path / "shares")
    about = msgspec.structs.replace(info(), principal="ada")
    await store.add(about, SessionState(), lines(*[said(f"my key is {KEY} <script>")]))
    reader = Reader(store, links)
    secret, link = links.add(about.id, "ada", 3600)
    whole, _ = links.add(about.id, "ada", 3600, redacts=False)
    foreign, _ = links.add(about.id, "eve", 3600)

    status, headers, page = await reader.get(f"/share/{secret}", accept_encoding="gzip")
    page = gzip.decompress(page)
    assert status == 200 and b"my key is [redacted" in page and KEY.encode() not in page and b"<script>" not in page
    assert headers["cache-control"] == "no-store" and headers["referrer-policy"] == "no-referrer"
    assert KEY.encode() in (await reader.get(f"/share/{whole}"))[2]
    assert (await reader.get(f"/share/{secret}", method="HEAD"))[2] == b""

    links.revoke(link)
    nothing = [await reader.get(path) for path in (f"/share/{secret}", f"/share/{foreign}", "/share/", "/share/../x")]
    await store.delete(about.id)
    nothing += [await reader.get(f"/share/{whole}"), await reader.get(f"/share/{link.id}")]
    assert len({msgspec.json.encode([status, headers, body.decode()]) for status, headers, body in nothing}) == 1
    assert nothing[0][0] == 404
    await store.close()


async def test_a_long_session_comes_piece_by_piece(tmp_path: Path) -> None:
    store, links = await open_store(str(tmp_path / "s.db")), ShareLinks(tmp_path / "shares")
    about = info()
    await store.add(
        about, SessionState(), lines(*[{**said("word " * 2_000), "messageId": f"m{number}"} for number in range(60)])
    )
    secret, _ = links.add(about.id, about.principal, 3600)
    _, _, page = await Reader(store, links).get(f"/share/{secret}")
    assert page.count(b"<article") == 60 and page.endswith(b"</html>\n")
    await store.close()


async def test_a_link_that_is_opened_too_often_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages_module, "PACE", 0.0)
    store, links = await open_store(str(tmp_path / "s.db")), ShareLinks(tmp_path / "shares")
    about = info()
    await store.add(about, SessionState(), lines(*[said("hello")]))
    secret, _ = links.add(about.id, about.principal, 3600)
    reader = Reader(store, links)
    statuses = [(await reader.get(f"/share/{secret}"))[0] for _ in range(int(pages_module.BURST) + 1)]
    assert set(statuses[:-1]) == {200} and statuses[-1] == 429
    await store.close()


def test_links_survive_and_expire_and_no_secret_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret, link = ShareLinks(tmp_path / "shares").add("s1", "ada", 3600)
    links = ShareLinks(tmp_path / "shares")
    assert links.find(secret) == link and links.links("ada", "s1") == [link]
    assert links.links("eve") == links.links("ada", "s2") == [] and links.find(secret + "x") is None
    (stored,) = (tmp_path / "shares").iterdir()
    assert secret not in stored.read_text() + stored.name and stored.stat().st_mode & 0o077 == 0
    later = time.time() + 3601
    monkeypatch.setattr(time, "time", lambda: later)
    assert links.find(secret) is None and links.links() == [] and not stored.exists()


def test_a_link_lasts_neither_for_ever_nor_for_no_time(tmp_path: Path) -> None:
    for seconds in (0, 59, 400 * 24 * 3600, float("inf")):
        with pytest.raises(UsageError):
            ShareLinks(tmp_path).add("s1", "ada", seconds)


@pytest.mark.parametrize("secret", ["../../etc/passwd", "\0", "\ud800", "a/b", "x" * 10_000, ""])
def test_a_strange_secret_finds_nothing(secret: str, tmp_path: Path) -> None:
    assert ShareLinks(tmp_path).find(secret) is None
