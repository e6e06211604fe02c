"""What is secret in the description of a server, and texts without it (P10)."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from urllib.parse import quote, quote_plus

import pytest

from holdfast.mcp import HttpServer, SseServer, StdioServer
from holdfast.mcp.secrets import HIDDEN, redacted

pytestmark = pytest.mark.requirement("P10")

SECRET = "hunter2+and/more?"

WORD = "hunter2andmore"


def test_secrets_are_taken_out_of_texts_however_they_are_written() -> None:
    server = HttpServer("a", "https://me:pass-word@a.test/?key=12345", (("Authorization", 'Bearer "quoted"\\'),))
    text = 'tried Bearer "quoted"\\ and "\\"quoted\\"\\\\" at https://me:pass-word@a.test/?key=12345'
    clean = redacted(text, server.secrets)
    for secret in ("quoted", "pass-word", "12345"):
        assert secret not in clean
    assert redacted("port 1 of 10, 1", ["1"]) == f"port {HIDDEN} of 10, {HIDDEN}"
    assert redacted("nothing", ["", " "]) == "nothing"


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        json.dumps(SECRET),
        repr(SECRET),
        quote(SECRET),
        quote(SECRET, safe=""),
        quote(SECRET, safe="").lower(),
        quote_plus(SECRET),
        b64encode(SECRET.encode()).decode(),
        urlsafe_b64encode(SECRET.encode()).decode(),
        *(b64encode(b"x" * n + SECRET.encode() + b"y" * n).decode() for n in range(1, 4)),
        b64encode(f"user:{SECRET}".encode()).decode(),
    ],
)
def test_a_secret_is_found_in_every_form_that_a_server_may_write_it_in(form: str) -> None:
    clean = redacted(f"cannot use {form} here", [SECRET])
    assert HIDDEN in clean
    assert form not in clean
    assert "hunter" not in clean.lower()


@pytest.mark.parametrize(
    "arguments",
    [
        ("--api-key", WORD),
        ("--token", WORD, "--port", "80"),
        (f"--password={WORD}",),
        ("-e", f"GITHUB_TOKEN={WORD}", "image"),
        ("--header", f"Authorization: Bearer {WORD}"),
        ("--header", f"X-API-Key:{WORD}"),
        (f"https://user:{WORD}@host.test/mcp",),
        (f"https://host.test/mcp?access={WORD}&a=b",),
        (f"postgresql://user:{WORD}@host.test/db",),
        ("ghp_0123456789abcdefABCD", WORD, "--auth", WORD),
    ],
    ids=" ".join,
)
def test_secrets_in_arguments_are_found(arguments: tuple[str, ...]) -> None:
    server = StdioServer("a", "run", arguments)
    for text in (WORD, " ".join(arguments), json.dumps(arguments)):
        assert WORD not in redacted(f"bad arguments: {text}", server.secrets)


@pytest.mark.parametrize("token", ["ghp_0123456789abcdefABCD", "123e4567-e89b-12d3-a456-426614174000", "a1" * 20])
def test_an_argument_that_looks_like_a_key_is_one(token: str) -> None:
    server = StdioServer("a", "run", ("serve", token))
    assert token not in redacted(f"cannot use {token}", server.secrets)
    web = HttpServer("a", f"https://host.test/api/{token}/mcp")
    assert token not in redacted(f"cannot reach {web.url}", web.secrets)


def test_arguments_that_are_no_secrets_are_quoted() -> None:
    arguments = ("-y", "@modelcontextprotocol/server-filesystem@2025.11.25", "/usr/lib/x86_64-linux-gnu", "--port=8080")
    server = StdioServer("a", "npx", (*arguments, "mcp_server_time", "--key", "s3cret!"))
    text = f"no module mcp_server_time: {' '.join(arguments)}"
    assert redacted(text, server.secrets) == text


@pytest.mark.parametrize("kind", [HttpServer, SseServer])
def test_what_a_header_holds_in_base64_is_secret_too(kind: type[HttpServer | SseServer]) -> None:
    basic = b64encode(f"user:{WORD}".encode()).decode()
    server = kind("a", "https://host.test/mcp", (("Authorization", f"Basic {basic}"),))
    assert WORD not in redacted(f"{WORD} is wrong, says {basic}", server.secrets)
    assert basic not in redacted(f"{WORD} is wrong, says {basic}", server.secrets)


def test_the_password_of_an_address_in_a_variable_is_secret_too() -> None:
    server = StdioServer("a", "run", (), (("DATABASE", f"postgresql://me:{WORD}@host.test/db"),))
    assert redacted(f"password {WORD} refused", server.secrets) == f"password {HIDDEN} refused"
