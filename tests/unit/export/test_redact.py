"""Secrets are taken out, and nothing else."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.export.redact import Redactor, is_secret_name

A = "a1B2c3D4e5F6g7H8i9J0"
"""Twenty characters, as keys are made of."""

PEM = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIEpAIBAAKCAQEA\nq+/=\n-----END RSA PRIVATE KEY-----"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"

SECRETS = [
    f"sk-{A}{A}", f"sk-proj-{A}_{A}", f"sk-ant-api03-{A}-{A}", f"sk_live_{A}{A}", f"ghp_{A}{A}", f"gho_{A}{A}",
    f"github_pat_{A}_{A}{A}", f"glpat-{A}", "AKIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE", f"AIza{A}{A[:15]}",
    f"ya29.{A}-{A}", f"xoxb-1234567890-{A}", f"npm_{A}{A[:16]}", f"pypi-{A}{A}{A}", f"hf_{A}{A}", f"gsk_{A}{A}",
    f"SG.{A}.{A}{A}", f"hvs.{A}{A}", f"dop_v1_{'0af3' * 16}", f"123456789:AA{A}{A}", PEM, JWT,
]  # fmt: skip


def redacted(text: str) -> str:
    return Redactor().text(text)


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("around", ["{}", "key: {}", "'{}'", '{{"x": "{}"}}', "see ({}), ok?", "a\n{}\nb", "`{}`"])
def test_a_secret_is_known_by_how_it_looks(secret: str, around: str) -> None:
    redactor = Redactor()
    clean = redactor.text(around.format(secret))
    assert secret not in clean and "[redacted: " in clean
    assert clean.startswith(around.partition("{}")[0].replace("{{", "{"))
    assert redactor.count == 1


def test_a_private_key_that_was_cut_off_is_taken_out_as_far_as_it_goes() -> None:
    key = "-----BEGIN OPENSSH PRIVATE KEY-----\\n" + "b3BlbnNzaC1rZXktdjEA\\n" * 3
    assert redacted(f"{key}and then") == "[redacted: private key]\\nand then"
    assert redacted(f"a {PEM} b {PEM} c") == "a [redacted: private key] b [redacted: private key] c"
    about = "A file that begins with -----BEGIN PRIVATE KEY----- is a key."
    assert redacted(about) == about


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Authorization: Bearer abc123def456ghi", "Authorization: Bearer [redacted: header]"),
        ('-H "Authorization: Basic dXNlcjpwYXNz"', '-H "Authorization: Basic [redacted: header]"'),
        ("X-API-Key: 0123456789", "X-API-Key: [redacted: header]"),
        ("use the bearer eyJ0.123456789abcdef token", "use the bearer [redacted: bearer token] token"),
        ("Cookie: session=abc; other=def\nHost: x", "Cookie: [redacted: cookie]\nHost: x"),
        ("postgres://me:hunter2@db:5432/x", "postgres://me:[redacted: password]@db:5432/x"),
        ("https://:tok@host/", "https://:[redacted: password]@host/"),
        ("curl -u me:hunter2 https://x", "curl -u me:[redacted: password] https://x"),
        ("mysql --password=hunter2 -h x", "mysql --password=[redacted: secret] -h x"),
        ("tool --api-key 'abcd1234'", "tool --api-key '[redacted: secret]'"),
        ("password=hunter2", "password=[redacted: secret]"),
        ("export DB_PASSWORD=correcthorse", "export DB_PASSWORD=[redacted: secret]"),
        ("PGPASSWORD=correcthorse psql", "PGPASSWORD=[redacted: secret] psql"),
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG", "AWS_SECRET_ACCESS_KEY=[redacted: secret]"),
        ("OPENAI_API_KEY=abcdefgh\nX=1", "OPENAI_API_KEY=[redacted: secret]\nX=1"),
        ("?access_token=abc123def&x=1", "?access_token=[redacted: secret]&x=1"),
        ('"apiKey": "correct horse"', '"apiKey": "[redacted: secret]"'),
        ('{\\"client_secret\\": \\"correct\\"}', '{\\"client_secret\\": \\"[redacted: secret]\\"}'),
        ("accessToken = 'correct'", "accessToken = '[redacted: secret]'"),
        ("  password: hunter22\n", "  password: [redacted: secret]\n"),
        ("- db.token: abc123", "- db.token: [redacted: secret]"),
        (":password => 'hunter2'", ":password => '[redacted: secret]'"),
    ],
)
def test_a_secret_is_known_by_what_stands_before_it_and_that_stays(before: str, after: str) -> None:
    assert redacted(before) == after


@pytest.mark.parametrize(
    "text",
    [
        "", "password", "The password is wrong.", "password: ", "passwords: three of them", "max_tokens=4096",
        "token: str", "def login(password: str, token: str | None = None) -> None:", "token = tokens[i]",
        "password = getpass()", "api_key=os.environ['KEY']", "password=args.password", "key=self.token_for(user)",
        'api_key="<your key>"', "API_KEY=your-key-here", "PASSWORD=$PASSWORD", "TOKEN=${TOKEN}", "password=********",
        'password: "string"', "sk-learn", "sk-some-long-branch-name-without-numbers", "https://host:8080/path@2",
        "http://user:$PASS@host", "http://user:password@host", "git@github.com:a/b", "docker run -u 1000:1000",
        "basic internationalization", "Bearer of bad news everywhere", "AKIA", "AKIAIOSFODNN7EXAMPLELONGER",
        "eyJ.eyJ.x", "3f786850e387550fdab836ed7e6dc881de23001b", "tokenizer=bert-base-1", "keyboard: qwerty123",
        "monkey=banana12", "compass: north-by-1", "Set-Cookie", "cookie: chocolate chip", "secret santa: 24 december",
        "[redacted: API key]", 'token="[redacted: secret]"', "The key: value pairs are 12345678",
        "a6d1f6d0-8f7e-4c1b-9a53-6f2c1fbd3c5e",
    ],
)  # fmt: skip
def test_what_is_no_secret_stays(text: str) -> None:
    assert redacted(text) == text


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("password", True), ("apiKey", True), ("API_KEY", True), ("clientSecret", True), ("Authorization", True),
        ("access-token", True), ("github.token", True), ("dbPassword", True), ("cookie", True), ("x-api-key", True),
        ("maxTokens", False), ("tokens", False), ("key", False), ("publicKey", False), ("name", False), ("", False),
        ("passed", False), ("toolCallId", False), ("tokenCount", False), ("keyboard", False), ("x" * 10_000, False),
    ],
)  # fmt: skip
def test_members_are_secret_by_their_names(name: str, secret: bool) -> None:
    assert is_secret_name(name) is secret


def test_secrets_are_found_wherever_they_are_in_a_value() -> None:
    value: Any = {
        "rawInput": {"password": "hush", "n": 1, "none": None, "token": "", "secrets": ["a", "b"]},
        "env": [{"name": "API_KEY", "value": "hush"}, {"name": "PATH", "value": "/bin"}],
        "headers": {"Authorization": "hush", "Accept": "*/*"},
        "content": [{"type": "text", "text": "PASSWORD=hunter2"}],
        "output": {"data": b64encode(b"PASSWORD=hunter2\n").decode()},
        "resource": {"uri": "file:///x", "blob": b64encode(b"\xff\0PASSWORD=hunter2").decode()},
        "image": {"type": "image", "data": "AKIAIOSFODNN7EXAMPLE", "mimeType": "image/png"},
    }
    redactor = Redactor()
    clean = redactor.value(value)
    mark = "[redacted: secret]"
    assert clean["rawInput"] == {"password": mark, "n": 1, "none": None, "token": "", "secrets": [mark, mark]}
    assert clean["env"] == [{"name": "API_KEY", "value": mark}, {"name": "PATH", "value": "/bin"}]
    assert clean["headers"] == {"Authorization": mark, "Accept": "*/*"}
    assert clean["content"][0]["text"] == f"PASSWORD={mark}"
    assert b64decode(clean["output"]["data"]) == f"PASSWORD={mark}\n".encode()
    assert clean["resource"] == value["resource"] and clean["image"] == value["image"]
    assert redactor.count == 7


parts = st.sampled_from([*SECRETS, "password", "=", ":", " ", "\n", '"', "'", "\\", "token", "Bearer ", "abc123", "$"])


@settings(max_examples=300, deadline=None)
@given(st.lists(parts, max_size=8).map("".join) | st.text())
def test_to_redact_twice_changes_nothing_more(text: str) -> None:
    once = redacted(text)
    again = Redactor()
    assert again.text(once) == once
    assert again.count == 0


@pytest.mark.parametrize(
    "piece",
    [
        "a-", "sk-", "eyJ-", "eyJaaaaaaaa.", "-", " ", "password", "password=", 'password="', "token: ", "bearer ", "://a:",
        "-----BEGIN PRIVATE KEY-----", "curl ", "--a-", "A", "_", "aB", "xoxb-", "a1.", "Cookie: a", "A_", "SG.a-",
    ],
)  # fmt: skip
@pytest.mark.timeout(10)
def test_no_text_takes_long(piece: str) -> None:
    redacted(
        piece * (300_000 // len(piece))
    )  # where the time grew with the square of the length, it would take minutes
