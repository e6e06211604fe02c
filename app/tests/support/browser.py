"""A real browser: Debian's Chromium, driven by Playwright's core through a small program in Node.

One browser serves all tests of a process; every test has contexts of its own in it, as different people have. Who lacks
a browser skips what needs one, with a reason; where CI is set that is an error.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import threading
import time
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from queue import Queue
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from core.tests.support.schemas import ROOT, lacking

if TYPE_CHECKING:
    from collections.abc import Generator

PATIENCE = 60.0
"""Nothing takes longer to happen in a page, not even on a busy machine."""
DRIVER = ROOT / "app" / "tests" / "web" / "driver.mjs"
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class BrowserError(AssertionError):
    """Something did not happen in the page as a test wanted."""


class Noted(NamedTuple):
    """Something that happened in a page: an `error`, a `complaint` or a word on the `console`, a `dialog`, a `request`,
    or a `violation` of the page's policy.
    """

    kind: str
    text: str


class Browser:
    """The browser, and the program that drives it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [node(), str(DRIVER), _chromium(), str(int(PATIENCE * 1000))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
        )  # fmt: skip
        self._numbers = count(1)
        self._answers: dict[int, Queue[dict[str, Any]]] = {}
        self._lock = threading.Lock()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def ask(self, on: str, *calls: Any) -> Any:
        """Let the driver do something; return what it answers. May be called from any thread."""
        assert self._process.stdin is not None
        with self._lock:
            number = next(self._numbers)
            answer = self._answers[number] = Queue(1)
            self._process.stdin.write(json.dumps({"id": number, "on": on, "calls": calls}) + "\n")
            self._process.stdin.flush()
        said = answer.get(timeout=PATIENCE * 2)
        if "error" in said:
            raise BrowserError(said["error"])
        return said["result"]

    @contextmanager
    def page(self, **options: Any) -> Generator[Page]:
        """Open a page in a context of its own, with the options of Playwright's `newContext`."""
        page = Page(self, self.ask("open", options))
        try:
            yield page
        finally:
            page.call(["context"], ["close"])

    def renderers(self) -> dict[int, float]:
        """Return the memory of each process that draws a page, in MB: what no other process shares."""
        said = self.ask("browser", ["newBrowserCDPSession"], ["send", "SystemInfo.getProcessInfo"])
        pids = [each["id"] for each in said["processInfo"] if each["type"] == "renderer"]
        return {pid: _private_megabytes(pid) for pid in pids}

    def start_trace(self, page: Page) -> None:
        """Begin to note what the browser does."""
        self.ask("trace", page.name)

    def stop_trace(self) -> dict[int, list[float]]:
        """Return, by the process that draws a page, how much CPU each longer task of its main thread took, in ms."""
        return {int(pid): tasks for pid, tasks in self.ask("trace").items()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the browser."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(PATIENCE)
        finally:
            self._process.kill()
            self._reader.join(PATIENCE)
            if self._process.stdout is not None:
                self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            said = json.loads(line)
            self._answers.pop(said["id"]).put(said)
        for answer in list(self._answers.values()):
            answer.put({"error": "the browser's driver has ended"})


class Page:
    """A page. Places in it are named by Playwright's selectors: `css`, `text=…`, `role=button[name="Send"]`."""

    def __init__(self, browser: Browser, name: str) -> None:
        self._browser = browser
        self.name = name
        self._noted: list[Noted] = []

    def call(self, *calls: list[Any]) -> Any:
        """Call methods of Playwright's page, one on what the other returned."""
        return self._browser.ask(self.name, *calls)

    def signed_in(self) -> Any:
        """Return what makes another browser that of the same person: `browser.page(storageState=…)`."""
        return self.call(["context"], ["storageState"])

    def beside(self) -> Page:
        """Open another page of the same person: the same cookies and storage."""
        return Page(self._browser, self._browser.ask("open", None, self.name))

    def open(self, address: str) -> None:
        """Go to an address and wait until the page is there."""
        self.call(["goto", address, {"waitUntil": "load"}])

    def open_without(self, what: str, address: str, until: str) -> None:
        """Go to an address, let what it asks for at another one wait, and return as soon as something is to be seen.

        Only in a context with `serviceWorkers="block"`: those would bring what they have kept.
        """
        self.hold(what)
        self.call(["goto", address, {"waitUntil": "commit"}])
        self.sees(until)

    def hold(self, what: str, *, answers: bool = False) -> None:
        """Let what the page asks for at an address wait from now on; with `answers` it is asked for, and they wait."""
        self._browser.ask("hold", self.name, what, answers)

    def let_go(self, how: str = "continue") -> None:
        """Bring what had to wait (or never: "abort"), and wait until the page is there."""
        self._browser.ask("release", self.name, how)
        self.call(["waitForLoadState", "load"])

    def click(self, selector: str) -> None:
        """Click on something."""
        self.call(["locator", selector], ["first"], ["click"])

    def fill(self, selector: str, text: str) -> None:
        """Put text into a field."""
        self.call(["locator", selector], ["first"], ["fill", text])

    def press(self, key: str, selector: str | None = None) -> None:
        """Press a key, as `Enter` or `Control+k`; in a field, or wherever the focus is."""
        if selector is None:
            self.call(["keyboard"], ["press", key])
        else:
            self.call(["locator", selector], ["first"], ["press", key])

    def type(self, text: str) -> None:
        """Type text, key by key, wherever the focus is."""
        self.call(["keyboard"], ["type", text])

    def sees(self, selector: str) -> None:
        """Wait until something is to be seen."""
        self.call(["locator", selector], ["first"], ["waitFor", {"state": "visible"}])

    def misses(self, selector: str) -> None:
        """Wait until nothing of the kind is to be seen."""
        self.until(f"![...document.querySelectorAll({json.dumps(selector)})].some(found => found.checkVisibility())")

    def until(self, condition: str) -> None:
        """Wait until an expression is true in the page, whatever page it is by then, and all of that page is there."""
        whole = f"document.readyState !== 'loading' && ({condition})"
        give_up = time.monotonic() + PATIENCE
        said: object = None
        while time.monotonic() < give_up:
            try:
                said = self.run(whole)
            except BrowserError as e:  # it is just going somewhere else
                said = e
            if said and not isinstance(said, BrowserError):
                return
            time.sleep(0.05)
        raise BrowserError(f"{condition} never came true ({said})\n{self.text('body')[-3000:]}")

    def text(self, selector: str) -> str:
        """Return what one can read there."""
        return self.call(["locator", selector], ["first"], ["innerText"])

    def texts(self, selector: str) -> list[str]:
        """Return what all of them say, in view or not."""
        return [" ".join(text.split()) for text in self.call(["locator", selector], ["allTextContents"])]

    def count(self, selector: str) -> int:
        """Return how many there are."""
        return self.call(["locator", selector], ["count"])

    def run(self, script: str) -> Any:
        """Evaluate an expression in the page."""
        return self.call(["evaluate", script])

    def screenshot(self, path: Path, **options: Any) -> None:
        """Write a picture of the page."""
        path.write_bytes(base64.b64decode(self.call(["screenshot", options])))

    def noted(self, *kinds: str) -> list[Noted]:
        """Return what has happened in the page so far, of these kinds."""
        self._noted += [Noted(*each) for each in self._browser.ask(self.name, ["noted"])]
        return [each for each in self._noted if each.kind in kinds]

    def barriers(self, *rules: str) -> list[str]:
        """Return what axe says would keep somebody from using the page as it is now; by these rules alone, if named."""
        if not AXE.is_file():
            lacking("axe-core is not installed: `make test` does it")
        self.run(AXE.read_text() + ";0")
        only = json.dumps({"resultTypes": ["violations"], **({"runOnly": rules} if rules else {})})
        found = self.run(f"axe.run(document, {only})")
        return [
            f"{rule['id']} ({rule['help']}): {node['html'][:200]} {node['failureSummary'][:300]}"
            for rule in found["violations"]
            for node in rule["nodes"][:3]
        ]


def _private_megabytes(pid: int) -> float:
    rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(row.split()[1]) for row in rows if row.startswith("Private_")) / 1_000


def node() -> str:
    """Find Node and what drives a browser with it."""
    if (found := shutil.which("node")) is None:
        lacking("Node is not installed: no check in a browser")
    if not (ROOT / "node_modules" / "playwright-core").is_dir():
        lacking("playwright-core is not installed: `make test` does it")
    return found


def _chromium() -> str:
    named = os.environ.get("HOLDFAST_TEST_BROWSER")
    found = named or next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        lacking("no Chromium is installed (Debian: apt install chromium): no check in a browser")
    return found
