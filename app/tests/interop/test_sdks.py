"""The clients of the official SDKs, with the demo agent: all that it shows, and all that a session goes through."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from app.tests.support.peers import PEERS, Peer, Stage
from holdfast.testing.demo_agent import agent as demo

if TYPE_CHECKING:
    from core.tests.support.recording import Recording

pytestmark = pytest.mark.timeout(240)  # a client takes seconds for its whole story, more on a busy machine

MANY = 52
"""More sessions than fit on a page."""

ARGUMENTS = {"stream": "5", "count": "3", "sleep": "0.01", "search": "0", "title": "Interop", "mode": "auto"}

PROMPTS = ["Hello, world", *(f"/{name} {ARGUMENTS.get(name, '')}".strip() for name in demo.commands), "/ask"]

ANSWERS = ["allow_once", "reject_once"]

SAID = {
    "Hello, world": "Hello, world",
    "/stream 5": "0 1 2 3 4 ",
    "/count 3": "1 2 3 ",
    "/think": "I have thought about it.",
    "/tool": "It is 21 °C; the barometer does not answer.",
    "/diff": "Two files changed.",
    "/terminal": "It exited with status 0.",
    "/plan": "Done as planned.",
    "/ask": "That was that.",
    "/form": "Hello, Ada.",
    "/url": "You did not want to.",
    "/outline": "That is the plan.",
    "/compact": "I remember the gist.",
    "/subagent": "The scout is back.",
    "/search 0": "I found nothing.",
    "/editor": "Your client has no terminals for me.",
    "/sleep 0.01": "Good night. Good morning.",
    "/usage": "A quarter of the context is used.",
    "/title Interop": "This session is called 'Interop'.",
    "/mode auto": "The mode is auto.",
    "/notice": "You were told.",
    "/image": "One pixel: ",
    "/fail": "This will not end well. ",
    "/files": "I stayed inside.",
    "/mcp": "This session has no MCP servers.",
    "/history": "You asked 1 time.",
}

SHOWN: dict[str, tuple[set[str], set[str]]] = {
    "/think": ({"agent_thought_chunk"}, {"agent_thought_chunk"}),
    "/tool": ({"tool_call", "tool_call_update"}, {"tool_call_update", "tool_call_content_chunk"}),
    "/diff": ({"tool_call", "tool_call_update"}, {"tool_call_update", "tool_call_content_chunk"}),
    "/terminal": ({"tool_call_update"}, {"terminal_update", "terminal_output_chunk"}),
    "/plan": ({"plan"}, {"plan_update"}),
    "/outline": ({"plan"}, {"plan_update"}),
    "/compact": (set(), {"compaction_update"}),
    "/subagent": (set(), {"subagent_update"}),
    "/search 0": ({"tool_call", "tool_call_update"}, {"tool_call_update", "tool_call_content_chunk"}),
    "/usage": ({"usage_update"}, {"usage_update"}),
    "/title Interop": ({"session_info_update"}, {"session_info_update"}),
    "/mode auto": ({"config_option_update", "current_mode_update"}, {"config_option_update"}),
}
"""Kinds of updates that must be among those of a turn, in each version."""

CALLS = {"/tool": ["completed", "failed"], "/diff": ["completed"], "/files": ["completed", "failed"]}

REPLAYED = (
    {"user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call", "plan",
     "usage_update", "available_commands_update", "config_option_update", "current_mode_update", "session_info_update"},
    {"user_message", "agent_message", "agent_thought", "tool_call_update", "plan_update", "usage_update",
     "terminal_update", "compaction_update", "subagent_update",
     "available_commands_update", "config_option_update", "session_info_update", "state_update",
     "_holdfast/turn_end"},
)  # fmt: skip

SET = {"mode": "auto", "model": "small", "verbose": True, "tone": "pirate"}


class Told(NamedTuple):
    """A story that was told, by a client and by the frames."""

    peer: Peer
    report: dict[str, Any]
    recorded: list[Recording]
    complaints: list[str]

    @property
    def turns(self) -> list[dict[str, Any]]:
        """The turns of the first session, the cancelled one last."""
        return self.report["turns"][: len(PROMPTS) + 1]


@pytest.fixture(scope="module", params=PEERS)
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """Let a client tell the story, once for all tests about it."""
    peer = PEERS[request.param]
    stage = Stage(tmp_path_factory.mktemp(request.param), "demo")
    report = stage.play(peer, PROMPTS, ANSWERS, many=MANY)
    return Told(peer, report, stage.recordings(), stage.complaints())


@pytest.mark.requirement("A7", "A8", "C10", "D1")
def test_a_new_session_offers_its_options_and_its_commands(told: Told) -> None:
    assert told.report["version"] == told.peer.version
    assert told.report["options"] == {"mode": "ask", "model": "small", "verbose": False, "tone": "plain"}
    (announced,) = told.report["announced"]
    assert [it["name"] for it in announced["availableCommands"]] == list(demo.commands)


@pytest.mark.requirement("C2", "C3", "C4", "C7", "C9", "C10")
def test_every_command_of_the_demo_agent_is_understood(told: Told) -> None:
    for turn in told.turns[:-1]:
        prompt = turn["prompt"]
        assert turn["stop"] == ("error" if prompt == "/fail" else "end_turn"), turn
        if prompt != "/help":
            assert turn["text"] == SAID[prompt]
        assert SHOWN.get(prompt, (set(), set()))[told.peer.version - 1] <= set(turn["kinds"]), turn
        assert turn["calls"] == CALLS.get(prompt, turn["calls"])
    assert all(f"`/{name}" in told.turns[1]["text"] for name in demo.commands)


@pytest.mark.requirement("C7")
def test_notices_reach_those_who_asked_for_them(told: Told) -> None:
    (turn,) = (it for it in told.turns if it["prompt"] == "/notice")
    asked = told.peer.version == 2 or "notices" in told.peer.capabilities["session"]
    assert ("notice" in turn["kinds"]) == asked


@pytest.mark.requirement("C8", "C9")
def test_permission_is_given_once_and_refused_once(told: Told) -> None:
    launch = "May I launch the rocket?" if told.peer.version == 2 else "Launch the rocket"
    assert told.report["asked"] == [launch, "Who are you?", launch]
    assert [it["calls"] for it in told.turns if it["prompt"] == "/ask"] == [["completed"], ["failed"]]


@pytest.mark.requirement("C5")
def test_a_turn_that_streams_can_be_cancelled(told: Told) -> None:
    turn = told.turns[-1]
    assert turn["stop"] == "cancelled"
    assert turn["text"].startswith("0 1 2 3 ")


@pytest.mark.requirement("D2", "D4", "D5")
def test_mode_and_options_can_be_set_and_last(told: Told) -> None:
    assert told.report["set"] == SET
    assert told.report["loaded"]["options"] == SET
    assert told.report["resumed"] == SET


@pytest.mark.requirement("B4")
def test_the_list_comes_in_pages(told: Told) -> None:
    pages: list[list[str]] = told.report["pages"]
    assert [len(it) for it in pages] == [50, MANY + 1 - 50]
    assert len({id_ for page in pages for id_ in page}) == MANY + 1


@pytest.mark.requirement("B6", "B8", "C5")
def test_what_was_seen_before_a_kill_is_loaded_by_the_next_process(told: Told) -> None:
    assert told.report["exits"] == [-9, 0]
    assert told.report["broken"]["user"] == "/stream 1000000"
    assert told.report["broken"]["text"].startswith(told.report["seen"])
    assert " 200 " in told.report["seen"]


@pytest.mark.requirement("B6", "B8", "B11", "B13")
def test_a_closed_session_is_replayed_as_it_was_seen(told: Told) -> None:
    loaded = told.report["loaded"]
    assert loaded["user"] == "".join(it["prompt"] for it in told.turns)
    assert loaded["text"] == "".join(it["text"] for it in told.turns)
    assert loaded["calls"] == [call for it in told.turns for call in it["calls"]]
    assert set(loaded["kinds"]) == REPLAYED[told.peer.version - 1]


@pytest.mark.requirement("B7", "B8", "C10")
def test_resuming_replays_nothing(told: Told) -> None:
    state = ["state_update"] if told.peer.version == 2 else []
    assert told.report["resumed_told"] == ["available_commands_update", *state]


@pytest.mark.requirement("B15")
def test_a_fork_goes_its_own_way(told: Told) -> None:
    assert told.report["forks"]
    assert [it["text"] for it in told.report["turns"][-2:]] == ["You asked 2 times."] * 2


@pytest.mark.requirement("B10", "B14")
def test_a_deleted_session_is_gone_and_its_fork_is_not(told: Told) -> None:
    assert told.report["listed"] == [False, True]
    assert told.report["gone"] == -32002


@pytest.mark.requirement("A1", "C4")
def test_the_agent_complains_of_nothing_but_the_failure_it_was_asked_for(told: Told) -> None:
    (complaint,) = told.complaints
    assert "A turn failed" in complaint


@pytest.mark.requirement("A1", "C7")
def test_every_frame_is_valid_in_the_official_schema(told: Told) -> None:
    assert [fault for it in told.recorded for fault in it.faults()] == []
    sent = {method for it in told.recorded for method in it.methods}
    assert sent >= {"session/update", "session/request_permission", "elicitation/create", "session/fork"}
