"""The page for everybody: by keyboard, enlarged, in light and dark, with a screen reader; and for nobody's scripts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from app.tests.support.web_process import WebProcess, is_ready, new_session, say
from core.tests.support.injections import PAYLOADS, everywhere
from core.tests.support.schemas import ROOT
from core.tests.support.stored_sessions import add_session, said
from holdfast.model import SessionState
from holdfast.store import open_store

if TYPE_CHECKING:
    from pathlib import Path

    from app.tests.support.browser import Browser, Page

pytestmark = pytest.mark.timeout(300)

HOSTILE = ROOT / "core" / "tests" / "programs" / "hostile_agent.py"
BAD = ("error", "complaint", "violation", "dialog")
TALK = (
    "# Title\n\nSome `code`, a [link](https://example.com/), and\n\n"
    "| a | b |\n|---|--:|\n| 1 | 2 |\n\n```py\nx = 1\n```"
)


async def rich_session(place: Path) -> str:
    store = await open_store(str(place))
    coloured = "\x1b[31mred\x1b[0m \x1b[38;5;22mdark\x1b[0m \x1b[44mback\x1b[0m"
    conversation: list[Any] = [*everywhere(TALK, "a-"), *everywhere(coloured, "b-"), said("user", "last", "Thank you")]
    usage = {"sessionUpdate": "usage_update", "used": 5, "size": 9, "cost": {"amount": 1, "currency": "USD"}}
    state = SessionState(latest={"usage_update": usage})
    session = await add_session(store, conversation, title="A session with all there is", state=state, at=5)
    await store.close()
    return session


@pytest.mark.parametrize(
    "seen",
    [{"colorScheme": "light"}, {"colorScheme": "dark", "contrast": "more"}, {"forcedColors": "active"}],
    ids=["light", "dark with more contrast", "forced colours"],
)
def test_no_view_has_a_barrier(browser: Browser, tmp_path: Path, seen: dict[str, str]) -> None:
    web = WebProcess(tmp_path)
    session = asyncio.run(rich_session(web.store))
    with web, browser.page(**seen, viewport={"width": 1200, "height": 800}) as page:
        web.sign_in(page)
        found = list[str]()
        found += page.barriers()
        page.press("/")
        page.type("title")
        page.sees("#rows mark")
        found += page.barriers()
        page.press("Escape")
        page.open(f"{web.base}/")
        page.press("n")
        page.until("document.querySelector('#new-session').open")
        found += page.barriers()
        page.press("Escape")
        page.click("#rows [data-menu]")
        page.sees("role=menu")
        found += page.barriers()
        page.open(f"{web.base}/sessions/{session}")
        is_ready(page)
        page.run("document.querySelectorAll('details').forEach(each => each.open = true)")
        found += page.barriers()
        page.click("#open-index")
        page.sees("#index-list a")
        found += page.barriers()
        page.click("#session-menu")
        page.click("role=menuitem[name='Share…']")
        page.click("dialog >> text=Make a link")
        page.sees(".new-link input")
        found += page.barriers()
        page.open(page.run("document.querySelector('.new-link input').value"))
        page.sees("h1")
        found += page.barriers()
        page.open(f"{web.base}/")
        new_session(page, web.project)
        say(page, "/run")
        page.sees(".question")
        found += page.barriers()
        assert found == []
        assert page.noted(*BAD) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_who_wants_more_contrast_gets_it(browser: Browser, tmp_path: Path, scheme: str) -> None:
    web = WebProcess(tmp_path)
    session = asyncio.run(rich_session(web.store))
    with web, browser.page(colorScheme=scheme, contrast="more") as page:
        web.sign_in(page)
        found = page.barriers("color-contrast-enhanced")
        page.open(f"{web.base}/sessions/{session}")
        is_ready(page)
        page.run("document.querySelectorAll('details').forEach(each => each.open = true)")
        found += page.barriers("color-contrast-enhanced")
        assert found == []


def test_where_the_system_chooses_the_colours_lines_say_what_colours_said(browser: Browser, tmp_path: Path) -> None:
    with WebProcess(tmp_path) as web, browser.page(forcedColors="active") as page:
        web.sign_in(page)
        line = "(selector => getComputedStyle(document.querySelector(selector)).outlineStyle)"
        assert page.run(f"{line}('.tabs a[aria-current]')") == "solid"
        new_session(page, web.project)
        page.click("#reading")
        assert page.run(f"{line}('#reading')") == "solid"
        page.click("#session-menu")
        assert page.run(f"{line}('.menu button:focus')") == "solid"
        page.press("Escape")
        page.click("#prompt")
        page.type("/s")
        page.sees("#suggestions [aria-selected=true]")
        assert page.run(f"{line}('#suggestions [aria-selected=true]')") == "solid"
        assert page.run(f"{line}('#composer')") == "solid"


def test_enlarged_four_times_everything_is_there_without_scrolling_sideways(browser: Browser, tmp_path: Path) -> None:
    web = WebProcess(tmp_path)
    session = asyncio.run(rich_session(web.store))
    with web, browser.page(viewport={"width": 320, "height": 256}) as page:  # 1280 by 1024 at 400 %
        web.sign_in(page)
        assert fits(page)
        page.open(f"{web.base}/sessions/{session}")
        is_ready(page)
        page.run("document.querySelectorAll('details').forEach(each => each.open = true)")
        assert fits(page)
        page.click("#open-find")
        page.fill("#find", "Thank you")
        page.press("Enter", "#find")
        page.sees(".found >> text=Thank you")
        assert fits(page)
        page.click("#open-index")
        page.click("#index-list a")
        page.until("document.querySelector('#index').hidden")  # it lies over all there is
        page.fill("#prompt", "/run")
        page.press("Enter", "#prompt")
        page.sees(".question")
        page.click(".question button[value=reject_once]")
        page.misses(".question")
        assert page.noted(*BAD) == []


def fits(page: Page) -> bool:
    return page.run("document.documentElement.scrollWidth") <= 320


@pytest.mark.requirement("P12")
def test_nothing_that_was_said_runs_in_the_page(browser: Browser, tmp_path: Path) -> None:
    web = WebProcess(tmp_path)
    sessions = asyncio.run(hostile_sessions(web.store))
    with web, browser.page() as page:
        web.sign_in(page)
        page.press("/")
        page.type("injected")
        page.until("document.querySelector('#found').textContent")
        for session in sessions:
            page.open(f"{web.base}/sessions/{session}")
            is_ready(page)
            page.run("document.querySelectorAll('details').forEach(each => each.open = true)")
            assert page.count(".placed") >= 12
            page.click("#open-index")
            page.sees("#index-list a")
        say(page, PAYLOADS[0] + PAYLOADS[2])
        page.sees(".entry.agent >> text=You said: <script>")
        page.fill("#find", "injected")
        page.until("document.querySelectorAll('#index-list a').length")
        assert page.run("window.injected === undefined")
        assert page.noted(*BAD) == []
        foreign = [each.text for each in page.noted("request") if not each.text.startswith((web.base, "data:image/"))]
        assert foreign == []
        write = "(() => { try { document.body.innerHTML = '<b>'; return 'done' } catch (e) { return e.name } })()"
        assert page.run(write) == "TypeError", "no script makes markup of a text"


@pytest.mark.requirement("P12", "P13")
def test_no_name_and_no_question_of_a_hostile_agent_runs(browser: Browser, tmp_path: Path) -> None:
    web = WebProcess(tmp_path, agent=str(HOSTILE), name='"evil\\"><img src=x onerror=window.injected=1>"')
    (web.project / 'x"><img src=x onerror=window.injected=1>.txt').write_text("x")
    with web, browser.page(permissions=["notifications"]) as page:
        web.sign_in(page)
        new_session(page, web.project)
        page.run("Object.defineProperty(document, 'hidden', {get: () => true})")  # so that notifications come
        for number in (1, 4, 5, 10, 25, 29):
            page.fill("#prompt", str(number))
            page.press("Enter", "#prompt")
            page.sees(".question .asked")
            page.click(".question .actions button >> nth=-1")
            page.sees(".question select[multiple]")
            page.click(".question button[value=cancel]")
            page.sees(f".entry.agent >> text=All of {number} was said.")
        page.click("#prompt")
        page.type("/ev")
        page.sees("#suggestions >> text=onload")
        page.press("Escape")
        page.fill("#prompt", "/evil")
        page.press("Enter", "#prompt")
        page.click(".question button[value=decline]")
        page.fill("#prompt", "")
        page.type("@img")
        page.sees("#suggestions >> text=onerror")
        page.press("Enter")
        page.press("Enter")
        page.sees(".entry.user >> text=onerror")
        page.click("#session-menu")
        page.click("role=menuitem[name='Share…']")
        page.click("dialog >> text=Make a link")
        shared = page.run("document.querySelector('.new-link input').value") if page.sees(".links li") is None else ""
        for address in (
            "/",
            "/?archived=only",
            "/?agent=%22%3E%3Csvg/onload=injected=1%3E",
            "/nothing<svg onload=x>",
            shared,
        ):
            page.open(address if address == shared else web.base + address)
            assert page.run("window.injected === undefined")
        assert page.noted("violation", "dialog", "error") == []
        foreign = [each.text for each in page.noted("request") if not each.text.startswith((web.base, "data:image/"))]
        assert foreign == []


async def hostile_sessions(place: Path) -> list[str]:
    """Put sessions into a store that say each payload in every place, four payloads a session."""
    store = await open_store(str(place))
    made: list[str] = []
    for number in range(0, len(PAYLOADS), 4):
        chosen = PAYLOADS[number : number + 4]
        updates = [update for at, payload in enumerate(chosen) for update in everywhere(payload, f"{at}-")]
        title, cwd = chosen[0].replace("\0", ""), "/work/" + chosen[-1].replace("\0", "").replace("\n", "")
        made.append(await add_session(store, updates, title=title, cwd=cwd, at=number))
    await store.close()
    return made


def test_a_screen_reader_finds_names_for_everything(browser: Browser, tmp_path: Path) -> None:
    web = WebProcess(tmp_path)
    session = asyncio.run(rich_session(web.store))
    with web, browser.page() as page:
        web.sign_in(page)
        page.open(f"{web.base}/sessions/{session}")
        is_ready(page)
        tree = page.call(["locator", "body"], ["ariaSnapshot"])
        for named in (
            'log "Conversation"', 'textbox "Message page-agent"', 'button "Send"', 'searchbox "Find in session"',
            'button "Index of prompts"', 'heading "A session with all there is" [level=1]', 'link "All sessions"',
        ):  # fmt: skip
            assert named in tree, tree[:3000]
        assert 'button ""' not in tree and "- button:" not in tree
