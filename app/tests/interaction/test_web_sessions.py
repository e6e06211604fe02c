"""A session in the browser: read from any line, followed as it happens, talked to, in step with all other clients."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from app.tests.support.pages import conversation, on_pages, opened_pages, said
from holdfast import Agent, Turn

if TYPE_CHECKING:
    from app.tests.support.pages import Pages


def prompt(text: str, name: str | None = None) -> dict[str, Any]:
    return {"prompt": [{"type": "text", "text": text}], "request": name}


async def new_session(pages: Pages, agent: str = "holdfast-demo", cwd: str = "/") -> str:
    return (await pages.post("/sessions", {"agent": agent, "cwd": cwd})).json()["session"]


def numbers(text: str) -> list[str]:
    return re.findall(r"(?:prompt|answer) (\d+)", text)


# Reading


@on_pages
async def test_a_session_begins_with_its_end(pages: Pages) -> None:
    session = await pages.add_session(conversation(1_000))
    text = (await pages.get(f"/sessions/{session}")).text
    assert numbers(text)[-1] == "999" and 'data-lines="2000"' in text
    assert len(numbers(text)) < 100


@on_pages
async def test_older_and_later_entries_come_page_by_page_none_twice_and_none_missing(pages: Pages) -> None:
    session = await pages.add_session(conversation(200))
    read: list[str] = []
    before = 400
    while before > 0:
        text = (await pages.get(f"/sessions/{session}/entries?before={before}")).text
        read = [*re.findall(r'data-line="(\d+)"', text), *read]
        first = re.search(r'data-first="(\d+)"', text)
        assert first is not None
        before = int(first[1])
    assert read == [str(n) for n in range(400)]
    later = (await pages.get(f"/sessions/{session}/entries?after=100")).text
    assert re.findall(r'data-line="(\d+)"', later)[0] == "100"


@on_pages
async def test_a_page_never_begins_in_the_middle_of_an_entry(pages: Pages) -> None:
    call = {"sessionUpdate": "tool_call_update", "toolCallId": "t", "title": "Dig", "status": "in_progress"}
    more = {"sessionUpdate": "tool_call_content_chunk", "toolCallId": "t",
            "content": {"type": "content", "content": {"type": "text", "text": "earth"}}}  # fmt: skip
    session = await pages.add_session([*conversation(5), call, more, more, *conversation(0)])
    text = (await pages.get(f"/sessions/{session}/entries?after=12")).text
    assert 'data-first="10"' in text and "Dig" in text


@on_pages
async def test_the_index_lists_all_prompts_and_words_are_found_whatever_their_case(pages: Pages) -> None:
    session = await pages.add_session([*conversation(30), said("agent_message", "x", "Ein Über-Walross, WALROSS")])
    prompts = (await pages.get(f"/sessions/{session}/prompts")).text
    assert len(re.findall("data-line", prompts)) == 30
    for words in ("walross", "über-walross", "ÜBER"):
        found = (await pages.get(f"/sessions/{session}/find?q={quote(words)}")).text
        assert 'data-line="60"' in found and "<mark>" in found, words


# Talking


@on_pages
async def test_a_prompt_is_shown_answered_and_stored_for_good_in_every_tab(pages: Pages) -> None:
    session = await new_session(pages)
    async with (
        pages.feed(f"/sessions/{session}/live?lines=0") as here,
        pages.feed(f"/sessions/{session}/live?lines=0") as there,
    ):
        answer = await pages.post(f"/sessions/{session}/prompt", prompt("Hello, page"))
        assert answer.status == 200
        for tab in (here, there):
            await tab.until("entries", lines=2)
            assert tab.shown().count("<p>Hello, page</p>") == 2  # the prompt, and the demo's echo
    text = (await pages.get(f"/sessions/{session}")).text
    assert 'id="l0"' in text and 'id="l1"' in text


@on_pages
async def test_a_prompt_sent_again_under_its_name_is_taken_once(pages: Pages) -> None:
    session = await new_session(pages)
    first = (await pages.post(f"/sessions/{session}/prompt", prompt("once", "n1"))).json()
    again = (await pages.post(f"/sessions/{session}/prompt", prompt("once", "n1"))).json()
    other = (await pages.post(f"/sessions/{session}/prompt", prompt("once", "n2"))).json()
    assert first == again != other


@on_pages
async def test_a_feed_that_was_cut_goes_on_with_nothing_missing(pages: Pages) -> None:
    session = await new_session(pages)
    async with pages.feed(f"/sessions/{session}/live?lines=0") as tab:
        await pages.post(f"/sessions/{session}/prompt", prompt("first"))
        await tab.until("entries", lines=2)
    await pages.post(f"/sessions/{session}/prompt", prompt("second"))
    await pages.post(f"/sessions/{session}/prompt", prompt("third"))
    async with pages.feed(f"/sessions/{session}/live?lines=2") as tab:
        await tab.until_shown("third")
        await tab.until("entries", lines=6)
        shown = tab.shown()
    assert "<p>first" not in shown and shown.count("<p>second") == 2 and shown.count("<p>third") == 2


@on_pages
async def test_a_tab_that_is_far_behind_is_told_to_begin_anew(pages: Pages) -> None:
    session = await pages.add_session(conversation(500))
    async with pages.feed(f"/sessions/{session}/live?lines=0") as tab:
        await tab.until("reset")
    assert not tab.shown()


@pytest.mark.requirement("P13", "F5")
@on_pages
async def test_a_question_shows_all_it_is_about_and_the_first_answer_closes_it_everywhere(pages: Pages) -> None:
    session = await new_session(pages)
    async with (
        pages.feed(f"/sessions/{session}/live?lines=0") as here,
        pages.feed(f"/sessions/{session}/live?lines=0") as there,
    ):
        await pages.post(f"/sessions/{session}/prompt", prompt("/ask"))
        question = await here.until("question")
        assert question["id"] == (await there.until("question"))["id"]
        assert "Launch the rocket" in question["html"] and "execute" in question["html"]
        body = {"question": question["id"], "option": "allow_once"}
        assert (await pages.post(f"/sessions/{session}/answer", body)).json() == {"answered": True}
        for tab in (here, there):
            await tab.until("answered", id=question["id"])
        assert (await pages.post(f"/sessions/{session}/answer", body)).json() == {"answered": False}
        await here.until_shown("That was that")


@on_pages
async def test_a_form_is_filled_in(pages: Pages) -> None:
    session = await new_session(pages)
    async with pages.feed(f"/sessions/{session}/live?lines=0") as tab:
        await pages.post(f"/sessions/{session}/prompt", prompt("/form"))
        question = await tab.until("question")
        assert 'name="name"' in question["html"] and "required" in question["html"]
        body = {"question": question["id"], "action": "accept", "content": {"name": "Ada"}}
        await pages.post(f"/sessions/{session}/answer", body)
        await tab.until_shown("Ada")


@on_pages
async def test_a_question_waits_for_a_tab_that_comes_back(pages: Pages) -> None:
    session = await new_session(pages)
    async with pages.feed(f"/sessions/{session}/live?lines=0") as tab:
        await pages.post(f"/sessions/{session}/prompt", prompt("/ask"))
        await tab.until("question")
    async with pages.feed(f"/sessions/{session}/live?lines=0") as tab:
        assert (await tab.until("question"))["html"]


@on_pages
async def test_a_turn_is_stopped(pages: Pages) -> None:
    session = await new_session(pages)
    async with pages.feed(f"/sessions/{session}/live?lines=0") as tab:
        await pages.post(f"/sessions/{session}/prompt", prompt("/sleep 100"))
        await tab.until("state", state="running")
        await pages.post(f"/sessions/{session}/cancel")
        await tab.until_shown("The turn was cancelled")
        await tab.until("entries")


@on_pages
async def test_a_prompt_in_line_is_told_until_its_time_has_come(pages: Pages) -> None:
    session = await new_session(pages)
    async with pages.feed(f"/sessions/{session}/live?lines=0") as tab:
        await pages.post(f"/sessions/{session}/prompt", prompt("/sleep 100"))
        await tab.until("state", state="running")
        then = (await pages.post(f"/sessions/{session}/prompt", prompt("and then this"))).json()["message"]
        await tab.until("state", waiting=[[then, "and then this"]])
        stopped = (await pages.post(f"/sessions/{session}/cancel")).json()
        assert stopped == {"withdrawn": [prompt("and then this")["prompt"]]}, "nothing that was written is lost"
        await tab.until("state", state="idle", waiting=[])


@on_pages
async def test_a_prompt_in_line_can_be_taken_back_but_not_one_that_the_agent_has(pages: Pages) -> None:
    session = await new_session(pages)
    async with pages.feed(f"/sessions/{session}/live?lines=0") as tab:
        taken = (await pages.post(f"/sessions/{session}/prompt", prompt("/sleep 100"))).json()["message"]
        await tab.until("state", state="running", waiting=[])
        first = (await pages.post(f"/sessions/{session}/prompt", prompt("the first"))).json()["message"]
        second = (await pages.post(f"/sessions/{session}/prompt", prompt("the second"))).json()["message"]
        back = (await pages.post(f"/sessions/{session}/withdraw", {"message": first})).json()
        assert back == {"withdrawn": [prompt("the first")["prompt"]]}
        await tab.until("state", state="running", waiting=[[second, "the second"]])
        for gone in (taken, first, "msg_of_nobody"):
            assert (await pages.post(f"/sessions/{session}/withdraw", {"message": gone})).json() == {"withdrawn": []}
        await pages.post(f"/sessions/{session}/cancel")
        await tab.until("state", state="idle", waiting=[])
        assert not [message for message in tab.messages if message["type"] == "notice"]


@on_pages
async def test_options_are_shown_and_set(pages: Pages) -> None:
    session = await new_session(pages)
    async with pages.feed(f"/sessions/{session}/live?lines=0") as tab:
        await pages.post(f"/sessions/{session}/option", {"option": "mode", "value": "auto"})
        await tab.until_true(
            lambda: any('value="auto" selected' in str(message.get("html")) for message in tab.messages)
        )
        refused = await pages.post(f"/sessions/{session}/option", {"option": "mode", "value": "nonsense"})
        assert refused.status == 400


@on_pages
async def test_editing_what_was_said_goes_on_in_a_fork_and_leaves_the_session_as_it_was(pages: Pages) -> None:
    session = await pages.add_session(conversation(3), cwd="/")
    made = (await pages.post(f"/sessions/{session}/resend", {"entry": "u1", **prompt("something else")})).json()
    async with pages.feed(f"{made['href']}/live?lines=2") as tab:
        await tab.until("entries", lines=5)
        assert "something else" in tab.shown()
        assert "The files are as they are now, not as they were then." in tab.shown()
    fork = (await pages.get(made["href"])).text
    assert "answer 0" in fork and "prompt 1" not in fork
    assert "prompt 2" in (await pages.get(f"/sessions/{session}")).text


@on_pages
async def test_the_first_message_can_be_edited_too(pages: Pages) -> None:
    session = await pages.add_session(conversation(2), cwd="/")
    made = (await pages.post(f"/sessions/{session}/resend", {"entry": "u0", **prompt("from the start")})).json()
    async with pages.feed(f"{made['href']}/live?lines=0") as tab:
        await tab.until("entries", lines=2)
        assert "from the start" in tab.shown() and "answer 0" not in tab.shown()


@on_pages
async def test_sessions_of_agents_that_may_not_be_started_are_only_read(pages: Pages) -> None:
    session = await pages.add_session(conversation(1), agent="stranger")
    text = (await pages.get(f"/sessions/{session}")).text
    assert "This server has another agent" in text and 'id="composer"' not in text and "answer 0" in text
    for action in ("prompt", "cancel", "answer", "option", "resend"):
        answer = await pages.post(f"/sessions/{session}/{action}", prompt("hello"))
        assert answer.status == 403


@on_pages
async def test_reading_a_session_starts_no_agent(pages: Pages) -> None:
    session = await pages.add_session(conversation(1), cwd="/")
    async with pages.feed(f"/sessions/{session}/live?lines=2") as tab:
        await tab.until("state", state="closed")
        assert dict((await pages.pages.desk()).activity.doing) == {}


async def test_what_an_agent_says_many_times_a_second_comes_together_and_is_whole() -> None:
    agent = Agent("chatty")

    @agent.prompt
    async def answer(turn: Turn) -> None:
        for n in range(500):
            await turn.say(f"word{n} ")
            await asyncio.sleep(0)

    async with opened_pages(agent) as pages:
        session = await new_session(pages, "chatty")
        async with pages.feed(f"/sessions/{session}/live?lines=0") as tab:
            await pages.post(f"/sessions/{session}/prompt", prompt("talk"))
            await tab.until("entries", lines=2)
        words = re.findall(r"word(\d+)", tab.shown())
        assert words == [str(n) for n in range(500)]
        assert len(tab.messages) < 100


async def test_a_plan_that_is_taken_away_goes_from_the_page() -> None:
    agent = Agent("planner")

    @agent.prompt
    async def answer(turn: Turn) -> None:
        await turn.say("done")

    async with opened_pages(agent) as pages:
        session = await new_session(pages, "planner")
        async with pages.feed(f"/sessions/{session}/live?lines=0") as tab:
            await pages.post(f"/sessions/{session}/prompt", prompt("go"))
            await tab.until("entries", lines=2)
            engine = await (await pages.pages.desk()).agents.known()["planner"].host.engine()
            plan = {
                "type": "items",
                "planId": "p",
                "entries": [{"content": "step", "status": "pending", "priority": "low"}],
            }
            engine.get(session).emit_update({"sessionUpdate": "plan_update", "plan": plan})
            await tab.until_shown("step")
            engine.get(session).emit_update({"sessionUpdate": "plan_removed", "planId": "p"})
            await tab.until_true(lambda: any("plan_update/p" in message.get("removed", ()) for message in tab.messages))


@on_pages
async def test_a_session_that_is_deleted_says_so_to_whoever_looks_at_it(pages: Pages) -> None:
    session = await new_session(pages)
    async with pages.feed(f"/sessions/{session}/live?lines=0") as tab:
        await pages.post(f"/sessions/{session}/prompt", prompt("hello"))
        await tab.until("entries", lines=2)
        await pages.post(f"/sessions/{session}/delete")
        await (await pages.pages.desk()).deletions.close()
        await tab.until("gone")


@on_pages
async def test_the_library_tells_which_sessions_run_and_which_wait(pages: Pages) -> None:
    session = await new_session(pages)
    async with pages.feed("/live") as tab:
        await pages.post(f"/sessions/{session}/prompt", prompt("/ask"))
        await tab.until_true(lambda: any("waits for you" in str(message) for message in tab.messages))
        assert "waits for you" in (await pages.get("/")).text
