"""Pictures that are pasted and dropped, times, what is very long, and a session that somebody else deletes."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from typing import TYPE_CHECKING, Any

import pytest

from app.tests.support.web_process import WebProcess, is_ready, new_session, say
from core.tests.support.stored_sessions import add_session
from holdfast.store import open_store

if TYPE_CHECKING:
    from pathlib import Path

    from app.tests.support.browser import Browser

pytestmark = pytest.mark.timeout(300)

BAD = ("error", "complaint", "violation", "dialog")
PIXEL = b64encode(bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63606060"
    "000000040001f61738550000000049454e44ae426082"
)).decode()  # fmt: skip
CARRY = f"""((kind, target, name, type) => {{
  const data = new DataTransfer();
  data.items.add(new File([Uint8Array.from(atob("{PIXEL}"), c => c.charCodeAt(0))], name, {{ type }}));
  const carried = kind === "paste" ? {{ clipboardData: data }} : {{ dataTransfer: data }};
  const Kind = kind === "paste" ? ClipboardEvent : DragEvent;
  const event = new Kind(kind, {{ bubbles: true, cancelable: true, ...carried }});
  document.querySelector(target).dispatchEvent(event);
  return event.defaultPrevented;
}})"""


def test_pictures_are_pasted_and_dropped_and_every_entry_has_its_time(browser: Browser, tmp_path: Path) -> None:
    with WebProcess(tmp_path) as web, browser.page(timezoneId="Asia/Tokyo", locale="en-GB") as page:
        web.sign_in(page)
        new_session(page, web.project)
        assert page.run(f"{CARRY}('paste', '#prompt', 'a.png', 'image/png')")
        page.sees("#attached .chip:nth-child(1) button")
        assert page.run(f"{CARRY}('dragover', '#entries', 'b.png', 'image/png')")
        assert page.run(f"{CARRY}('drop', '#entries', 'b.png', 'image/png')"), "the browser would leave the page for it"
        page.sees("#attached .chip:nth-child(2) button")
        assert page.run(f"{CARRY}('drop', '#prompt', 'c.zip', 'application/zip')")
        page.sees("#messages >> text=c.zip is no picture")
        page.call(["locator", "#attached button"], ["first"], ["click"])
        say(page, "look")
        page.sees(".entry.agent >> text=(1 image)")
        page.until("document.querySelectorAll('.placed[data-line]').length >= 2")
        now = page.run("new Intl.DateTimeFormat('en-GB', {timeStyle: 'short'}).format()")
        told = page.run("[...document.querySelectorAll('.entry .at')].map(time => [time.textContent, time.dateTime])")
        assert len(told) == 2 and all(words[:3] == now[:3] for words, _ in told), (told, now)
        exported = page.run(
            "fetch('/sessions/' + document.querySelector('hf-session').dataset.id + '/export').then(a => a.text())"
        )
        assert all(f'datetime="{exact}"' in exported for _, exact in told)
        page.press("Escape", "#prompt")
        page.run("document.activeElement.blur()")
        page.press("i")
        page.sees("#index-list .at")
        assert page.noted(*BAD) == []


async def long_things(place: Path) -> tuple[str, str]:
    store = await open_store(str(place))
    old = [f"line {number}" for number in range(10_000)]
    new = [f"{line} changed" if number % 2 else line for number, line in enumerate(old)]
    diff = {"type": "diff", "path": "/a", "oldText": "\n".join(old), "newText": "\n".join(new)}
    call: dict[str, Any] = {"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "Edit", "content": [diff]}
    output = "".join(f"\x1b[3{number % 8}mline {number}\x1b[0m\r\n" for number in range(50_000)).encode()
    terminal = {"sessionUpdate": "terminal_update", "terminalId": "t", "command": "make",
                "output": {"data": b64encode(output).decode()}, "exitStatus": {"exitCode": 0}}  # fmt: skip
    said = [("user", "a word " * 150_000), call, terminal, ("agent", "done")]
    one = await add_session(store, said, title="Long things", at=2)
    other = await add_session(store, [("user", "hello"), ("agent", "bye")], title="Short things", at=1)
    await store.close()
    return one, other


def test_what_is_very_long_is_shown_and_holds_up_nobody(browser: Browser, tmp_path: Path) -> None:
    web = WebProcess(tmp_path)
    session, other = asyncio.run(long_things(web.store))
    with web, browser.page() as page:
        web.sign_in(page)
        page.open(f"{web.base}/sessions/{session}")
        is_ready(page)
        page.sees(".entry.agent >> text=done")
        assert page.run("document.querySelectorAll('.diff ins').length") == 5_000
        assert page.run("document.querySelector('.entry.terminal pre').textContent.includes('line 49999')")
        assert page.run("document.querySelector('.entry.user').textContent.length") > 1_000_000
        page.open(f"{web.base}/sessions/{other}")
        page.sees(".entry.agent >> text=bye")
        assert page.noted(*BAD) == []


def test_a_deletion_is_seen_by_other_tabs_and_undone_from_the_library(browser: Browser, tmp_path: Path) -> None:
    web = WebProcess(tmp_path)
    _, session = asyncio.run(long_things(web.store))
    with web, browser.page() as page:
        web.sign_in(page)
        page.press("/")
        page.type("hello")
        page.sees("#rows .hit")
        page.click("#rows .hit")
        page.until("location.pathname.startsWith('/sessions/')")
        page.call(["goBack"])
        page.sees("#rows .hit >> text=hello")
        assert page.run("document.querySelector('#search').value") == "hello"
        with browser.page(storageState=page.signed_in()) as other:
            page.open(f"{web.base}/sessions/{session}")
            is_ready(page)
            other.open(f"{web.base}/sessions/{session}")
            is_ready(other)
            for undoes in (True, False):
                other.click("#session-menu")
                other.click("role=menuitem[name='Delete']")
                other.until("location.pathname === '/'")
                if undoes:
                    other.click("#messages >> text=Undo")
                    other.sees(f"#row-{session}")
                    other.open(f"{web.base}/sessions/{session}")
                    is_ready(other)
            page.sees("#messages >> text=This session was deleted")
            assert page.run("document.querySelector('#composer').inert")
        page.open(f"{web.base}/sessions/{session}")
        page.sees("text=There is no such session")
        assert page.noted("error", "violation", "dialog") == []
