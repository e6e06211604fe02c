"""`holdfast serve` as people run it: with TLS, and ended by SIGTERM (H8)."""

from __future__ import annotations

import asyncio
import os
import shutil
import ssl
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.support.acp import Client, patiently
from tests.support.remote_process import ServeProcess

from holdfast.client.http_requests import HttpRequests
from holdfast.errors import ConnectionRefused
from holdfast.transport.websocket_client import connect_websocket

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.timeout(120)


@pytest.mark.requirement("H8")
def test_sigterm_lets_a_running_turn_end_and_takes_no_new_one(tmp_path: Path) -> None:
    with ServeProcess(tmp_path, options=("--grace", "20")) as server:
        token = server.token("ada")

        async def story() -> int:
            client = Client(await connect_websocket(server.url, headers={"Authorization": f"Bearer {token}"}))
            await client.initialize()
            session, other = await client.new(), await client.new()
            turn = client.begin_prompt(session, "/sleep 1.5")
            await client.until(lambda: "Good night" in client.said())
            ending = asyncio.ensure_future(asyncio.to_thread(server.stop))
            await asyncio.sleep(0.5)
            refused = await client.refusal(
                "session/prompt", {"sessionId": other, "prompt": [{"type": "text", "text": "x"}]}
            )
            assert "about to end" in refused.message
            assert (await patiently(turn))["stopReason"] == "end_turn"
            assert "Good morning" in client.said()
            status = await ending
            await client.transport.close(0.1)
            return status

        assert asyncio.run(story()) == 0


@pytest.mark.requirement("H6")
def test_over_tls_an_editor_is_let_in_and_the_wrong_authority_is_refused(tmp_path: Path) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed: no certificate can be made")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(cert)],
        check=True, capture_output=True,
    )  # fmt: skip
    options = ("--tls-cert", str(cert), "--tls-key", str(key))
    server = ServeProcess(tmp_path, options=options)
    server.base = f"https://localhost:{server.port}"
    server.trust = ssl.create_default_context(cafile=str(cert))
    with server:
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
        assert started.wait(30) == 0
        started.stdout.close()
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
