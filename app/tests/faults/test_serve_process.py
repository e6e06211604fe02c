"""`holdfast serve` as people run it: with TLS, and ended by SIGTERM (H8)."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import time
import urllib.request
from typing import TYPE_CHECKING

import pytest

from app.tests.support.remote_process import ServeProcess
from core.tests.support.acp import Client, patiently
from holdfast.client.http_requests import HttpRequests
from holdfast.errors import ConnectionRefused
from holdfast.transport.websocket_client import connect_websocket

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.timeout(180)

PATIENT = """
import asyncio, os
from holdfast import Agent

agent = Agent("patient")


@agent.prompt
async def answer(turn):
    await turn.say("Good night. ")
    while not os.path.exists(turn.text):
        await asyncio.sleep(0.01)
    await turn.say("Good morning.")
"""
"""Its turns last until there is a file."""


@pytest.mark.requirement("H8")
def test_sigterm_lets_a_running_turn_end_and_takes_no_new_one(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(PATIENT)
    with ServeProcess(tmp_path, str(tmp_path / "agent.py"), options=("--grace", "100")) as server:
        token = server.token("ada")

        async def story() -> int:
            client = Client(await connect_websocket(server.url, headers={"Authorization": f"Bearer {token}"}))
            await client.initialize()
            session, other = await client.new(), await client.new()
            turn = client.begin_prompt(session, str(tmp_path / "morning"))
            await client.until(lambda: "Good night" in client.said())
            ending = asyncio.ensure_future(asyncio.to_thread(server.stop))
            await asyncio.to_thread(server.until_it_takes_nothing_new)
            refused = await client.refusal(
                "session/prompt", {"sessionId": other, "prompt": [{"type": "text", "text": "x"}]}
            )
            assert "about to end" in refused.message
            (tmp_path / "morning").touch()
            assert (await patiently(turn))["stopReason"] == "end_turn"
            assert "Good morning" in client.said()
            status = await ending
            await client.transport.close(0.1)
            return status

        assert asyncio.run(story()) == 0


def test_the_commands_that_a_server_prints_get_in_as_they_are(tmp_path: Path) -> None:
    with ServeProcess(tmp_path) as server:  # whose store is not the one that commands would look beside
        said = server.complaints()
        chat, token = (next(line for line in said.splitlines() if start in line) for start in ("chat", "token new"))
        for printed, more, heard in (
            (chat, ["--print", "--prompt", "hello"], "hello"),
            (token.replace("NAME", "ada"), [], ""),
        ):
            command = [sys.executable, "-m", *shlex.split(printed[printed.index("holdfast ") :]), *more]
            done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False, cwd=tmp_path)
            assert done.returncode == 0, done.stderr
            assert heard in done.stdout
        assert "ada" in server.tokens.path.read_text()
        listing = [sys.executable, "-m", "holdfast", "sessions", "list", "--all", "--json", "--store", server.store]
        listed = json.loads(subprocess.run(listing, capture_output=True, timeout=90, check=True).stdout)
        assert listed["sessions"][0]["open"]["in"] == "holdfast serve"  # and not the client that came last


def served_over_tls(directory: Path) -> ServeProcess:
    """Return a server with a certificate of its own, `cert.pem`."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed: no certificate can be made")
    cert, key = directory / "cert.pem", directory / "key.pem"
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(cert)],
        check=True, capture_output=True,
    )  # fmt: skip
    server = ServeProcess(directory, options=("--tls-cert", str(cert), "--tls-key", str(key)))
    server.base = f"https://localhost:{server.port}"
    server.trust = ssl.create_default_context(cafile=str(cert))
    return server


@pytest.mark.requirement("H5")
def test_over_tls_a_websocket_that_ends_in_whatever_way_is_gone_at_once(tmp_path: Path) -> None:
    with served_over_tls(tmp_path) as server:
        token = server.token("ada")
        trust = server.trust
        assert trust is not None

        def connections() -> float:
            asked = urllib.request.Request(f"{server.base}/metrics", headers={"Authorization": f"Bearer {token}"})
            with urllib.request.urlopen(asked, timeout=30, context=trust) as answer:
                lines: list[str] = answer.read().decode().splitlines()
            return sum(float(line.split()[-1]) for line in lines if line.startswith("holdfast_connections{"))

        head = (
            f"GET /acp HTTP/1.1\r\nHost: localhost:{server.port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
            f"Authorization: Bearer {token}\r\n\r\n"
        )
        goodbye = b"\x88\x82\0\0\0\0\x03\xe8"
        for last, reset in ((b"", False), (b"", True), (goodbye, False), (b"\x82\x81\0\0\0\0x", False)):
            plain = socket.create_connection(("127.0.0.1", server.port), 30)
            with trust.wrap_socket(plain, server_hostname="localhost") as client:
                client.sendall(head.encode())
                assert client.recv(4096).startswith(b"HTTP/1.1 101")
                assert connections()
                client.sendall(last)
                if reset:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

        give_up = time.monotonic() + 20  # less than the pings need to find out
        while connections() and time.monotonic() < give_up:
            time.sleep(0.1)
        assert not connections()
        assert "Traceback" not in server.complaints()


@pytest.mark.requirement("H6")
def test_over_tls_an_editor_is_let_in_and_the_wrong_authority_is_refused(tmp_path: Path) -> None:
    cert = tmp_path / "cert.pem"
    with served_over_tls(tmp_path) as server:
        (tmp_path / "token").write_text(server.token("ada"))
        url = f"https://localhost:{server.port}/acp"
        connect = [sys.executable, "-m", "holdfast", "connect", url, "--token-file", str(tmp_path / "token")]
        first = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}\n'
        started = subprocess.Popen([*connect, "--ca", str(cert)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert started.stdin is not None and started.stdout is not None
        started.stdin.write(first)
        started.stdin.flush()
        assert b"holdfast-demo" in started.stdout.readline()
        started.stdin.close()
        assert started.wait(60) == 0
        started.stdout.close()
        words = ["--ca", str(cert), "--token-file", str(tmp_path / "token"), "--print", "--prompt", "hello", url]
        chat = [sys.executable, "-m", "holdfast", "chat", *words]
        talked = subprocess.run(chat, capture_output=True, check=False, timeout=120, cwd=tmp_path)
        assert talked.returncode == 0 and talked.stdout.strip(), talked.stderr
        refused = subprocess.run(connect, input=first, capture_output=True, check=False, timeout=60)
        assert refused.returncode != 0
        for said in (refused.stdout, refused.stderr):  # to the editor, and to whoever looks into its log
            assert b"not trusted" in said and b"--ca" in said
        for way in (connect_websocket(url), HttpRequests(url, {}, None).delete({})):
            with pytest.raises(ConnectionRefused, match="not trusted") as error:
                asyncio.run(way)
            assert error.value.is_final


@pytest.mark.requirement("H6")
@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--host", "0.0.0.0"), "--tls-cert"),
        (("--host", "0.0.0.0", "--insecure", "--no-auth"), "this machine alone"),
        (("--tls-cert", sys.executable), "belong together"),
    ],
)
def test_what_would_let_strangers_in_is_refused(options: tuple[str, ...], says: str) -> None:
    command = [sys.executable, "-m", "holdfast", "serve", "demo", "--store", ":memory:", *options]
    done = subprocess.run(command, capture_output=True, check=False, text=True, timeout=60, env=dict(os.environ))
    assert done.returncode == 2
    assert says in done.stderr
