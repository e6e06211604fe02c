"""Sharing a session from the page, and the page as an app: its files are kept, and it tells when a session waits."""

from __future__ import annotations

import gzip
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import TYPE_CHECKING, ClassVar

import pytest

from app.tests.support.web_process import WebProcess, new_session, say
from holdfast_app.web.assets import all_assets

if TYPE_CHECKING:
    from pathlib import Path

    from app.tests.support.browser import Browser

pytestmark = pytest.mark.timeout(300)

BAD = ("error", "violation", "dialog")
KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2


@pytest.mark.requirement("P10", "P12")
def test_a_session_is_shared_without_its_secrets_until_the_link_is_revoked(browser: Browser, tmp_path: Path) -> None:
    with WebProcess(tmp_path) as web, browser.page() as page, browser.page() as stranger:
        web.sign_in(page)
        new_session(page, web.project)
        say(page, f"my token is {KEY}")
        page.sees(".entry.agent >> text=You said: my token")
        page.click("#session-menu")
        page.click("role=menuitem[name='Share…']")
        page.click("dialog >> text=Make a link")
        page.sees(".links li")
        link = page.run("document.querySelector('.new-link input').value")
        web.kill()
        web.start()
        stranger.open(link)
        stranger.sees("text=my token is [redacted")
        assert KEY not in stranger.run("document.documentElement.outerHTML")
        stranger.open(f"{web.base}/")
        assert stranger.count("#rows") == 0 and "my token" not in stranger.text("body")
        page.click(".links button")
        page.until("!document.querySelector('.links li')")
        stranger.open(link)
        stranger.sees("text=There is nothing here")
        assert page.noted(*BAD) == []
        assert stranger.noted("error", "dialog") == []


class OtherSite(BaseHTTPRequestHandler):
    """A page of somebody else, with links to ours."""

    links: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        page = "".join(f"<p><a href='{link}'>a link</a></p>" for link in self.links)
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(page.encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"], ids=["another site", "another port"])
def test_links_on_pages_of_others_lead_to_what_they_name(browser: Browser, tmp_path: Path, host: str) -> None:
    with (
        WebProcess(tmp_path) as web,
        HTTPServer(("127.0.0.1", 0), OtherSite) as elsewhere,
        browser.page() as page,
        browser.page() as stranger,
    ):
        Thread(target=elsewhere.serve_forever, daemon=True).start()
        web.sign_in(page)
        new_session(page, web.project)
        say(page, "hello")
        page.sees(".entry.agent >> text=You said: hello")
        page.click("#session-menu")
        page.click("role=menuitem[name='Share…']")
        page.click("dialog >> text=Make a link")
        page.sees(".links li")
        OtherSite.links = [
            page.run("document.querySelector('.new-link input').value"),
            page.run("location.href") + "#l1",
        ]
        for reader in (stranger, page):
            reader.open(f"http://{host}:{elsewhere.server_port}/")
            reader.click("a >> nth=0")
            reader.sees(".entry.agent >> text=You said: hello")
        page.open(f"http://{host}:{elsewhere.server_port}/")
        page.click("a >> nth=1")
        page.sees(".found >> text=You said: hello")
        stranger.open(f"http://{host}:{elsewhere.server_port}/")
        stranger.click("a >> nth=1")
        stranger.sees("role=heading[name='Sign in']")
        elsewhere.shutdown()
        assert page.noted(*BAD) == stranger.noted(*BAD) == []


def test_the_page_is_an_app_that_keeps_its_files_and_tells_who_waits(browser: Browser, tmp_path: Path) -> None:
    with WebProcess(tmp_path) as web, browser.page(permissions=["notifications"]) as page:
        web.sign_in(page)
        manifest = page.run("fetch(document.querySelector('link[rel=manifest]').href).then(answer => answer.json())")
        for icon in manifest["icons"]:
            assert page.run(f"fetch('{icon['src']}').then(answer => answer.ok)")
        assert page.run("navigator.serviceWorker.ready.then(worker => worker.scope)") == f"{web.base}/"
        new_session(page, web.project)
        page.call(["reload"])
        kept = "caches.open('holdfast-assets').then(store => store.keys()).then(all => all.map(each => each.url))"
        page.until(f"{kept}.then(all => all.length > 3)")
        assert all(address.startswith(f"{web.base}/assets/") for address in page.run(kept))
        page.until("document.querySelector('hf-session')?.dataset.state")
        page.run("Object.defineProperty(document, 'hidden', {get: () => true})")
        say(page, "/run")
        page.sees(".question")
        shown = (
            "navigator.serviceWorker.ready.then(worker => worker.getNotifications()).then(all => all.map(n => n.title))"
        )
        page.until(f"{shown}.then(all => all.length === 1)")
        assert page.run(shown) == ["/run waits for you"]
        page.click(".question button[value=reject_once]")
        page.until(f"{shown}.then(all => all.length === 0)")
        assert page.noted(*BAD) == []


def test_the_page_is_small() -> None:
    sizes = {
        name: len(gzip.compress(asset.body, 9)) for name, asset in all_assets().items() if name[-2:] in ("js", "ss")
    }
    assert sum(sizes.values()) <= 60 * 1024, sizes
