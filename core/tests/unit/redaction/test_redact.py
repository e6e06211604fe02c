"""Secrets are taken out, and nothing else."""

from __future__ import annotations

from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast
from holdfast.model import History, SessionInfo, event_from, title_from
from holdfast.redaction.redact import Redactor
from holdfast.redaction.secrets import is_secret_name

A = "a1B2c3D4e5F6g7H8i9J0"
"""Twenty characters, as keys are made of."""

PEM = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIEpAIBAAKCAQEA\nq+/=\n-----END RSA PRIVATE KEY-----"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"

SECRETS = [
    f"sk-{A}{A}", f"sk-proj-{A}_{A}", f"sk-ant-api03-{A}-{A}", f"sk_live_{A}{A}", f"ghp_{A}{A}", f"gho_{A}{A}",
    f"github_pat_{A}_{A}{A}", f"glpat-{A}", "AKIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE", f"AIza{A}{A[:15]}",
    f"ya29.{A}-{A}", f"xoxb-1234567890-{A}", f"npm_{A}{A[:16]}", f"pypi-{A}{A}{A}", f"hf_{A}{A}", f"gsk_{A}{A}",
    f"SG.{A}.{A}{A}", f"hvs.{A}{A}", f"dop_v1_{'0af3' * 16}", f"123456789:AA{A}{A}", PEM, JWT, f"lin_api_{A}{A}",
    f"r8_{A}{A[:17]}", f"shpat_{'0af3' * 8}", f"ntn_{A}{A}", f"dapi{'0af3' * 8}", f"abc8Q~{A}{A[:14]}",
    f"dckr_pat_{A}{A}", f"MTk4{A}.G1b2c3.{A}{A[:18]}", f"SK{'0af3' * 8}", f"AC{'0af3' * 8}",
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
        ("password = hunter22", "password = [redacted: secret]"),
        ("please use password = Zq7Xv2Lm9Rt4 for it", "please use password = [redacted: secret] for it"),
        (
            "it says aws_secret_access_key = wJalrXUtnFEMI/K7MDENG, see",
            "it says aws_secret_access_key = [redacted: secret], see",
        ),
        ("the token: 9f8e7d6c5b4a3f2e1d is old", "the token: [redacted: secret] is old"),
        ("+db_password = correcthorse", "+db_password = [redacted: secret]"),
        ("  password: hunter22 # the old one", "  password: [redacted: secret] # the old one"),
        ("api_token: abc12345   ; prod", "api_token: [redacted: secret]   ; prod"),
        ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG", "aws_secret_access_key = [redacted: secret]"),
        ("DB_PASS=hunter22", "DB_PASS=[redacted: secret]"),
        ("password=abc1", "password=[redacted: secret]"),
        ("STRIPE_KEY=abcdEFGH1234", "STRIPE_KEY=[redacted: secret]"),
        ("export GH_PAT='abcdEFGH1234'", "export GH_PAT='[redacted: secret]'"),
        (
            "localhost:5432:app:ada:hunter2\n*:*:*:bob:x:y",
            "localhost:5432:app:ada:[redacted: password]\n*:*:*:bob:[redacted: password]",
        ),
        ("machine a.b login me password s3cr3t", "machine a.b login me password [redacted: password]"),
        ("machine a.b\n\tlogin me\n\tpassword s3cr3t\n", "machine a.b\n\tlogin me\n\tpassword [redacted: password]\n"),
        ("AccountName=me;AccountKey=a1B2/+==;X=y", "AccountName=me;AccountKey=[redacted: secret];X=y"),
        ("SharedAccessKey=a1B2c3D4/+=", "SharedAccessKey=[redacted: secret]"),
        ("?sv=2020&sig=a1B2c3D4e5F6g7H8i9J0%3D&x", "?sv=2020&sig=[redacted: signature]&x"),
        ('{"auths": {"x": {"auth": "bWU6aHVudGVyMg=="}}}', '{"auths":{"x":{"auth":"[redacted: password]"}}}'),
        ("_auth=bWU6aHVudGVyMg==", "_auth=[redacted: secret]"),
        ("//r.example/:_authToken=abc123def", "//r.example/:_authToken=[redacted: secret]"),
        ("<password>hunter22</password>", "<password>[redacted: secret]</password>"),
        ('<db:apiKey env="x">\n a b \n</db:apiKey>', '<db:apiKey env="x">\n [redacted: secret] \n</db:apiKey>'),
        ("setx API_KEY abc123def456", "setx API_KEY [redacted: secret]"),
        ('setx /M DB_PASSWORD "hunter2hunter"', 'setx /M DB_PASSWORD "[redacted: secret]"'),
        ("openssl enc -aes-256-cbc -k Sup3rKey99 -in x", "openssl enc -aes-256-cbc -k [redacted: password] -in x"),
        ("openssl rsa -pass pass:hunter2x", "openssl rsa -pass pass:[redacted: password]"),
        ("htpasswd -b .htpasswd bob hunter2", "htpasswd -b .htpasswd bob [redacted: password]"),
        ("htpasswd -c -bB file bob 'hunter2'", "htpasswd -c -bB file bob '[redacted: password]'"),
        ("htpasswd -nb bob hunter2", "htpasswd -nb bob [redacted: password]"),
        ("sshpass -p hunter2 ssh me@host", "sshpass -p [redacted: password] ssh me@host"),
        ("sshpass -p'hunter2' ssh me@host", "sshpass -p'[redacted: password]' ssh me@host"),
        ("mysql -u root -phunter2 db", "mysql -u root -p[redacted: password] db"),
        ("mysqldump -h x -p'hunter2' db", "mysqldump -h x -p'[redacted: password]' db"),
        ("redis-cli -h x -a hunter2 ping", "redis-cli -h x -a [redacted: password] ping"),
        ("mongosh -u me -p hunter2", "mongosh -u me -p [redacted: password]"),
        ("docker login -u me -p hunter2 r.example", "docker login -u me -p [redacted: password] r.example"),
        ("openssl rsa -passin pass:hunter2 -in k", "openssl rsa -passin pass:[redacted: password] -in k"),
        ("\x1b[32mpassword\x1b[0m: \x1b[1mhunter22\x1b[0m", "password: [redacted: secret]"),
        ("AK\x1b[1mIAIOSFODNN7EXAMPLE", "[redacted: AWS key]"),
        ("MY_AKIAIOSFODNN7EXAMPLE", "MY_[redacted: AWS key]"),
        ('{"credentials": {"user": "me", "k": "abc"}}', '{"credentials":{"user":"me","k":"[redacted: secret]"}}'),
        (
            '{\n  "password": 123456,\n  "tokens": 1200\n}',
            '{\n  "password": "[redacted: secret]",\n  "tokens": 1200\n}',
        ),
    ],
)
def test_a_secret_is_known_by_what_stands_before_it_and_that_stays(before: str, after: str) -> None:
    assert redacted(before) == after


