"""Makes the pictures of the web page and its icons: `python docs/pictures/web.py`. Needs Node, npm install, Chromium.

A real `holdfast web` runs on a store of its own, a real browser talks to an agent (`web_agent.py`) in it, and what is
then on the screen is the picture.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT))

from app.tests.support.browser import Browser, Page  # noqa: E402
from app.tests.support.web_process import WebProcess, new_session, say  # noqa: E402
from core.tests.support.stored_sessions import add_session  # noqa: E402
from holdfast.model import SessionState  # noqa: E402
from holdfast.store import open_store  # noqa: E402

WIDE = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 780}
ASSETS = ROOT / "app" / "src" / "holdfast_app" / "web" / "assets"

PROJECT = Path(tempfile.gettempdir()) / "shop"
"""Where the agent works; its path is in the pictures."""

TESTS = """\
import pytest


@pytest.mark.parametrize("attempts", [1, 2, 3, 10])
def test_every_attempt_is_made(attempts):
    assert len(range(1, attempts + 1)) == attempts
"""

EARLIER = [
    ("Why does the nightly import take four hours?", "gemini", "importer", 38, 1.73),
    ("Move the settings page to the new components", "claude", "storefront", 64, 3.10),
    ("Explain how prices are rounded", "coder", "shop", 6, 0.05),
    ("Write a migration for the orders table", "codex", "shop", 22, 0.88),
    ("Find out who calls the old endpoint", "gemini", "gateway", 14, 0.31),
    ("Flaky test: test_checkout_twice", "claude", "shop", 41, 1.12),
    ("Sketch a plan for the search index", "coder", "search", 9, 0.19),
]
"""Sessions that were there before: title, agent, project, messages, cost."""


async def fill(place: Path) -> None:
    """Put earlier sessions into a store."""
    store = await open_store(str(place))
    now = int(time.time()) - 1_700_000_000
    for number, (title, agent, project, messages, cost) in enumerate(EARLIER):
        usage = {"sessionUpdate": "usage_update", "used": 40_000, "size": 200_000,
                 "cost": {"amount": cost, "currency": "USD"}}  # fmt: skip
        said = [("user" if at % 2 == 0 else "agent", f"{title} ({at})") for at in range(messages)]
        await add_session(
            store, said, title=title, cwd=f"{Path.home()}/{project}", agent=agent,
            at=now - 3_000 - number * number * 7_000, state=SessionState(latest={"usage_update": usage}),
        )  # fmt: skip
    await store.close()


def take(page: Page, name: str) -> None:
    """Take a picture of what is on the screen."""
    page.call(["waitForTimeout", 400])
    page.screenshot(HERE / f"{name}.png")


def pictures(browser: Browser, web: WebProcess) -> None:
    """Go through the page, and take pictures on the way."""
    with browser.page(viewport={"width": 1280, "height": 1040}, colorScheme="light") as page:
        web.sign_in(page)
        new_session(page, web.project)
        say(page, "The retry loop in the client gives up one attempt too early. Can you fix it?")
        page.sees("text=All 4 tests pass.")
        page.until("document.querySelectorAll('.placed[data-line]').length > 7")
        session = page.run("location.pathname")
        page.run("document.activeElement.blur()")
        page.run("document.querySelector('.entry.tool[data-kind=edit] details').open = false")
        page.run("document.querySelector('.entry.terminal details').open = true")
        page.run("scrollTo(0, 0)")
        take(page, "web-session")
        page.call(["setViewportSize", WIDE])
        signed_in = page.signed_in()
        with browser.page(viewport={"width": 1500, "height": 720}, colorScheme="dark", storageState=signed_in) as wide:
            wide.open(f"{web.base}{session}")
            wide.sees(".diff")
            wide.run("document.querySelector('.diff').scrollIntoView({block: 'center'})")
            take(wide, "web-diff")
        page.open(f"{web.base}/")
        new_session(page, web.project)
        say(page, "Prepare the release of 2.4 and publish it")
        page.sees(".question")
        page.run("document.activeElement.blur()")
        page.run("scrollTo(0, document.documentElement.scrollHeight)")
        take(page, "web-permission")
        with browser.page(viewport=PHONE, deviceScaleFactor=1.5, colorScheme="dark", storageState=signed_in) as phone:
            phone.open(page.run("location.href"))
            phone.sees(".question")
            take(phone, "web-phone")
        page.open(f"{web.base}/")
        page.sees("#rows [data-state=requires_action]")
        take(page, "web-list")


def icons(browser: Browser) -> None:
    """Draw the icons of the app."""
    picture = (ASSETS / "icon.svg").read_text()
    for size in (192, 512):
        with browser.page(viewport={"width": size, "height": size}) as page:
            style = f"body {{ margin: 0 }} svg {{ display: block; width: {size}px; height: {size}px }}"
            page.call(["setContent", f"<style>{style}</style>{picture}"])
            page.screenshot(ASSETS / f"icon-{size}.png", omitBackground=True)


def main() -> None:
    """Make all pictures."""
    browser = Browser()
    try:
        icons(browser)
        with tempfile.TemporaryDirectory() as directory:
            web = WebProcess(Path(directory), str(HERE / "web_agent.py"), "coder", project=PROJECT)
            (PROJECT / "test_client.py").write_text(TESTS)
            asyncio.run(fill(web.store))
            try:
                with web:
                    pictures(browser, web)
            finally:
                shutil.rmtree(PROJECT)
    finally:
        browser.close()


if __name__ == "__main__":
    main()
