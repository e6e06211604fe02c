"""`holdfast link`: another link for a browser, where the one that the server printed was used up (H6)."""

from __future__ import annotations

import http.client
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.support.remote_process import PATIENCE, ServeProcess
from tests.support.web_process import WebProcess

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.requirement("H6")


def link(*words: str, token: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "HOLDFAST_TOKEN"}
    environment |= {} if token is None else {"HOLDFAST_TOKEN": token}
    command = [sys.executable, "-m", "holdfast", "link", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=2 * PATIENCE, env=environment)


def get(
    port: int, path: str, accept: str = "text/html", *, cookie: str = "", wanted: str = "content-type"
) -> tuple[int, str, str]:
    """Ask as a browser does; return the status, the kind of answer or another field, and the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", path, headers={"Accept": accept, **({"Cookie": cookie} if cookie else {})})
        answer = connection.getresponse()
        return answer.status, answer.getheader(wanted) or "", answer.read().decode()
    finally:
        connection.close()


def test_a_link_that_was_used_names_the_command_that_makes_another(tmp_path: Path) -> None:
    with ServeProcess(tmp_path, options=("--web",)) as server:
        printed = re.search(r"in a browser +http://\S+(/link/\S+)", server.complaints())
        assert printed is not None
        assert get(server.port, printed[1])[0] == 303
        status, kind, page = get(server.port, printed[1])
        assert (status, kind) == (403, "text/html; charset=utf-8")
        assert f"<code>holdfast link {server.base}</code>" in page
        status, kind, said = get(server.port, printed[1], accept="*/*")
        assert (status, kind) == (403, "application/json") and f"`holdfast link {server.base}`" in said
        made = link(server.base, "--store", server.store)
        assert made.returncode == 0, made.stderr
        assert made.stdout.startswith(f"{server.base}/link/") and "works once" in made.stderr
        path = made.stdout.strip().removeprefix(server.base)
        assert [get(server.port, path)[0] for _ in range(2)] == [303, 403]


def test_the_page_of_this_machine_makes_links_too(tmp_path: Path) -> None:
    with WebProcess(tmp_path) as page:
        made = link(f"{page.base}/", "--store", str(page.store))
        assert made.returncode == 0, made.stderr
        assert get(page.port, made.stdout.strip().removeprefix(page.base))[0] == 303


def test_nobody_but_the_user_who_runs_the_server_gets_a_link(tmp_path: Path) -> None:
    elsewhere = str(tmp_path / "elsewhere" / "s.db")
    with ServeProcess(tmp_path, options=("--web",)) as server:
        for token, why in ((server.token("ada"), "Only the user who runs this server"), ("hf_guess", "answered 401")):
            refused = link(server.base, "--store", elsewhere, token=token)
            assert refused.returncode == 1 and refused.stdout == "" and why in refused.stderr


def test_a_link_of_a_server_without_a_page_signs_in_and_says_how_to_have_one(tmp_path: Path) -> None:
    with ServeProcess(tmp_path) as server:
        said = server.complaints()
        printed = re.search(r"in a browser +http://\S+(/link/\S+) .*add --web for a page", said)
        assert printed is not None
        made = link(server.base, "--store", server.store)
        for path in (printed[1], made.stdout.strip().removeprefix(server.base)):
            status, cookie, _ = get(server.port, path, wanted="set-cookie")
            assert status == 303
            status, kind, page = get(server.port, "/", cookie=cookie.partition(";")[0])
            assert (status, kind) == (404, "text/html; charset=utf-8")
            assert "/acp" in page and "<code>serve --web</code>" in page
