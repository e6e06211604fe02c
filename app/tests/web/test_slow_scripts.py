"""The page before its scripts are here, as on a slow line: what one does then is not lost."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from app.tests.support.web_process import WebProcess, is_ready, new_session, say
from core.tests.support.stored_sessions import add_session
from holdfast.store import open_store

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from app.tests.support.browser import Browser, Page

pytestmark = pytest.mark.timeout(300)

BAD = ("error", "complaint", "violation", "dialog")
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63606060"
    "000000040001f61738550000000049454e44ae426082"
)


async def three_sessions(place: Path) -> None:
    store = await open_store(str(place))
    for number, agent in enumerate(("page-agent", "other", "page-agent")):
        said = [("user", f"question {number}"), ("agent", f"answer topic{number}")]
        await add_session(store, said, title=f"Session {number}", cwd=f"/work/{number}", agent=agent, at=number)
    await store.close()


@pytest.fixture(name="web")
def running(tmp_path: Path) -> Generator[WebProcess]:
    web = WebProcess(tmp_path)
    asyncio.run(three_sessions(web.store))
    with web:
        yield web


@pytest.fixture(name="page")
def signed_in(web: WebProcess, browser: Browser) -> Generator[Page]:
    with browser.page(serviceWorkers="block") as page:
        web.sign_in(page)
        yield page
        assert page.noted(*BAD) == []


def open_library(page: Page, web: WebProcess) -> None:
    page.open_without("**/library.js", f"{web.base}/", "#rows .row")


def open_session(page: Page, address: str) -> None:
    page.open_without("**/session.js", address, "#prompt")


def test_a_filter_that_was_chosen_is_used(page: Page, web: WebProcess) -> None:
    open_library(page, web)
    page.call(["locator", "#filters select[name=agent]"], ["selectOption", "other"])
    page.let_go()
    page.until("location.search === '?agent=other'")
    page.until("document.querySelectorAll('#rows .row').length === 1")


def test_words_that_were_typed_are_searched_for(page: Page, web: WebProcess) -> None:
    open_library(page, web)
    page.click("#search")
    page.type("topic1")
    page.let_go()
    page.sees("#rows mark >> text=topic1")
    assert page.run("document.querySelector('#search').value") == "topic1"


def test_a_button_that_was_pressed_does_what_it_says(page: Page, web: WebProcess) -> None:
    open_library(page, web)
    page.click("#rows li:nth-child(2) [data-menu]")
    page.let_go()
    page.click("role=menuitem[name='Rename…']")
    page.sees("dialog[open] input")
    assert page.run("document.querySelector('dialog[open] input').value") == "Session 1"


def test_keys_that_were_pressed_count(page: Page, web: WebProcess) -> None:
    open_library(page, web)
    for key in ("j", "j", "m"):
        page.press(key)
    page.let_go()
    page.sees("role=menu")
    assert page.run("document.querySelector('[aria-expanded=true]').dataset.menu") == page.run(
        "document.querySelector('#rows li:nth-child(2)').dataset.id"
    )


def test_a_new_session_is_begun(page: Page, web: WebProcess) -> None:
    open_library(page, web)
    page.click("#new")
    page.let_go()
    page.until("document.querySelector('#new-session').open")


def test_more_sessions_are_a_page_of_their_own(page: Page, web: WebProcess) -> None:
    asyncio.run(many_sessions(web.store))
    open_library(page, web)
    page.call(["locator", "text=More sessions"], ["click", {"noWaitAfter": True}])
    page.until("location.search.includes('cursor=')")
    page.sees("#filters")
    page.let_go()
    assert page.count("#rows .row") == 13


async def many_sessions(place: Path) -> None:
    store = await open_store(str(place))
    for number in range(60):
        await add_session(store, [("user", "hello")], title=f"Another {number}", cwd="/work", at=100 + number)
    await store.close()


def test_what_was_written_stays_and_enter_sends_it(page: Page, web: WebProcess) -> None:
    new_session(page, web.project)
    address = page.run("location.href")
    open_session(page, address)
    page.click("#prompt")
    page.type("written early")
    page.press("Enter")
    page.let_go()
    page.sees(".entry.agent >> text=You said: written early")
    assert page.run("document.querySelector('#prompt').value") == ""
    assert page.run("location.href") == address


def test_what_was_written_behind_a_draft_stays_with_it_and_the_button_sends_both(page: Page, web: WebProcess) -> None:
    new_session(page, web.project)
    page.fill("#prompt", "a draft and ")
    address = page.run("location.href")
    open_session(page, address)
    page.click("#prompt")
    page.type("more")
    page.click("#send")
    page.let_go()
    page.sees(".entry.agent >> text=You said: a draft and more")
    assert page.run("location.href") == address, "nothing that is said comes into an address"


def test_the_bar_of_a_session_works(page: Page, web: WebProcess) -> None:
    new_session(page, web.project)
    say(page, "hello there")
    page.sees(".entry.agent >> text=You said: hello there")
    page.until("document.querySelectorAll('.placed[data-line]').length === 2")
    address = page.run("location.href")
    open_session(page, address)
    page.fill("#find", "hello")
    page.press("Enter", "#find")
    page.click("#reading")
    page.let_go()
    page.sees(".found >> text=hello there")
    assert page.run("document.body.classList.contains('reading')")
    open_session(page, address)
    page.press("c")
    page.type("hi")
    page.let_go()
    is_ready(page)
    page.until("document.querySelector('#prompt').value === 'hi'")


def test_a_script_that_does_not_arrive_is_told(browser: Browser, web: WebProcess) -> None:
    with browser.page(serviceWorkers="block") as page:
        web.sign_in(page)
        page.open_without("**/messages.js", f"{web.base}/", "#rows .row")
        page.let_go("abort")
        page.sees("#messages >> text=A part of this page did not arrive")


def test_a_script_that_is_asked_for_late_and_does_not_arrive_is_told_too(browser: Browser, web: WebProcess) -> None:
    with browser.page(serviceWorkers="block") as page:
        web.sign_in(page)
        page.hold("**/messages.js")
        page.let_go("abort")  # before the page asks for it, as a busy machine may
        page.open(f"{web.base}/")
        page.sees("#messages >> text=A part of this page did not arrive")


def test_on_a_slow_line_the_next_prompt_waits_for_the_one_before_and_keeps_its_picture(
    page: Page, web: WebProcess, tmp_path: Path
) -> None:
    (tmp_path / "p.png").write_bytes(PIXEL)
    new_session(page, web.project)
    page.hold("**/prompt", answers=True)
    page.fill("#prompt", "the first")
    page.press("Enter", "#prompt")
    page.sees(".entry.agent >> text=You said: the first")  # the session tells of it before the request is answered
    page.until("document.querySelector('#prompt').value === ''")
    page.call(["locator", "#pictures"], ["setInputFiles", str(tmp_path / "p.png")])
    page.sees("#attached img")
    page.let_go()
    page.call(["waitForTimeout", 300])
    assert page.count("#attached img") == 1, "the answer to the first takes nothing from the second"
    page.hold("**/prompt")
    page.fill("#prompt", "the second")
    page.press("Enter", "#prompt")
    page.until("document.querySelector('#composer').classList.contains('sending')")
    page.fill("#prompt", "the third")
    page.call(["locator", "#pictures"], ["setInputFiles", str(tmp_path / "p.png")])
    page.until("document.querySelectorAll('#attached img').length === 2")
    page.press("Enter", "#prompt")
    page.let_go()
    page.sees(".entry.agent >> text=You said: the second (1 image)")
    page.sees(".entry.agent >> text=You said: the third (1 image)")
    assert page.count(".entry.user") == 3
