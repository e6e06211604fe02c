"""Makes the picture of one session in three clients: `python docs/pictures/serve.py`. Needs tmux and all of `web.py`.

A real `holdfast serve --web` serves an agent (`web_agent.py`). acpx, as an editor, asks it for something through
`holdfast connect`; `holdfast chat` and a browser of a phone's size open the same session; the agent has a question.
What is then on their screens is put side by side; the question is answered on the phone.
"""

from __future__ import annotations

import base64
import re
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT), str(HERE)]

from drawing import draw  # noqa: E402

from app.tests.support.browser import Browser  # noqa: E402
from app.tests.support.peers import ACPX, node_for_acpx  # noqa: E402
from app.tests.support.remote_process import ServeProcess  # noqa: E402
from app.tests.support.terminal import Window, window  # noqa: E402

COLUMNS = 76
PHONE = {"width": 390, "height": 800}
LINK = re.compile(r"http://\S+/link/\S+")
PROJECT = Path(tempfile.gettempdir()) / "shop"
"""Where the agent works; its path is in the picture."""

STYLE = """
body { margin: 0; background: #eef1f5; font: 600 22px system-ui, "DejaVu Sans", sans-serif; color: #24303c }
main { display: flex; gap: 56px; padding: 44px 52px; align-items: center; width: max-content }
section { display: flex; flex-direction: column; gap: 30px }
figure { margin: 0 } figcaption { margin: 0 0 12px 6px }
code { font: 18px "DejaVu Sans Mono", monospace; color: #5a6b7c }
.terminal { display: block; width: 880px; border-radius: 10px; box-shadow: 0 8px 30px #0003 }
.phone { display: block; width: 390px; border: 12px solid #16181c; border-radius: 46px; box-shadow: 0 8px 30px #0004 }
"""


def drawn(shown: Window, picture: Path, title: str) -> str:
    """Return what is on a terminal's screen as the address of a picture."""
    draw(f"{shown.tmux('capture-pane', '-p', '-e').rstrip()}\n ", picture, title=title, width=COLUMNS)
    return f"data:image/svg+xml;base64,{base64.b64encode(picture.read_bytes()).decode()}"


def figure(caption: str, command: str, kind: str, address: str) -> str:
    """Return one client, with its name above it."""
    name = f"<figcaption>{caption} <code>{command}</code></figcaption>"
    return f'<figure>{name}<img class="{kind}" src="{address}"></figure>'


def play(browser: Browser, server: ServeProcess, place: Path) -> str:
    """Let three clients meet in one session; return the page that shows them."""
    link = LINK.search(server.complaints())
    assert link is not None, server.complaints()
    environment = {"HOME": str(place), "HOLDFAST_STORE": server.store}
    connect = f"{sys.executable} -m holdfast connect {server.url}"
    editor_command = (node_for_acpx(), str(ACPX), "--cwd", str(PROJECT), "--agent", connect, "--approve-reads", "exec")
    chat_command = (sys.executable, "-m", "holdfast", "chat", server.url, "--continue")
    terminal = partial(window, cwd=PROJECT, env=environment, columns=COLUMNS)
    with terminal(*editor_command, "Prepare the release of 2.4 and publish it", rows=17) as editor:
        editor.shows("publish")
        with terminal(*chat_command, rows=21) as chat:
            chat.shows("[y] Allow")
            with browser.page(viewport=PHONE, deviceScaleFactor=2, colorScheme="dark") as phone:
                phone.open(link[0])
                phone.until("location.pathname === '/'")
                phone.sees("#rows [data-state=requires_action]")
                phone.call(["locator", "#rows [data-state=requires_action] a"], ["first"], ["click"])
                phone.sees(".question")
                phone.call(["waitForTimeout", 500])
                phone.screenshot(place / "phone.png")
                address = "data:image/png;base64," + base64.b64encode((place / "phone.png").read_bytes()).decode()
                in_editor = drawn(editor, place / "editor.svg", "acpx")
                in_chat = drawn(chat, place / "chat.svg", "holdfast chat")
                phone.call(["locator", ".question button"], ["first"], ["click"])  # answered once, for everybody
                chat.shows_no_more("[y] Allow")
    editor_figure = figure("An editor", "holdfast connect URL", "terminal", in_editor)
    chat_figure = figure("The chat", "holdfast chat URL", "terminal", in_chat)
    phone_figure = figure("A phone", "holdfast serve --web", "phone", address)
    return f"<style>{STYLE}</style><main><section>{editor_figure}{chat_figure}</section>{phone_figure}</main>"


def main() -> None:
    """Make the picture."""
    browser = Browser()
    PROJECT.mkdir(exist_ok=True)
    try:
        with tempfile.TemporaryDirectory() as directory:
            place = Path(directory)
            with ServeProcess(place, str(HERE / "web_agent.py"), options=("--web",)) as server:
                page_source = play(browser, server, place)
            with browser.page(viewport={"width": 1500, "height": 1000}, deviceScaleFactor=1) as page:
                page.call(["setContent", page_source])
                size = {
                    side: page.run(f"Math.round(document.querySelector('main').getBoundingClientRect().{side})")
                    for side in ("width", "height")
                }
                page.call(["setViewportSize", size])
                page.screenshot(HERE / "serve.png")
    finally:
        browser.close()
        shutil.rmtree(PROJECT)


if __name__ == "__main__":
    main()
