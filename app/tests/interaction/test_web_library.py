"""The library in the browser: what is listed, found and kept in order, and for whom."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from app.tests.support.pages import conversation, on_pages, opened_pages, said
from holdfast.server.access import Access
from holdfast.workspace.allowed import AllowedDirectories

if TYPE_CHECKING:
    from app.tests.support.pages import Pages

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(1)>'


@on_pages
async def test_sessions_are_listed_newest_first_with_what_is_known_of_them(pages: Pages) -> None:
    for n in range(3):
        await pages.add_session(conversation(1), title=f"Session {n}", cwd=f"/work/{n}", at=1_700_000_000_000_000 + n)
    text = (await pages.get("/")).text
    assert re.findall(r'class="title">(Session \d)<', text) == ["Session 2", "Session 1", "Session 0"]
    assert "/work/2" in text and "holdfast-demo" in text and "2 messages" in text


@on_pages
async def test_a_long_list_comes_in_pages_each_naming_the_next(pages: Pages) -> None:
    for n in range(120):
        await pages.add_session(conversation(1), title=f"S{n:03}", at=1_700_000_000_000_000 + n)
    seen: list[str] = []
    text = (await pages.get("/")).text
    while True:
        seen += re.findall(r'class="title">(S\d+)<', text)
        more = re.search(r'data-more="([^"]+)"', text)
        if more is None:
            break
        text = (await pages.get(more[1].replace("&amp;", "&"))).text
    assert seen == [f"S{n:03}" for n in reversed(range(120))]


@pytest.mark.requirement("P12")
@on_pages
async def test_what_belongs_to_others_is_neither_listed_found_opened_nor_touched(pages: Pages) -> None:
    session = await pages.add_session([said("user_message", "m", "the secret plan")], title="Hers", principal="ada")
    await pages.store.edit(session, title="Hers, a plan")
    assert "Hers" not in (await pages.get("/")).text
    assert "Hers" not in (await pages.get("/search?q=plan")).text
    for part in ("", "/entries", "/prompts", "/find?q=secret", "/files", "/export"):
        answer = await pages.get(f"/sessions/{session}{part}")
        assert answer.status == 404 and "secret" not in answer.text
    for action in ("rename", "archive", "delete", "fork", "prompt", "answer", "resend", "hand-over", "seen"):
        assert (
            await pages.post(f"/sessions/{session}/{action}", {"title": "Mine", "agent": "holdfast-demo"})
        ).status == 404
    async with pages.feed(f"/sessions/{session}/live?lines=0") as tab:
        await tab.until_closed()
    assert tab.closed == 4404 and tab.messages == []
    assert "Hers" in (await pages.get("/", principal="ada")).text


@on_pages
async def test_foreign_and_absent_sessions_look_the_same(pages: Pages) -> None:
    theirs = await pages.add_session(conversation(1), principal="ada")
    foreign, absent = await pages.get(f"/sessions/{theirs}"), await pages.get("/sessions/sess_00000000000000000000")
    assert (foreign.status, foreign.body) == (absent.status, absent.body)


@on_pages
async def test_every_answer_forbids_scripts_that_are_not_ours(pages: Pages) -> None:
    for address in ("/", "/rows", "/nothing", "/sessions/none"):
        policy = (await pages.get(address)).headers["content-security-policy"]
        assert "unsafe" not in policy
        assert {"default-src 'none'", "script-src 'self'", "require-trusted-types-for 'script'"} <= set(
            policy.split("; ")
        )


@on_pages
async def test_titles_directories_and_agents_are_text_and_nothing_else(pages: Pages) -> None:
    session = await pages.add_session(
        [said("user_message", HOSTILE, f"word {HOSTILE}")], title=HOSTILE, cwd=f"/{HOSTILE}", agent=HOSTILE
    )
    for address in (
        "/",
        "/search?q=word",
        f"/sessions/{session}",
        f"/sessions/{session}/prompts",
        f"/sessions/{session}/find?q=word",
    ):
        text = (await pages.get(address)).text
        assert "<script>alert" not in text and "<img src=x" not in text, address


@on_pages
async def test_what_is_asked_for_again_is_not_sent_again(pages: Pages) -> None:
    first = await pages.get("/", accept_encoding="gzip")
    again = await pages.get("/", accept_encoding="gzip", if_none_match=first.headers["etag"])
    assert first.headers["content-encoding"] == "gzip"
    assert (again.status, again.body) == (304, b"")


@on_pages
async def test_scripts_and_style_are_small_and_kept_for_ever(pages: Pages) -> None:
    text = (await pages.get("/")).text + (await pages.get(f"/sessions/{await pages.add_session(conversation(1))}")).text
    tree = re.search(r"/assets/([0-9a-f]+)/", text)
    assert tree is not None
    from holdfast_app.web.assets import all_assets

    packed = sum(len(asset.packed) for name, asset in all_assets().items() if name.endswith((".js", ".css")))
    assert packed <= 60_000
    for name in all_assets():
        answer = await pages.get(f"/assets/{tree[1]}/{name}")
        assert answer.status == 200 and "immutable" in answer.headers["cache-control"]
    assert (await pages.get("/assets/0123456789abcdef/page.css")).status == 404


@on_pages
async def test_a_search_marks_what_it_found_and_leads_to_it(pages: Pages) -> None:
    session = await pages.add_session([*conversation(40), said("agent_message", "x", "the walrus <b>sings</b>")])
    text = (await pages.get("/search?q=walrus")).text
    assert "<mark>walrus</mark>" in text and "&lt;b&gt;sings" in text
    link = re.search(r'href="(/sessions/[^"]+)"', text)
    assert link is not None and session in link[1]
    shown = (await pages.get(link[1].replace("&amp;", "&"))).text
    assert "walrus" in shown and 'data-at="80"' in shown


@on_pages
async def test_a_search_says_how_many_places_there_are_and_leads_to_all_of_them(pages: Pages) -> None:
    def found(text: str) -> tuple[int, list[str]]:
        return text.count('class="row hit"'), re.findall('data-found="([^"]*)"', text)

    await pages.add_session([said("agent_message", f"x{n}", f"walrus {n}") for n in range(149)], cwd="/here")
    text = (await pages.get("/search?q=walrus&cwd=/here")).text
    assert found(text) == (40, ["The first 40 of 149 places"])
    more = re.search(r'href="/(\?[^"]*)">Show 149 places<', text)
    assert more is not None
    text = (await pages.get(f"/search{more[1].replace('&amp;', '&')}")).text
    assert found(text) == (149, ["149 places"]) and "Show" not in text
    assert found((await pages.get("/search?q=%22walrus+7%22")).text) == (1, ["1 place"])
    assert found((await pages.get("/search?q=whale")).text) == (0, ["No place"])
    await pages.add_session([said("agent_message", f"y{n}", f"walrus {n}") for n in range(1_000)])
    text = (await pages.get("/search?q=walrus")).text
    assert found(text) == (40, ["The first 40 of more than 1,000 places"]) and "places=400" in text


@on_pages
async def test_words_in_one_session_are_counted_to_the_last(pages: Pages) -> None:
    session = await pages.add_session([said("agent_message", f"x{n}", f"walrus {n}") for n in range(2_149)])
    text = (await pages.get(f"/sessions/{session}/find?q=walrus")).text
    assert text.count("<mark>") == 2_000 and 'data-found="The first 2,000 of 2,149 places"' in text
    assert 'data-found="No place"' in (await pages.get(f"/sessions/{session}/find?q=whale")).text


@on_pages
async def test_a_place_says_whose_words_it_has(pages: Pages) -> None:
    thought, tool = said("agent_thought", "t", "a walrus?"), {"sessionUpdate": "terminal_update", "terminalId": "c"}
    await pages.add_session([thought, {**tool, "command": "find walrus"}])
    text = (await pages.get("/search?q=walrus")).text
    assert set(re.findall('class="who">([^<]*)<', text)) == {"Thought", "Terminal"}


@on_pages
async def test_filters_hold_for_rows_and_search(pages: Pages) -> None:
    await pages.add_session([said("user_message", "m", "fish")], title="Here", cwd="/here")
    await pages.add_session([said("user_message", "m", "fish")], title="There", cwd="/there", agent="other")
    for address in (
        "/?cwd=/here",
        "/?agent=holdfast-demo",
        "/search?q=fish&cwd=/here",
        "/search?q=fish&agent=holdfast-demo",
    ):
        text = (await pages.get(address)).text
        assert ">Here<" in text and ">There<" not in text, address


@on_pages
async def test_a_session_is_renamed_archived_and_taken_out_again(pages: Pages) -> None:
    session = await pages.add_session(conversation(1))
    assert (await pages.post(f"/sessions/{session}/rename", {"title": " A  new\nname "})).status == 200
    assert "A new name" in (await pages.get("/")).text
    await pages.post(f"/sessions/{session}/archive")
    assert session not in (await pages.get("/")).text
    assert session in (await pages.get("/?archived=only")).text
    await pages.post(f"/sessions/{session}/unarchive")
    assert session in (await pages.get("/")).text


@on_pages
async def test_a_deletion_can_be_taken_back_and_is_done_when_the_page_ends(pages: Pages) -> None:
    session, other = await pages.add_session(conversation(1)), await pages.add_session(conversation(1))
    assert (await pages.post(f"/sessions/{session}/delete")).json()["undo"] > 1
    assert session not in (await pages.get("/")).text
    assert (await pages.post(f"/sessions/{session}/undelete")).json() == {"undone": True}
    assert session in (await pages.get("/")).text
    await pages.post(f"/sessions/{other}/delete")
    await (await pages.pages.desk()).deletions.close()
    assert await pages.store.find(other, limit=1) == []
    assert (await pages.post(f"/sessions/{session}/undelete")).json() == {"undone": False}


@on_pages
async def test_a_fork_ends_with_the_entry_it_was_made_at(pages: Pages) -> None:
    session = await pages.add_session(conversation(3))
    made = (await pages.post(f"/sessions/{session}/fork", {"entry": "a1"})).json()
    text = (await pages.get(made["href"])).text
    assert "answer 1" in text and "prompt 2" not in text


@on_pages
async def test_a_session_handed_over_belongs_to_the_other_agent(pages: Pages) -> None:
    session = await pages.add_session(conversation(1), agent="other")
    assert (await pages.post(f"/sessions/{session}/hand-over", {"agent": "nobody"})).status == 400
    assert (await pages.post(f"/sessions/{session}/hand-over", {"agent": "holdfast-demo"})).status == 200
    assert (await pages.store.get(session)).info.agent == "holdfast-demo"


@on_pages
async def test_what_happened_since_it_was_seen_is_unread_in_every_browser(pages: Pages) -> None:
    session = await pages.add_session(conversation(1), at=4_000_000_000_000_000)
    assert "data-unread" in (await pages.get("/")).text
    await pages.get(f"/sessions/{session}")
    assert "data-unread" not in (await pages.get("/")).text


@on_pages
async def test_a_form_of_another_page_can_do_nothing(pages: Pages) -> None:
    session = await pages.add_session(conversation(1))
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        answer = await pages.ask("POST", f"/sessions/{session}/delete", b"{}", content_type=kind)
        assert answer.status == 415
    assert session in (await pages.get("/")).text


@on_pages
async def test_an_export_has_no_secrets_unless_it_is_asked_for_with_them(pages: Pages) -> None:
    key = "ghp_" + "a1B2" * 9
    session = await pages.add_session([said("user_message", "m", f"my token is {key}")])
    for name in ("html", "markdown", "json"):
        assert key not in (await pages.get(f"/sessions/{session}/export?format={name}")).text
    kept = await pages.get(f"/sessions/{session}/export?format=json&secrets=keep")
    assert key in kept.text and kept.headers["content-disposition"].startswith("attachment")


@pytest.mark.requirement("P10")
@on_pages
async def test_the_name_of_an_exported_file_has_no_secrets_either(pages: Pages) -> None:
    session = await pages.add_session([said("user_message", "m", "x")], title=f"use ghp_{'a1B2' * 9} for it")
    exported = await pages.get(f"/sessions/{session}/export?format=markdown")
    assert exported.headers["content-disposition"] == 'attachment; filename="use-redacted-GitHub-token-for-it.md"'
    kept = await pages.get(f"/sessions/{session}/export?format=markdown&secrets=keep")
    assert "a1B2a1B2" in kept.headers["content-disposition"]


@pytest.mark.requirement("H10")
async def test_a_principal_works_in_its_own_directories_alone() -> None:
    async with opened_pages(access=Access(AllowedDirectories(["/srv/ada"]))) as pages:
        session = await pages.add_session(conversation(1), cwd="/etc")
        assert (await pages.post("/sessions", {"agent": "holdfast-demo", "cwd": "/etc"})).status == 400
        answer = await pages.post(f"/sessions/{session}/prompt", {"prompt": [{"type": "text", "text": "hello"}]})
        assert answer.status == 400 and "/etc" in answer.json()["error"]
        assert (await pages.get(f"/sessions/{session}/files?q=pass")).status != 200
