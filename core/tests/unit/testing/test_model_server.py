"""The scripted model server, asked by the providers' own client libraries where they are installed."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.testing.model_server import Fail, ModelServer, Say, calls, obey

if TYPE_CHECKING:
    from pathlib import Path

SHELL = {
    "type": "object",
    "properties": {"command": {"type": "string"}, "description": {"type": "string"}, "background": {"type": "boolean"}},
    "required": ["command", "description", "background"],
}
FILLED = {"command": "touch x", "description": "as scripted", "background": False}


async def post(server: ModelServer, path: str, body: object, method: str = "POST") -> tuple[int, str]:
    """Send a request; return the status and the body of the answer."""
    host, port = server.root.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    data = json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(data)}\r\n\r\n"
    writer.write(head.encode() + data)
    writer.write_eof()
    answer = (await reader.read()).decode()
    writer.close()
    head, _, rest = answer.partition("\r\n\r\n")
    return int(head.split()[1]), rest


def events(stream: str) -> list[dict[str, Any]]:
    """Return the events of a stream."""
    return [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: {")]


@pytest.mark.parametrize("stream", [True, False])
async def test_openai_chat_says_and_calls(stream: bool) -> None:
    openai = pytest.importorskip("openai")
    async with ModelServer(obey) as server, openai.AsyncOpenAI(base_url=server.url, api_key="k") as client:
        tool: Any = {"type": "function", "function": {"name": "bash", "parameters": SHELL}}
        asked: list[Any] = [{"role": "user", "content": "model:run touch x"}]
        request = {"model": "m", "messages": asked, "tools": [tool]}
        if stream:
            text, arguments = "", ""
            async for chunk in await client.chat.completions.create(**request, stream=True):
                for choice in chunk.choices:
                    text += choice.delta.content or ""
                    arguments += "".join(it.function.arguments or "" for it in choice.delta.tool_calls or ())
        else:
            message = (await client.chat.completions.create(**request)).choices[0].message
            text, arguments = message.content or "", message.tool_calls[0].function.arguments
        assert (text, json.loads(arguments)) == ("", FILLED)
        asked += [{"role": "assistant", "content": ""}, {"role": "tool", "tool_call_id": "c", "content": "made"}]
        done = await client.chat.completions.create(**request)
        assert done.choices[0].message.content == "It said: made"
        assert server.keys == ["k", "k"]


@pytest.mark.parametrize("stream", [True, False])
async def test_openai_responses_say_and_call(stream: bool) -> None:
    openai = pytest.importorskip("openai")
    async with ModelServer(obey) as server, openai.AsyncOpenAI(base_url=server.url, api_key="k") as client:
        tool: Any = {"type": "function", "name": "shell", "parameters": SHELL}
        request: dict[str, Any] = {"model": "m", "input": "model:run touch x", "tools": [tool]}
        if stream:
            async with client.responses.stream(**request) as events_:
                response = await events_.get_final_response()
        else:
            response = await client.responses.create(**request)
        (call,) = response.output
        assert json.loads(call.arguments) == FILLED
        words = await client.responses.create(model="m", input="model:think hm")
        assert words.output_text == "Done."
        assert [it.type for it in words.output] == ["reasoning", "message"]


@pytest.mark.parametrize("stream", [True, False])
async def test_anthropic_says_thinks_and_calls(stream: bool) -> None:
    anthropic = pytest.importorskip("anthropic")
    script = [Say("I dig.", (("bash", {"command": "dig"}),), thought="Where?")]
    async with ModelServer(script) as server, anthropic.AsyncAnthropic(base_url=server.root, api_key="k") as client:
        request: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}]}
        if stream:
            async with client.messages.stream(**request) as events_:
                message = await events_.get_final_message()
        else:
            message = await client.messages.create(**request)
        thought, text, call = message.content
        assert (thought.thinking, text.text, call.input) == ("Where?", "I dig.", {"command": "dig"})
        assert message.stop_reason == "tool_use"


async def test_gemini_says_and_calls() -> None:
    async with ModelServer([calls(("dig", {"deep": 2}), text="I dig."), Say("Dug.")]) as server:
        body = {"contents": [{"role": "user", "parts": [{"text": "go"}]}]}
        _, streamed = await post(server, "/v1beta/models/flash:streamGenerateContent?alt=sse", body)
        parts = [part for it in events(streamed) for part in it["candidates"][0]["content"]["parts"]]
        assert "".join(part.get("text", "") for part in parts) == "I dig."
        assert [part["functionCall"] for part in parts if "functionCall" in part] == [
            {"name": "dig", "args": {"deep": 2}}
        ]
        assert events(streamed)[-1]["candidates"][0]["finishReason"] == "STOP"
        _, whole = await post(server, "/v1beta/models/flash:generateContent", body)
        assert json.loads(whole)["candidates"][0]["content"]["parts"][0]["text"] == "Dug."


GEMINI = "/v1beta/models/flash:generateContent"


async def ask(server: ModelServer, *said: str) -> str:
    """Send a conversation of user and model in turn; return the answer."""
    roles = ("user", "model")
    contents = [{"role": roles[at % 2], "parts": [{"text": text}]} for at, text in enumerate(said)]
    _, answer = await post(server, GEMINI, {"contents": contents})
    return "".join(part["text"] for part in json.loads(answer)["candidates"][0]["content"]["parts"])


async def test_a_word_is_remembered_only_where_the_conversation_has_it() -> None:
    async with ModelServer(obey) as server:
        assert (
            await ask(server, "Please model:remember plum", "I will", "What was it? model:recall")
            == "The word is plum."
        )
        assert await ask(server, "model:recall") == "I remember no word."


async def test_the_last_directive_counts_and_without_one_the_messages_are_counted() -> None:
    async with ModelServer(obey) as server:
        assert await ask(server, "model:say one\nmodel:say two") == "two"
        assert await ask(server, "<context>model:say one</context>\nmodel:say two\n<time>now</time>") == "two"
        assert await ask(server, "model:recall\nUser: model:remember plum\nUser: model:say x") == "The word is plum."
        quoted = "<quoted-1f>\n--1f--\nUser: model:remember plum\nmodel:say x\n</quoted-1f>"
        assert await ask(server, f"model:recall\n{quoted}") == "The word is plum."
        assert await ask(server, "hello", "hi", "again") == "I was sent 3 messages."


async def test_a_request_that_wants_json_gets_what_its_schema_allows() -> None:
    schema = {"type": "object", "properties": {"speaker": {"type": "string", "enum": ["user", "model"]}}}
    async with ModelServer(obey) as server:
        body: dict[str, Any] = {"contents": [], "generationConfig": {"responseJsonSchema": schema}}
        _, answer = await post(server, GEMINI, body)
        text = json.loads(answer)["candidates"][0]["content"]["parts"]
        assert json.loads("".join(it["text"] for it in text)) == {"speaker": "user"}


async def test_it_fails_as_told_and_says_what_it_does_not_speak() -> None:
    async with ModelServer([Fail(429, "slow down")]) as server:
        status, answer = await post(server, "/v1/chat/completions", {"messages": []})
        assert (status, json.loads(answer)["error"]["message"]) == (429, "slow down")
        status, _ = await post(server, "/v1/nothing", {})
        assert status == 404
        status, answer = await post(server, "/v1/models", {}, "GET")
        assert (status, json.loads(answer)["data"][0]["id"]) == (200, "scripted")


async def test_a_script_that_nobody_asked_for_is_an_error() -> None:
    with pytest.raises(AssertionError, match="nobody asked for"):
        async with ModelServer([Say("never")]):
            pass


@pytest.mark.timeout(60)
async def test_from_a_shell_it_prints_its_address_and_logs_what_it_was_asked(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = [sys.executable, "-m", "holdfast.testing.model_server", "--log", str(log)]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    address = (await process.stdout.readline()).decode().strip()
    reader, writer = await asyncio.open_connection("127.0.0.1", int(address.rpartition(":")[2]))
    writer.write(b"GET /v1/models HTTP/1.1\r\n\r\n")
    assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    writer.close()
    process.terminate()
    assert await process.wait() == 0
    assert json.loads(log.read_text())["path"] == "/v1/models"
