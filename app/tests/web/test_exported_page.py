"""The exported file in a real browser: nothing in it runs, everybody can read it, and it fits a phone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from core.tests.support.injections import PAYLOADS, everywhere
from core.tests.support.stores import info
from holdfast.format import fold
from holdfast.model import SessionState
from holdfast_app.export.page import PageWriter

if TYPE_CHECKING:
    from pathlib import Path

    from app.tests.support.browser import Browser

TALK = """# Done

Two things:

- [x] one
- [ ] two

| a | b |
|---|--:|
| `x` | 1 |

```python
def f(x: int) -> str:
    return "a very long line of code that goes on and on and on until no phone could ever show it on one line" # no
```

See [this](https://example.com/)."""


def written(tmp_path: Path, updates: list[Any], title: str) -> str:
    writer = PageWriter()
    about = msgspec.structs.replace(info(cwd="/work/" + "deep/" * 40), title=title, agent=title)
    pieces = [writer.opening(about, SessionState(options={"model": title}))]
    pieces += map(writer.entry, fold(map(msgspec.json.encode, updates)))
    path = tmp_path / "talk.html"
    path.write_text("".join((*pieces, writer.closing(1))), encoding="utf-8")
    return path.as_uri()


@pytest.mark.requirement("P10")
def test_nothing_that_was_said_runs(browser: Browser, tmp_path: Path) -> None:
    updates = [update for number, payload in enumerate(PAYLOADS) for update in everywhere(payload, f"{number}-")]
    address = written(tmp_path, updates, PAYLOADS[0])
    with browser.page() as page:
        page.open(address)
        page.run("document.querySelectorAll('details').forEach(each => each.open = true)")
        assert page.run("window.injected === undefined")
        assert page.noted("violation", "dialog", "error", "complaint") == []
        assert [each.text for each in page.noted("request") if not each.text.startswith("data:")] == [address]
        terminals = sum(
            update["sessionUpdate"] == "terminal_update" for update in updates
        )  # in the calls that show them
        assert page.count("article") == len(updates) - terminals


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_read_it(browser: Browser, tmp_path: Path, scheme: str) -> None:
    address = written(tmp_path, everywhere(TALK, ""), "What was done")
    with browser.page(colorScheme=scheme, viewport={"width": 320, "height": 640}) as page:
        page.open(address)
        page.run("document.querySelectorAll('details').forEach(each => each.open = true)")
        assert page.barriers() == []
        assert page.run("document.documentElement.scrollWidth") <= 320
        assert page.noted("violation", "error", "complaint") == []


def test_changes_stand_side_by_side_where_there_is_room(browser: Browser, tmp_path: Path) -> None:
    diff = {"type": "diff", "path": "/a", "oldText": "one\ntwo\nthree\n", "newText": "one\n2\nthree\nfour\n"}
    call = {"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "Edit", "content": [diff]}
    address = written(tmp_path, [call], "Changes")
    lefts = "[...document.querySelectorAll('.diff [data-n]')].filter(e => e.checkVisibility()).map(e => e.offsetLeft)"
    with browser.page(viewport={"width": 1200, "height": 900}) as page:
        page.open(address)
        assert len(set(page.run(lefts))) == 1  # the file is a narrow column of text
        page.run("document.querySelector('.diff').parentElement.replaceWith(document.querySelector('.diff'))")
        page.run("document.body.replaceChildren(document.querySelector('.diff'))")
        page.run("document.documentElement.append(document.querySelector('.diff'))")
        assert len(set(page.run(lefts))) == 2


def test_a_call_whose_terminal_failed_has_no_tick(browser: Browser, tmp_path: Path) -> None:
    updates: list[Any] = []
    for code in (3, 0):
        shown = [{"type": "terminal", "terminalId": f"t{code}"}]
        call = {"sessionUpdate": "tool_call_update", "toolCallId": f"c{code}", "title": "make", "status": "completed"}
        updates += [
            {**call, "content": shown},
            {"sessionUpdate": "terminal_update", "terminalId": f"t{code}", "exitStatus": {"exitCode": code}},
        ]
    with browser.page() as page:
        page.open(written(tmp_path, updates, "make"))
        signs = (
            "[...document.querySelectorAll('.entry.tool h3')].map(each => getComputedStyle(each, '::before').content)"
        )
        assert [sign[1] for sign in page.run(signs)] == ["✕", "✓"]