@pytest.mark.parametrize(
    "text",
    [
        "", "password", "The password is wrong.", "password: ", "passwords: three of them", "max_tokens=4096",
        "token: str", "def login(password: str, token: str | None = None) -> None:", "token = tokens[i]",
        "the password: something you know", "a token: at most 12 of them", "use secret = my.settings2.value of it",
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


ORDINARY = r"""
commit 3f786850e387550fdab836ed7e6dc881de23001b (HEAD -> fix/token-refresh)
    Ask for the password again when the token has expired; key-value store: keep keys sorted

$ ls -l ~/.ssh && docker run -p 8080:80 -e MODE=test nginx:1.27 && mysql -P 3306 -h db -p
-rw------- 1 me me 411 Jan  2 03:04 id_ed25519
Password:
Login failed: password incorrect
sk-SK, en_GB.UTF-8, ghp, AKIA, task-force-2024-planning-document-v1, disk-usage-report-2024-01-02-final
2024-01-02T03:04:05Z INFO tokens=1200 key=user:42 cache_key=v1-users-42 request_id=7f1f6b8e0c1a4e0a9a3c
npm notice package-lock.json: "integrity": "sha512-Vz8pWm4aVt0Y1y8xkq3m0e3oW2Vb2mZQ1q4x7l0k9JrT0w9QmZb1n0c8rQ=="
requests==2.32.3 --hash=sha256:55365417734eb18255590a9ff9eb97e9e1da868d4ccd6402399eaac77c9a4b5e
https://example.com/a?page=2&sort=key&token_type=bearer  git@github.com:me/repo.git  user@host:/path
PRIMARY_KEY=order_id_2 CACHE_KEY=v1-abc12345 SSH_KEY=~/.ssh/id_ed25519 PUBLIC_KEY=ssh-ed25519-aaaa1 API_KEY=$API_KEY
def login(user: str, password: SecretStr, token: str | None = None) -> Token:
    password = password or getpass("Password: ")
    token = tokens[i]; secret = get_secret(name); api_key = settings.api_key; passwd = new_passwd
    return Session(auth=auth, token=next_token, password=db_password, key=lambda item: item.key)
const { password, confirmPassword } = form; if (password !== confirmPassword) throw new Error("passwords differ")
headers: {"Authorization": `Bearer ${token}`, "X-Api-Key": process.env.API_KEY}
<input type="password" name="password"><label for="password">Password</label> <token/> <secret name="x"></secret>
password: string;  token?: string | null;  "api_key": "<your key>"  password: ${{ secrets.DB_PASSWORD }}
The password field is required, the token: a string of 40 characters, is not. Secrets: see the vault. key: value
machine learning needs a password manager; the default login page asks for the password twice
"""
"""What developers see all day, with every word that secrets have near them."""


@pytest.mark.parametrize("line", ORDINARY.strip().split("\n"))
def test_ordinary_text_stays_as_it_is(line: str) -> None:
    assert redacted(line) == line


def test_ordinary_files_stay_as_they_are() -> None:
    assert redacted(ORDINARY) == ORDINARY
    source = Path(holdfast.__file__).parent
    packages = ("model", "view", "format", "engine", "export")
    files = [file for package in packages for file in (source / package).rglob("*.py")]
    texts = {str(file.relative_to(source)): file.read_text() for file in files}
    changed = [name for name, text in texts.items() if redacted(text) != text]
    assert changed in ([], ["export/secrets.py"]), "the rules themselves are full of examples"


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


def test_a_secret_that_is_the_name_of_a_member_or_a_directory_is_taken_out() -> None:
    redactor = Redactor()
    tokens = ["ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2, "ghp_" + "k1L2m3N4o5P6q7R8s9T0" * 2]
    clean = redactor.value({"scopes": {tokens[0]: "repo", tokens[1]: "gist", "name": "mine"}})
    assert list(clean["scopes"].values()) == ["repo", "gist", "mine"], "nothing is lost with the names"
    assert not any(token in str(clean) for token in tokens)
    about = SessionInfo("s", f"/work/{tokens[0]}", (f"/{tokens[1]}",), None, 0, 0, archived=False, messages=0)
    shown = redactor.info(about)
    assert not any(token in shown.cwd + shown.additional[0] for token in tokens)
    assert shown.cwd.startswith("/work/") and redactor.count == 4


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


@pytest.mark.parametrize(
    ("printed", "clean"),
    [
        (b"\x1b[31mpass\x1b[0mword=\x1b[1mhunter22\x1b[0m \xff\r\n", b"password=[redacted: secret] \xff\r\n"),
        ("é\npassword: hunter22\n".encode("latin-1"), "é\npassword: [redacted: secret]\n".encode("latin-1")),
        ("PASSWORD=hunter22".encode("utf-16-le"), b"PASSWORD=[redacted: secret]"),
        (b"\x1b[31mnothing\x1b[0m secret \xff\n", None),
    ],
)
def test_what_a_terminal_printed_is_looked_into_whatever_its_colours_and_encoding(
    printed: bytes, clean: bytes | None
) -> None:
    update = {"sessionUpdate": "terminal_output_chunk", "terminalId": "t", "data": b64encode(printed).decode()}
    assert b64decode(Redactor().value(update)["data"]) == (printed if clean is None else clean)


TOKEN = "ghp_a1B2c3D4e5F6g7H8i9J0a1B2c3D4e5F6g7H8"
FIRST, SECOND = TOKEN[:14], TOKEN[14:]


@pytest.mark.requirement("P10")
@pytest.mark.parametrize(
    "disguised",
    [
        f"{FIRST}.\b{SECOND}",
        f"{FIRST}...\b\b\b{SECOND}",
        "".join(f"{character}\b{character}" for character in TOKEN),
        "".join(f"_\b{character}" for character in TOKEN),
        f"{'.' * 14}{SECOND}\r{FIRST}",
        f"{FIRST}.\x1b[D{SECOND}",
        f"{FIRST}..\x1b[15G{SECOND}",
        f"\x1b[1m{FIRST}\x1b[0m.\x1b[31m\b{SECOND}",
        f"{FIRST}\x1b[31m{SECOND}",
        f"{FIRST}\r{SECOND}",
        f"{FIRST}\u200b{SECOND}",
        f"{FIRST}\u00ad{SECOND}",
        f"{FIRST}\u2060{SECOND}",
        f"{FIRST}\ufeff{SECOND}",
        f"{FIRST}\u202e{SECOND}",
        f"{FIRST}\x85{SECOND}",
        f"{FIRST}\x7f{SECOND}",
        f"{FIRST}\u3164{SECOND}",
        f"{FIRST}\U000e0041{SECOND}",
        f"{FIRST}\ud800{SECOND}",
        "\u0332".join(TOKEN),
        f"pass\u200bword = {FIRST[4:]}",
    ],
)
def test_a_secret_with_characters_inside_that_nobody_sees_is_found(disguised: str) -> None:
    redactor = Redactor()
    for text in (disguised, f"before\n{disguised}\nbehind é"):
        clean = redactor.text(text)
        assert "[redacted: " in clean and FIRST[4:] not in clean and SECOND not in clean
        assert Redactor().text(clean) == clean
    assert redactor.count == 2


@pytest.mark.requirement("P10")
def test_the_name_of_a_member_hides_nothing() -> None:
    found = Redactor().value({"api\u200bKey": "hunter22", "env": [{"name": "API_\u00adTOKEN", "value": "hunter22"}]})
    assert "hunter22" not in str(found)
    assert SECOND not in Redactor().text(f'{{"api\\u200bKey": "{SECOND}"}}')


@pytest.mark.parametrize(
    "text",
    [
        "10%\r50%\r100%\n",
        "a\r\nb",
        "N\bNA\bA",
        "👩\u200d💻 é e\u0301 שלום हिन्दी",
        "co\u00adop",
        "\x1b[31mred\x1b[0m",
        "ab\b",
    ],
)
def test_what_is_invisible_stays_where_there_is_no_secret(text: str) -> None:
    assert Redactor().text(text) == text


@pytest.mark.requirement("P10")
def test_our_own_tokens_and_links_are_taken_out() -> None:
    secret = "Zk3-_9" + "a1B2c3D4e5F6g7H8i9J0a1B2c3D4e5F6g7H8i"
    for text in (f"hf_{secret}", f"https://host/share/{secret}", f"POST /link/{secret} HTTP/1.1"):
        clean = Redactor().text(text)
        assert secret not in clean and "[redacted: " in clean


def test_a_secret_that_came_in_two_chunks_is_found() -> None:
    history = History()
    for half in (SECRETS[4][:15], SECRETS[4][15:]):
        block = {"type": "text", "text": half}
        chunk = {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": block, "_meta": {"n": 1}}
        history.apply(event_from(chunk))
    (entry,) = history
    redactor = Redactor()
    assert redactor.entry(entry).text() == "[redacted: GitHub token]"
    assert redactor.count == 1


@pytest.mark.parametrize("secret", [f"sk-{A}{A}{A}{A}", JWT, f"github_pat_{A}{A}{A}{A}"])
def test_half_of_a_key_is_taken_out_of_a_title(secret: str) -> None:
    title = title_from(secret)
    assert title is not None and title.endswith("…")
    assert Redactor().title(title) == "[redacted: secret]"
    assert Redactor().title("Look at sk-learn…") == "Look at sk-learn…"


@pytest.mark.requirement("P10")
@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        (f"https://bob:{A * 4}@example.com/x.git", "https://bob:[redacted: password]…"),
        (f'{{"type":"x","password":"{A * 4}"}}', '{"type":"x","password":"[redacted: secret]…'),
        (f"https://x.blob.core.windows.net/container/blob.txt?sv=2020&sig={A * 2}%3D",
         "https://x.blob.core.windows.net/container/blob.txt?sv=2020&sig=[redacted: signature]…"),
        (f"export PASSWORD='correct horse {'battery staple ' * 5}'", "export PASSWORD='[redacted: secret]…"),
        (f"https://localhost:8080/{'a/very/long/path/' * 5}", None),
        (f"look at the password dialog{' and at this' * 6}", None),
    ],
)  # fmt: skip
def test_half_of_a_secret_that_stands_among_others_is_taken_out_of_a_title(prompt: str, title: str | None) -> None:
    cut = title_from(prompt)
    assert cut is not None and cut.endswith("…")
    redactor = Redactor()
    assert redactor.title(cut) == (cut if title is None else title)
    assert redactor.count == (title is not None)


parts = st.sampled_from(
    [
        *SECRETS, "password", "=", ":", " ", "\n", '"', "'", "\\", "token", "Bearer ", "abc123", "$", "machine a ",
        "login b ", "<password>", "</", "mysql -p", "sshpass -p ", "_auth=", "A_KEY=", "&sig=", "{", "}", "[", "]",
        "\0", "\x1b[1m", " # ", '{"credentials": {"a": "b"}}', '"auth": "bWU6aHVudGVyMg=="', "AccountKey=",
        "Cookie: a=",
    ]
)  # fmt: skip


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
        "machine a ", "machine a login b ", "<password>", "<a:password x>", "mysql -", "mysql ", "redis-cli ", "_auth=",
        "A_KEY=", "&sig=", "{", "[", '{"a":', "\x1b[", "\x1b[1m", "key-", "a-8Q~", "password = a #", "A_KEY", "\n>",
        "password = a1", "export password", "--passw", "<x:", "- password: a\n", "\0",
        "\b", "X\b", "\r", "10%\r", "\u200b", "a\u0332", "\x1b[D", "\x9b", "\x1b]",
    ],
)  # fmt: skip
@pytest.mark.timeout(60)
def test_no_text_takes_long(piece: str) -> None:
    redacted(
        piece * (300_000 // len(piece))
    )  # where the time grew with the square of the length, it would take minutes
