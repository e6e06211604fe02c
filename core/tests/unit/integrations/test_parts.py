"""The small parts of the integration: titles, prompts, failures, secrets."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest
from pydantic_ai import BinaryContent, FallbackExceptionGroup, ToolDefinition
from pydantic_ai import exceptions as e

from core.tests.support.acp import text
from holdfast.diagnostics.masking import without_environment_keys
from holdfast.integrations.pydantic_ai.display import display_of, tool_display
from holdfast.integrations.pydantic_ai.provider_errors import ADVICE, failure_of, stop_reason_of
from holdfast.integrations.pydantic_ai.user_content import user_content
from holdfast.integrations.tool_display import ToolDisplay
from holdfast.subprocesses.environment import DEVELOPMENT, passed_environment


@pytest.mark.parametrize(
    ("template", "arguments", "title"),
    [
        ("Edit {path}", {"path": "a.py"}, "Edit a.py"),
        ("Edit {path}", {}, "Edit file"),
        ("Edit {path}", {"path": "a\n\x1b[31m\tb"}, r"Edit a ⏎ \u001b[31m b"),
        ("Edit {path}", {"path": "x" * 10_000}, "Edit " + "x" * 10_000),
        ("Run {command}", {"command": "# harmless\nrm x\r\n  ls "}, "Run # harmless ⏎ rm x ⏎ ls"),
        ("Run {command}", {"command": "ls \u202egpj.x\u202c\u200b"}, r"Run ls \u202egpj.x\u202c\u200b"),
        ("Say {text}", {"text": "für 👩\u200d🚀"}, "Say für 👩\u200d🚀"),
        ("Edit {path.nothing}", {"path": "a"}, "Edit file"),
        ("{", {}, "Edit file"),
        ("", {"path": "a"}, "Edit file"),
        ("Say {text}", {"text": {"a": [1]}}, "Say {'a': [1]}"),
    ],
)
@pytest.mark.requirement("P13")
def test_a_title_is_one_line_with_all_the_model_says(template: str, arguments: dict[str, Any], title: str) -> None:
    assert ToolDisplay(title=template).titled("edit_file", arguments) == title


def test_an_answer_for_ever_is_about_the_tool_or_what_its_author_says() -> None:
    assert ToolDisplay().subject("run", {"command": "ls"}) == "tool run"
    assert ToolDisplay(remember="{command}").subject("run", {"command": "ls -l\n"}) == "tool run: ls -l\n"
    assert ToolDisplay(remember="{command}").subject("run", {}) == "tool run"


def test_metadata_of_others_are_none_of_ours() -> None:
    assert display_of(None) == ToolDisplay()
    assert display_of(ToolDefinition(name="a", metadata={"holdfast": "something else"})) == ToolDisplay()
    assert display_of(ToolDefinition(name="a", metadata=tool_display(kind="read"))).kind == "read"


def test_a_prompt_of_text_and_links_is_text() -> None:
    link = {"type": "resource_link", "name": "a.py", "uri": "file:///a.py"}
    assert user_content([text("Look at"), link]) == "Look at\n[a.py](file:///a.py)"


def test_what_is_not_text_stays_what_it_is_and_damaged_data_are_told() -> None:
    blob = b64encode(b"%PDF").decode()
    content = user_content(
        [
            text("Read:"),
            {"type": "resource", "resource": {"uri": "file:///a.pdf", "blob": blob, "mimeType": "application/pdf"}},
            {"type": "audio", "mimeType": "audio/wav", "data": "not base64!"},
            {"type": "_of_tomorrow"},
        ]
    )
    assert content[0] == "Read:"
    pdf = content[1]
    assert isinstance(pdf, BinaryContent)
    assert (pdf.data, pdf.media_type) == (b"%PDF", "application/pdf")
    assert "damaged" in str(content[2])
    assert "_of_tomorrow" in str(content[3])


def test_every_failure_of_a_provider_says_what_to_do_and_nothing_of_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "abcdefgh-12345")
    said: set[str] = set()
    for category, _ in ADVICE:
        body = {"error": {"message": "key abcdefgh-12345 is bad"}}
        if issubclass(category, e.ModelRequestTimeout):
            error: e.ModelAPIError = category("gpt", 1.0)
        elif issubclass(category, e.ModelConnectionError):
            error = category("gpt", "gone", body=body)
        else:
            error = e.ModelHTTPError.for_category(category, status_code=499, model_name="gpt", body=body)  # pyright: ignore[reportArgumentType]
            assert "HTTP 499" in str(failure_of(error))
        message = str(failure_of(error))
        assert "abcdefgh" not in message
        said.add(message.partition("(")[0].partition(":")[0])
    assert len(said) >= len(ADVICE) - 1  # two ways to be too late are told alike
    assert "abcdefgh" not in str(failure_of(e.ModelAPIError("gpt", "abcdefgh-12345 is bad")))


def test_the_last_of_several_models_that_failed_is_told() -> None:
    group = FallbackExceptionGroup("all", [e.ModelHTTPError(500, "one"), e.ModelConnectionError("two", "gone")])
    failure = failure_of(group)
    assert failure is not None and "two" in failure.message
    assert failure_of(FallbackExceptionGroup("all", [ValueError("x")])) is None
    assert failure_of(RuntimeError("mine")) is None
    assert "install" in str(failure_of(ImportError("please install it")))


@pytest.mark.parametrize(
    ("error", "finish", "reason"),
    [
        (e.UsageLimitExceeded("The next request would exceed the request_limit of 50"), None, "max_turn_requests"),
        (e.UsageLimitExceeded("Exceeded the output_tokens_limit of 10"), None, "max_tokens"),
        (e.ContentFilterError("no"), None, "refusal"),
        (e.IncompleteToolCall("no"), None, "max_tokens"),
        (e.UnexpectedModelBehavior("nothing came"), "length", "max_tokens"),
        (e.UnexpectedModelBehavior("nothing came"), "stop", None),
        (e.RunCancelled("enough"), None, "cancelled"),
        (RuntimeError("x"), None, None),
    ],
)
def test_what_stops_a_run_on_purpose_is_a_reason(error: Exception, finish: str | None, reason: str | None) -> None:
    assert stop_reason_of(error, finish) == reason


@pytest.mark.requirement("P10")
def test_secrets_are_what_variables_are_called(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("MY_TOKEN", "API_KEY_PROD", "MYSQL_PWD", "GH_PAT", "DATABASE_URL", "APIKEY", "AWS_SECRET_ACCESS_KEY")
    for n, name in enumerate(names):
        monkeypatch.setenv(name, f"secret-{n}-12345")
    for name, value in {"PASSWORD": "short", "MONKEY_ISLAND": "x" * 20, "PATHS": "y" * 20}.items():
        monkeypatch.setenv(name, value)
    said = " ".join(f"secret-{n}-12345" for n in range(len(names)))
    assert without_environment_keys(said) == " ".join(["…"] * len(names))
    assert without_environment_keys("short " + "x" * 20 + "y" * 20) == "short " + "x" * 20 + "y" * 20


@pytest.mark.requirement("P10")
def test_commands_get_the_variables_that_are_known_to_be_harmless_and_those_that_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secret = (
        "DATABASE_URL",
        "MYSQL_PWD",
        "GH_PAT",
        "API_KEY_PROD",
        "MY_TOKEN",
        "SSH_AUTH_SOCK",
        "LC_TOKEN",
        "ANYTHING",
    )
    for name in secret:
        monkeypatch.setenv(name, "secret")
    for name in ("VIRTUAL_ENV", "LC_TIME", "no_proxy"):
        monkeypatch.setenv(name, "harmless")
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.test:8080")
    monkeypatch.setenv("https_proxy", "http://me:secret@proxy.test:8080")
    monkeypatch.setenv("TERM", "() { echo smuggled; }")
    got = passed_environment(DEVELOPMENT, ["MY_TOKEN", "NOT_SET"])
    assert got["MY_TOKEN"] == "secret"
    assert got["PATH"]
    assert {"VIRTUAL_ENV", "LC_TIME", "HTTP_PROXY", "no_proxy"} <= set(got)
    assert not {*secret, "https_proxy", "TERM"} - {"MY_TOKEN"} & set(got)
    assert not {"VIRTUAL_ENV", "HTTP_PROXY"} & set(passed_environment())
