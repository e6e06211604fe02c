"""A second person signs in to the page of a server, with a token: also without scripts (H6)."""

from __future__ import annotations

import http.client
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

from app.tests.support.remote_process import PATIENCE, ServeProcess

if TYPE_CHECKING:
    from pathlib import Path

    from app.tests.support.browser import Browser

pytestmark = [pytest.mark.timeout(300), pytest.mark.requirement("H6")]

BAD = ("error", "complaint", "violation", "dialog")
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_a_person_with_a_token_signs_in_and_comes_to_where_they_wanted(
    browser: Browser, tmp_path: Path, *, scripts: bool
) -> None:
    with (
        ServeProcess(tmp_path, options=("--web",)) as server,
        browser.page(javaScriptEnabled=scripts, viewport={"width": 390, "height": 844}) as page,
    ):
        token = server.token("bob")
        page.open(f"{server.base}/?agent=demo")
        page.sees("role=heading[name='Sign in']")
        page.fill("role=textbox[name='Your token']", "hf_not-this-one-but-another")
        page.press("Enter", "input[name=token]")
        page.sees("role=alert >> text=This token is not known here")
        page.fill("role=textbox[name='Your token']", f"  {token} ")
        page.click("role=button[name='Sign in']")
        page.sees("#rows")
        assert page.call(["url"]) == f"{server.base}/?agent=demo"
        assert not page.noted("violation", "error", "dialog")
        audit = (tmp_path / "audit.jsonl").read_text()
        assert '"did":"sign-in"' in audit and '"who":"bob"' in audit
        assert token not in audit + server.complaints() and "another" not in audit + server.complaints()


@pytest.mark.parametrize(
    "seen", [{"colorScheme": "light"}, {"colorScheme": "dark"}, {"forcedColors": "active"}], ids=str
)
def test_the_pages_before_the_sign_in_have_no_barrier(browser: Browser, tmp_path: Path, seen: dict[str, str]) -> None:
    with (
        ServeProcess(tmp_path, options=("--web",)) as server,
        browser.page(**seen, viewport={"width": 320, "height": 640}) as page,
    ):
        for path in ("/", "/link/used-up-and-gone"):
            page.open(f"{server.base}{path}")
            page.sees("main h1")
            assert page.barriers() == []
            assert page.run("document.documentElement.scrollWidth <= innerWidth")


def post(server: ServeProcess, body: str, **headers: str) -> tuple[int, str, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    try:
        connection.request("POST", "/sign-in", body, {"Accept": "text/html", **headers})
        answer = connection.getresponse()
        answer.read()
        return answer.status, answer.getheader("location") or "", answer.getheader("set-cookie") or ""
    finally:
        connection.close()


def test_only_our_own_form_signs_in_and_it_leads_nowhere_else(tmp_path: Path) -> None:
    with ServeProcess(tmp_path, options=("--web",)) as server:
        token = server.token("bob")
        body, own = urlencode({"token": token}), {**FORM, "Origin": server.base}
        status, to, cookie = post(server, body, **own)
        assert (status, to) == (303, "/")
        assert all(word in cookie for word in ("HttpOnly", "SameSite=Strict", "Path=/"))
        for headers in (FORM, {**FORM, "Origin": "null"}, {**FORM, "Origin": "https://evil.example"}):
            assert post(server, body, **headers)[::2] == (403, ""), headers
        assert post(server, body, Origin=server.base)[0] == 415
        assert post(server, "token=" + "x" * 10_000, **own)[0] == 413
        for wrong in ("", "token=", "token=short", "to=/", "token=%00%ff"):
            assert post(server, wrong, **own)[::2] == (401, ""), wrong
        for elsewhere in ("//evil.example", "https://evil.example", "/\\evil.example", "/a\r\nSet-Cookie: a=b", "x"):
            assert post(server, urlencode({"token": token, "to": elsewhere}), **own)[:2] == (303, "/"), elsewhere


def test_a_server_without_a_page_has_no_form(tmp_path: Path) -> None:
    with ServeProcess(tmp_path) as server:
        assert post(server, urlencode({"token": server.token("bob")}), **FORM, Origin=server.base)[0] == 401
