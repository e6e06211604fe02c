"""Talking to an agent in the browser: alone, with a second browser, and beside an editor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.tests.support.web_process import WebProcess, is_ready, new_session, say

if TYPE_CHECKING:
    from pathlib import Path

    from app.tests.support.browser import Browser, Page

pytestmark = pytest.mark.timeout(300)

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63606060"
    "000000040001f61738550000000049454e44ae426082"
)
BAD = ("error", "complaint", "violation", "dialog")


def test_a_conversation_as_one_has_it_every_day(browser: Browser, tmp_path: Path) -> None:
    with WebProcess(tmp_path) as web, browser.page() as page:
        web.sign_in(page)
        new_session(page, web.project)
        say(page, "hello **there**")
        page.sees(".entry.agent >> text=You said: hello there")
        assert page.run("!!document.querySelector('.entry.agent strong')")

        say(page, "/edit")
        page.sees(".entry.agent h3 >> text=Done")
        page.sees(".diff ins")
        page.sees("text=53k of 200k tokens")
        assert page.count(".steps li") == 2

        page.call(["locator", "select[data-option=model]"], ["selectOption", "large"])
        say(page, "/form")
        page.fill(".question input", "Ada <b>")
        page.press("Enter", ".question input")
        page.sees("text=Hello, Ada <b>.")
        page.misses(".question")

        say(page, "/slow 2000 50")
        page.sees("text=word3")
        page.click("#stop")
        page.sees(".entry.note >> text=cancelled")
        page.until("document.querySelector('#stop').hidden")

        say(page, "first line\nsecond line")
        page.sees(".entry.agent >> text=second line")
        page.press("ArrowUp", "#prompt")
        assert page.run("document.querySelector('#prompt').value") == "first line\nsecond line"
        page.call(["reload"])
        is_ready(page)
        page.sees(".entry.agent >> text=second line")
        assert page.run("document.querySelector('select[data-option=model]').value") == "large"
        assert page.noted(*BAD) == []


def test_a_picture_and_a_file_go_along_with_what_one_says(browser: Browser, tmp_path: Path) -> None:
    with WebProcess(tmp_path) as web, browser.page() as page:
        (web.project / "notes.txt").write_text("x")
        web.sign_in(page)
        new_session(page, web.project)
        (tmp_path / "p.png").write_bytes(PIXEL)
        page.call(["locator", "#pictures"], ["setInputFiles", str(tmp_path / "p.png")])
        page.sees("#attached img")
        page.click("#prompt")
        page.type("look at @not")
        page.sees("#suggestions >> text=notes.txt")
        page.press("Enter")
        page.press("Enter")
        page.sees(".entry.agent >> text=(1 image)")
        assert page.count(".entry.user img[src^='data:image/png']") == 1
        page.sees(".entry.user >> text=notes.txt")
        page.click("#prompt")
        page.type("/sl")
        page.sees("#suggestions >> text=Say N words")
        gone_and_back = "const field = document.querySelector('#prompt'); field.blur(); field.focus();"
        later = "await new Promise((resolve) => setTimeout(resolve, 400));"
        shown = "return !document.querySelector('#suggestions').hidden;"
        assert page.run(f"(async () => {{ {gone_and_back} {later} {shown} }})()"), "who comes back at once goes on"
        assert page.noted(*BAD) == []


@pytest.mark.requirement("P13")
def test_whoever_answers_first_closes_the_question_everywhere(browser: Browser, tmp_path: Path) -> None:
    with WebProcess(tmp_path) as web, browser.page() as desk:
        web.sign_in(desk)
        new_session(desk, web.project)
        with browser.page(storageState=desk.signed_in(), viewport={"width": 390, "height": 800}) as phone:
            phone.open(desk.run("location.href"))
            is_ready(phone)
            answer_on_the_phone(desk, phone)


def answer_on_the_phone(desk: Page, phone: Page) -> None:
    say(desk, "/run")
    for page in (desk, phone):
        page.sees(".question >> text=rm -rf build && make all")
        page.sees("#state >> text=waits for you")
    phone.click(".question button[value=allow_once]")
    for page in (desk, phone):
        page.sees(".entry.agent >> text=It was allowed.")
        page.misses(".question")
    say(phone, "from the phone")
    for page in (desk, phone):
        page.sees(".entry.agent >> text=You said: from the phone")
    assert keys_of(desk) == keys_of(phone)
    assert desk.noted(*BAD) == phone.noted(*BAD) == []


@pytest.mark.requirement("P13")
def test_a_question_on_the_phone_shows_every_path_whole_and_without_the_directory(
    browser: Browser, tmp_path: Path
) -> None:
    path = f"src/{'deeply_nested_package_with_a_long_name/' * 3}the_name_of_the_file.py"
    with WebProcess(tmp_path) as web, browser.page(viewport={"width": 390, "height": 800}) as page:
        web.sign_in(page)
        new_session(page, web.project)
        say(page, "/change")
        page.sees(".question .actions")
        assert page.texts(".question .locations code") == page.texts(".question .path") == [path]
        cut = (
            "[...document.querySelectorAll('.question, .question *')].filter(it => it.scrollWidth > it.clientWidth + 1"
        )
        assert page.run(f"{cut} && getComputedStyle(it).display !== 'inline').map(it => it.outerHTML)") == []
        page.click(".question button[value=reject_once]")
        page.misses(".question")
        assert page.noted(*BAD) == []


def test_a_command_is_one_entry_marked_by_how_it_ended(browser: Browser, tmp_path: Path) -> None:
    with WebProcess(tmp_path) as web, browser.page(viewport={"width": 390, "height": 800}) as page:
        web.sign_in(page)
        new_session(page, web.project)
        say(page, "/fail")
        page.sees(".entry.agent >> text=It failed.")
        for again in (False, True):
            if again:
                page.call(["reload"])
                is_ready(page)
            page.until("document.querySelector('.entry.tool')?.dataset.status === 'failed'")
            assert page.count(".entry.tool") == 1 and page.count(".entry.terminal") == 0
            assert page.texts(".entry.tool .status .word") == ["completed, exit status 1"]
            page.click(".entry.tool summary")
            assert page.texts(".entry.tool pre")[-1].strip() == "it is broken"
            sign = "getComputedStyle(document.querySelector('.entry.tool h3'), '::before').content"
            assert page.run(sign)[1] == "✕"
        assert page.noted(*BAD) == []


def keys_of(page: Page) -> list[str]:
    return page.run("[...document.querySelectorAll('.placed')].map(each => each.dataset.key)")


def test_what_was_said_is_changed_in_a_fork_and_that_can_be_undone(browser: Browser, tmp_path: Path) -> None:
    with WebProcess(tmp_path) as web, browser.page() as page:
        web.sign_in(page)
        new_session(page, web.project)
        say(page, "one **bold** word")
        page.sees(".entry.agent >> text=You said: one bold word")
        say(page, "two")
        page.sees(".entry.agent >> text=You said: two")
        before = page.run("location.pathname")
        page.until("document.querySelectorAll('.placed[data-line]').length >= 4")
        page.call(["locator", ".placed[data-role=user]"], ["first"], ["hover"])
        page.click(".placed[data-role=user] [data-entry-menu]")
        page.click("role=menuitem[name='Edit and send again']")
        assert page.run("document.querySelector('#prompt').value") == "one **bold** word"
        page.fill("#prompt", "three")
        page.press("Enter", "#prompt")
        page.sees(".entry.agent >> text=You said: three")
        assert page.run("location.pathname") != before and page.count(".entry.user") == 1
        page.click("#messages >> text=Undo")
        page.until(f"location.pathname === '{before}'")
        page.sees(".entry.agent >> text=You said: two")
        assert page.noted(*BAD) == []


def test_what_waits_for_the_agent_comes_back_when_one_wants_it_or_stops_the_agent(
    browser: Browser, tmp_path: Path
) -> None:
    with WebProcess(tmp_path) as web, browser.page() as page:
        (tmp_path / "p.png").write_bytes(PIXEL)
        web.sign_in(page)
        new_session(page, web.project)
        say(page, "/slow 5000 50")
        page.sees("text=word3")
        say(page, "the second")
        page.call(["locator", "#pictures"], ["setInputFiles", str(tmp_path / "p.png")])
        page.sees("#attached img")
        say(page, "the third")
        page.until("document.querySelectorAll('.queued').length === 2")
        assert page.texts(".queued span") == ["Next: the second", "Next: the third"]
        page.click(".queued >> nth=1 >> text=Take back")
        page.until("document.querySelectorAll('.queued').length === 1")
        page.until("document.querySelector('#prompt').value === 'the third'")
        page.sees("#attached img")
        page.click("#stop")
        page.sees(".entry.note >> text=cancelled")
        page.until("document.querySelector('#prompt').value === 'the second\\n\\nthe third'")
        page.misses(".queued")
        page.press("Enter", "#prompt")
        page.sees(".entry.agent >> text=(1 image)")
        assert page.count(".entry.user") == 2
        assert page.noted(*BAD) == []
