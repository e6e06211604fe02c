"""What every store finds: words in titles, messages, thoughts and tool calls, newest first."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from core.tests.support.stores import ALL, CWD, hits, info, lines, message, new, talked, turn
from holdfast.format import lines_of
from holdfast.model import History, SessionState, event_from
from holdfast.store import Changes

if TYPE_CHECKING:
    from core.tests.support.stores import Place


async def test_titles_messages_thoughts_and_tool_calls_are_found_newest_first(place: Place) -> None:
    async with place.open() as store:
        claim = await new(store, title="The red title")
        await turn(
            store,
            claim,
            message("a red question", kind="user_message", key="q"),
            *lines({"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "Read red.txt"}),
            message("the red answer", key="a"),
            message("red thought", kind="agent_thought", key="t"),
        )
        found = await store.search("red", ALL, cwd=None, limit=9)
        assert [(hit.kind, hit.key, hit.text) for hit in found] == [
            ("agent_thought", "t", "red thought"),
            ("agent_message", "a", "the red answer"),
            ("tool_call_update", "c", "Read red.txt"),
            ("user_message", "q", "a red question"),
            ("title", "", "The red title"),
        ]
        assert all(hit.session == found[0].session for hit in found)
        assert found[0].session == (await store.get(claim.session)).info
        assert [[hit.text[start:end] for start, end in hit.marks] for hit in found] == [["red"]] * 5


async def test_what_tools_were_asked_and_gave_is_found_and_what_terminals_showed(place: Place) -> None:
    call = {"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "Look", "status": "completed"}
    said = (
        call | {"rawInput": {"command": "grep amber", "deep": [{"in": "indigo"}]}, "rawOutput": "never shown: teal"},
        {"sessionUpdate": "tool_call_update", "toolCallId": "d", "title": "Raw", "rawOutput": {"out": ["violet"]}},
    )
    content = [
        {"type": "content", "content": {"type": "text", "text": "found crimson\nin line 3"}},
        {"type": "diff", "path": "/work/olive.py", "oldText": "beige", "newText": "was = 'khaki'"},
        {"type": "diff", "patch": {"format": "git_patch", "text": "+maroon"}},
    ]
    shown = base64.b64encode(b"\x1b[31mscar\x1b[0mlet \xff\r\n").decode()
    terminal = {"sessionUpdate": "terminal_update", "terminalId": "t", "command": "make azure"}
    async with place.open() as store:
        claim = await new(store)
        await turn(
            store,
            claim,
            *lines(said[0] | {"content": content}),
            *lines(said[1]),
            *lines(terminal | {"output": {"data": shown}, "exitStatus": {"exitCode": 0}}),
        )
        for word in ("amber", "indigo", "crimson", "olive", "khaki", "maroon"):
            (hit,) = await store.search(word, ALL, cwd=None, limit=9)
            assert (hit.kind, hit.key) == ("tool_call_update", "c") and hit.marks, word
        assert [hit.key for hit in await store.search("violet", ALL, cwd=None, limit=9)] == ["d"]
        for word in ("scarlet", "azure"):
            (hit,) = await store.search(word, ALL, cwd=None, limit=9)
            assert (hit.kind, hit.key) == ("terminal_update", "t") and hit.marks, word
        assert await hits(store, "teal") == []


async def test_long_output_is_found_at_its_two_ends(place: Place) -> None:
    text = f"firstword {'middle ' * 20_000} inside {'middle ' * 20_000} lastword"
    content = [{"type": "content", "content": {"type": "text", "text": text}}]
    async with place.open() as store:
        claim = await new(store)
        call = {"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "Log", "content": content}
        await turn(store, claim, *lines(call))
        for word in ("firstword", "lastword", "log"):
            (hit,) = await store.search(word, ALL, cwd=None, limit=9)
            assert [hit.text[slice(*mark)].lower() for mark in hit.marks] == [word]
        assert await hits(store, "inside") == []


async def test_a_phrase_is_words_in_a_row(place: Place) -> None:
    async with place.open() as store:
        await talked(
            store, CWD, "crash recovery works", "recovery after a crash", "crash, recovery!", title="Crash Recovery"
        )
        assert await hits(store, '"crash recovery"') == ["crash, recovery!", "crash recovery works", "Crash Recovery"]
        assert await hits(store, "crash recovery", limit=9) == [
            "crash, recovery!", "recovery after a crash", "crash recovery works", "Crash Recovery",
        ]  # fmt: skip
        assert await hits(store, '"recovery works" crash') == ["crash recovery works"]
        assert await hits(store, '"crash recovery') == await hits(store, '"crash recovery"')
        (hit,) = await store.search('"recovery works"', ALL, cwd=None, limit=9)
        assert [hit.text[start:end] for start, end in hit.marks] == ["recovery works"]
        assert await hits(store, "recovery.works") == ["crash recovery works"]
        assert await hits(store, "works.recovery") == []


async def test_the_beginning_of_a_word_is_written_with_an_asterisk(place: Place) -> None:
    async with place.open() as store:
        await talked(store, CWD, "Recovery", "recovering now", "we recover", "discovered", "Récovers")
        assert await hits(store, "recover*") == ["Récovers", "we recover", "recovering now", "Recovery"]
        assert await hits(store, "recover") == ["we recover"]
        assert await hits(store, '"recovering n*"') == ["recovering now"]
        assert await hits(store, "reco* now") == ["recovering now"]
        assert await hits(store, "*cover") == []
        (hit,) = await store.search("recovery*", ALL, cwd=None, limit=9)
        assert [hit.text[start:end] for start, end in hit.marks] == ["Recovery"]


async def test_phrases_and_beginnings_are_found_in_a_text_of_very_many_words(place: Place) -> None:
    said = " ".join(f"w{n:x}zzzzzzzzzzzz" for n in range(70_000)) + " needle haystack"
    async with place.open() as store:
        await talked(store, CWD, said, "other text")
        assert [len(text) for text in await hits(store, "haysta*")] == [len(said)]
        assert [len(text) for text in await hits(store, '"needle haystack"')] == [len(said)]
        assert await hits(store, "nothere*") == []
        assert await hits(store, '"haystack needle"') == []


async def test_a_search_may_leave_out_archived_sessions_and_older_ones(place: Place) -> None:
    async with place.open() as store:
        await talked(store, CWD, "old needle", title="needle title")
        away = await talked(store, CWD, "needle put away")
        await store.save(away, Changes(archived=True))
        border = (await store.get(away.session)).info.updated_at
        await talked(store, CWD, *(f"needle {n}" for n in range(2_100)))

        async def found(**area: Any) -> set[str]:
            return {hit.text for hit in await store.search("needle", ALL, cwd=None, limit=5_000, **area)}

        new_ones = {f"needle {n}" for n in range(2_100)}
        older = {"old needle", "needle title"}
        assert await found() == new_ones | older | {"needle put away"}
        assert await found(archived="exclude") == new_ones | older
        assert await found(archived="only") == {"needle put away"}
        assert await found(since=border) == new_ones | {"needle put away"}
        assert await found(since=border + 1, archived="exclude") == new_ones
        assert await found(since=1 << 60) == set()


async def test_places_are_counted_as_a_search_finds_them(place: Place) -> None:
    async with place.open() as store:
        await talked(store, CWD, *(f"red needle {n}" for n in range(620)), title="needle title")
        away = await talked(store, "/elsewhere", "needle red", "other")
        await store.save(away, Changes(archived=True))
        for words, count in (
            ("needle", 622),
            ('"red needle"', 620),
            ("needle*", 622),
            ("other", 1),
            ("none", 0),
            ("", 0),
        ):
            assert await store.count_places(words, ALL, cwd=None, most=1_000) == count
            assert len(await store.search(words, ALL, cwd=None, limit=1_000)) == count
        assert await store.count_places("needle", ALL, cwd=None, most=600) == 600
        assert await store.count_places("needle", ALL, cwd=CWD, most=1_000) == 621
        assert await store.count_places("needle", ALL, cwd=None, most=1_000, archived="only") == 1
        assert await store.count_places("needle", ALL, cwd=None, most=1_000, since=1 << 60) == 0


async def test_all_of_the_words_must_be_there_in_any_order_and_case(place: Place) -> None:
    async with place.open() as store:
        await talked(store, CWD, "Green and BLUE", "blue alone", "greenish blue")
        assert await hits(store, "blue green") == ["Green and BLUE"]
        assert await hits(store, "BLUE") == ["greenish blue", "blue alone", "Green and BLUE"]
        assert await hits(store, "blu") == []


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("Crème brûlée", "creme brulee"),
        ("creme brulee", "Crème Brûlée"),
        ("Cafe\u0301 noir", "café"),
        ("Ελληνικά γράμματα", "ελληνικά"),
        ("ПРИВЕТ мир", "привет"),
        ("日本語 テキスト", "日本語"),
        ("x\U0001f600y smile", "smile"),
        ("snake_case_name", "case"),
        ("snake_case_name", "snake_case"),
        ("C++ and don't", "don't"),
        ("path/to/file.py", "file.py"),
        ("a\0null", "null"),
    ],
)
async def test_words_are_found_and_marked_whatever_their_script_and_accents(
    place: Place, said: str, words: str
) -> None:
    async with place.open() as store:
        await talked(store, CWD, said, "something else")
        (hit,) = await store.search(words, ALL, cwd=None, limit=9)
        assert hit.text == said
        assert hit.marks, "whoever is shown a hit wants to see why it is one"
        assert all(said[start:end].strip() for start, end in hit.marks)
        assert list(hit.marks) == sorted(hit.marks)


@pytest.mark.parametrize(
    "words",
    [
        '"', '""', "'", "needle\"", "(needle", "needle)", "needle*", "*", "^needle", "-needle", "needle -x",
        "text:needle",
        "{text}: needle", "NEAR(needle x)", "needle AND", "AND needle OR", "NOT", "+", "needle + needle", "\\", ";--",
        "needle\0", "\0", "_", "__ needle", "😀 needle", "needle %", "rowid", "words MATCH 'x'",
        "x" * 100_000, "needle " * 5_000,
    ],
)  # fmt: skip
async def test_no_character_means_anything_but_itself(place: Place, words: str) -> None:
    async with place.open() as store:
        await talked(store, CWD, "the needle", "AND OR NOT NEAR text rowid")
        found = await hits(store, words)
        if "needle" in words and not any(other in words for other in ("x", "AND", "text")):
            assert found == ["the needle"]


@pytest.mark.parametrize("words", ["", " ", "\n", "!?", "😀", "_", "---"])
async def test_where_no_word_is_asked_for_none_is_found(place: Place, words: str) -> None:
    async with place.open() as store:
        await talked(store, CWD, "anything", "_ !? 😀")
        assert await hits(store, words) == []


async def test_a_search_may_be_for_one_directory_only(place: Place) -> None:
    async with place.open() as store:
        await talked(store, "/a", "needle in a", title="needle of a")
        await talked(store, "/b", "needle in b")
        await talked(store, "/a/", "needle elsewhere")
        assert await hits(store, "needle", cwd="/a") == ["needle in a", "needle of a"]
        assert await hits(store, "needle", cwd="/c") == []


async def test_no_more_is_found_than_was_asked_for_and_that_is_the_newest(place: Place) -> None:
    async with place.open() as store:
        claims = [await talked(store, CWD, f"needle {n}") for n in range(10)]
        await turn(store, claims[0], message("needle again"))
        assert await hits(store, "needle", limit=3) == ["needle again", "needle 9", "needle 8"]


async def test_a_title_is_found_by_its_present_words_only(place: Place) -> None:
    async with place.open() as store:
        claim = await new(store, title="first words")
        await store.save(claim, Changes(title="second words"))
        assert await hits(store, "first") == []
        assert await hits(store, "words") == ["second words"]
        await store.save(claim, Changes(title=None))
        assert await hits(store, "words") == []


async def test_what_was_forked_is_found_once_and_the_words_of_a_part_only_once_more(place: Place) -> None:
    async with place.open() as store:
        source = await new(store)
        await turn(store, source, message("needle one", key="m1"), message("needle two", key="m2"))
        await store.fork(source, info(messages=1), SessionState(), up_to=None, lines=[])
        assert await hits(store, "needle") == ["needle two", "needle one"]
        part = (await store.fork(source, info(messages=1), SessionState(), up_to="m1", lines=[])).claim
        found = await store.search("needle", ALL, cwd=None, limit=9)
        assert [(hit.text, hit.session.id == part.session) for hit in found] == [
            ("needle one", True),
            ("needle two", False),
            ("needle one", False),
        ]


async def test_a_message_stored_on_several_lines_is_found_whole(place: Place) -> None:
    chunk = {"sessionUpdate": "agent_message_chunk", "messageId": "m"}
    said = lines(
        {**chunk, "content": {"type": "text", "text": "blue "}, "_meta": {"x": 1}},
        {**chunk, "content": {"type": "text", "text": "green "}},
        {**chunk, "content": {"type": "text", "text": "red"}, "_meta": {"x": 2}},
    )
    assert len(said) == 4
    async with place.open() as store:
        claim = await new(store)
        await turn(store, claim, message("before"), *said, message("after"))
        (hit,) = await store.search("red blue", ALL, cwd=None, limit=9)
        assert (hit.kind, hit.key) == ("agent_message", "m")
        assert [hit.text[start:end] for start, end in hit.marks] == ["blue", "red"]


async def test_what_goes_on_from_an_earlier_part_is_found_by_the_name_of_what_it_is(place: Place) -> None:
    chunk = {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": {"type": "text", "text": "the end"}}
    going_on = History(complete=False)
    going_on.apply(event_from(chunk))
    async with place.open() as store:
        claim = await new(store)
        await turn(store, claim, *lines_of(going_on))
        (hit,) = await store.search("end", ALL, cwd=None, limit=9)
        assert (hit.kind, hit.key, hit.text) == ("agent_message", "m", "the end")


async def test_lines_added_later_to_a_segment_are_found_where_they_are(place: Place) -> None:
    async with place.open() as store:
        claim = await new(store)
        for n in range(300):
            await turn(store, claim, message(f"word{n} {'x' * 300}", key=f"m{n}"))
        for n in (0, 1, 150, 299):
            (hit,) = await store.search(f"word{n}", ALL, cwd=None, limit=9)
            assert hit.key == f"m{n}"
            assert hit.text.startswith(f"word{n} ")


async def test_a_directory_that_is_not_among_the_newest_of_many_is_searched_all_the_same(place: Place) -> None:
    async with place.open() as store:
        old = await talked(store, "/small", "old needle", title="needle of a title")
        forked = msgspec.structs.replace(info("/small", messages=1), title="needle of a fork")
        await store.fork(old, forked, SessionState(), up_to=None, lines=[])
        away = await talked(store, "/small", "needle put away")
        await store.save(away, Changes(archived=True))
        large = await talked(store, "/large", *(f"needle {n}" for n in range(2_500)))
        await talked(store, "/small", "new needle")
        await turn(store, large, *(message(f"later needle {n}") for n in range(2_500)))
        expected = ["new needle", "needle put away", "needle of a fork", "old needle", "needle of a title"]
        assert await hits(store, "needle", "/small") == expected
        assert await hits(store, "needle", "/small", limit=2) == expected[:2]
        assert await hits(store, "needle", "/nowhere") == []
        assert await hits(store, "needle", "/large", limit=3_000) == [
            *(f"later needle {n}" for n in reversed(range(2_500))),
            *(f"needle {n}" for n in reversed(range(2_000, 2_500))),
        ]
