"""`holdfast link`: another link for a browser, where the one that the server printed was used up (H6)."""

from __future__ import annotations

import http.client
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from app.tests.support.remote_process import PATIENCE, ServeProcess
from app.tests.support.web_process import WebProcess

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


def test_somebody_without_a_token_gets_no_link(tmp_path: Path) -> None:
    elsewhere = str(tmp_path / "elsewhere" / "s.db")
    with ServeProcess(tmp_path, options=("--web",)) as server:
        refused = link(server.base, "--store", elsewhere, token="hf_guess")
        assert refused.returncode == 1 and refused.stdout == "" and "answered 401" in refused.stderr


def test_a_token_makes_links_for_its_own_person(tmp_path: Path) -> None:
    with ServeProcess(tmp_path, options=("--web",)) as server:
        file = tmp_path / "ada.token"
        file.write_text(server.token("ada") + "\n")
        made = link(server.base, "--token-file", str(file))
        assert made.returncode == 0, made.stderr
        path = made.stdout.strip().removeprefix(server.base)
        status, cookie, _ = get(server.port, path, wanted="set-cookie")
        assert status == 303
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        connection.request("POST", "/link", headers={"Cookie": cookie.partition(";")[0], "Origin": server.base})
        assert connection.getresponse().status == 403, "a cookie makes no link"
        connection.close()
        assert get(server.port, "/", cookie=cookie.partition(";")[0])[0] == 200
        assert token_command("remove", "ada", server=server).returncode == 0
        assert get(server.port, "/", cookie=cookie.partition(";")[0])[0] == 401


def token_command(*words: str, server: ServeProcess) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "holdfast", "token", *words, "--store", server.store]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=2 * PATIENCE)


def test_a_new_token_comes_with_a_link_of_the_server_that_runs(tmp_path: Path) -> None:
    with ServeProcess(tmp_path, options=("--web",)) as server:
        made = token_command("new", "bob", "--link", server=server)
        assert made.returncode == 0, made.stderr
        token, address = made.stdout.split()
        assert token.startswith("hf_") and address.startswith(f"{server.base}/link/")
        path = address.removeprefix(server.base)
        assert [get(server.port, path)[0] for _ in range(2)] == [303, 403]
        assert link("--store", server.store).stdout.startswith(f"{server.base}/link/")
        server.kill()
    late = token_command("new", "bob", "--link", server=server)
    assert late.returncode == 1 and late.stdout == ""
    assert "no `holdfast serve --web` runs on this store" in late.stderr


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
