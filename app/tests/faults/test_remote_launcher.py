"""Under a launcher one principal's agent gets at nothing of another's, nor of the server's (H11)."""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from app.tests.support.tenants import USERS, Tenants, no_bubblewrap, no_other_users, tenants, told
from core.tests.support.links import PATIENCE
from holdfast.errors import UsageError
from holdfast.workspace.allowed import AllowedDirectories
from holdfast_app.sandbox import Launcher, ProcessLimits
from holdfast_app.sandbox.launcher import parse_template
from holdfast_app.sandbox.sandbox import user_of

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.requirement("H11"), pytest.mark.timeout(180)]

LAUNCHERS = {
    "another user": ("--as-user", "agent-{principal}"),
    "bubblewrap": ("--bubblewrap",),
    "both": ("--as-user", "agent-{principal}", "--bubblewrap"),
}


def needed(launcher: str) -> None:
    reasons = [] if launcher == "bubblewrap" else [no_other_users()]
    reasons += [] if launcher == "another user" else [no_bubblewrap()]
    if reason := next(filter(None, reasons), None):
        pytest.skip(reason)


@pytest.mark.requirement("P12")
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_one_gets_at_nothing_of_anothers_by_its_commands_or_by_asking(launcher: str) -> None:
    needed(launcher)

    async def story(place: Tenants) -> None:
        async with place.client("bob") as (bob, his), place.client("ada") as (ada, hers):
            await told(
                bob, his, "shell echo bobs-file > diary; echo bobs-home > ~/note; echo bobs-tmp > ${TMPDIR:-/tmp}/t"
            )
            await told(bob, his, f"shell cd {place.work}/bob && echo bobs-file > diary")
            await told(bob, his, "shell (exec -a bobs-argument sleep 300) >/dev/null 2>&1 &")
            looks = (
                f"cat {place.work}/bob/diary {place.homes}/bob/* {place.homes}/bob/.*/*",
                f"ls -a {place.work}/bob {place.homes}/bob {place.private}",
                f"cat {place.private}/* ",
                "cat /proc/[0-9]*/environ",
                "cat /proc/[0-9]*/cmdline | tr '\\0' ' '; ls -l /proc/[0-9]*/cwd /proc/[0-9]*/fd",
                "grep -s bobs- /tmp/* /var/tmp/* /dev/shm/*; true",
                f"ln -s {place.work}/bob link && cat link/diary",
            )
            for look in looks:
                for how in ("shell", "run"):
                    seen = await told(ada, hers, f"{how} {look}")
                    for secret in ("bobs-", "secret-of-bob", "diary\n", "sha256", "note\n"):
                        assert secret not in seen, (how, look, seen)
            assert "secret-of-ada" in await told(ada, hers, "shell echo $SECRET")
            assert "secret-of-ada" in await told(ada, hers, "run echo $SECRET")
            for path in (f"{place.work}/bob/diary", f"{place.private}/serve.toml", "/etc/passwd", "link/diary",
                         f"{place.work}/ada/link/diary", "../bob/diary"):  # fmt: skip
                refused = await told(ada, hers, f"request fs/read_text_file {json.dumps({'path': path})}")
                assert '"code"' in refused, refused
            written = json.dumps({"path": f"{place.work}/ada/new", "content": "mine"})
            assert "code" not in await told(ada, hers, f"request fs/write_text_file {written}")
            assert "mine" in await told(ada, hers, "run cat new")
            (place.work / "ada" / "roots").write_text("for root alone")
            (place.work / "ada" / "roots").chmod(0o600)
            looked = await told(
                ada, hers, f"request fs/read_text_file {json.dumps({'path': f'{place.work}/ada/roots'})}"
            )
            is_ours = launcher == "bubblewrap" and os.geteuid() != 0
            assert ("for root alone" in looked) is is_ours, looked
            assert "bobs-file" in await told(bob, his, f"shell cat {place.work}/bob/diary")

    with tenants(*LAUNCHERS[launcher]) as place:
        asyncio.run(story(place))
        assert (place.work / "ada" / "new").stat().st_uid == _user_of_ada(launcher)
        _check_audit(place)


def _user_of_ada(launcher: str) -> int:
    """Return who Ada's agent is: never root, and in a sandbox of root's a user that nobody else is."""
    if launcher != "bubblewrap":
        return pwd.getpwnam(USERS["ada"]).pw_uid
    return user_of("ada") if os.geteuid() == 0 else os.geteuid()


def _check_audit(place: Tenants) -> None:
    """It says who did what, and nothing of what was said; nobody else can read it."""
    audit = place.private / "audit.jsonl"
    assert audit.stat().st_mode & 0o077 == 0
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    did = {(line["who"], line["did"]) for line in lines}
    expected = {"connect", "session/new", "session/prompt", "terminal/create", "fs/read_text_file"}
    assert {(who, what) for who in ("ada",) for what in expected} <= did
    assert {("bob", "connect"), ("bob", "session/new")} <= did
    assert all(line["at"].endswith("Z") for line in lines)
    assert "bobs-" not in audit.read_text() and "echo" not in audit.read_text()


def test_a_sandbox_works_where_only_the_server_can_look_for_it() -> None:
    """Without any option, homes and directories lie beside the store, which others cannot enter."""
    needed("bubblewrap")

    async def story(place: Tenants) -> None:
        work = place.private / "workspaces" / "ada"
        async with place.client("ada", work) as (ada, hers):
            assert str(work) in await told(ada, hers, f"shell cd {work} && pwd; echo said > here; echo said > ~/there")
            written = json.dumps({"path": str(work / "new"), "content": "mine"})
            assert "code" not in await told(ada, hers, f"request fs/write_text_file {written}")
            assert "mine" in await told(ada, hers, "run cat new")
            assert "said" in await told(
                ada, hers, f"request fs/read_text_file {json.dumps({'path': str(work / 'here')})}"
            )
            assert (place.private / "homes" / "ada" / "there").read_text() == "said\n"

    with tenants("--bubblewrap", beside_store=True) as place:
        asyncio.run(story(place))


def test_an_agent_is_held_to_its_limits_and_ends_with_the_server() -> None:
    needed("another user")

    async def story(place: Tenants) -> None:
        async with place.client("ada") as (ada, hers):
            limits = await told(ada, hers, "run ulimit -n; ulimit -f; ulimit -t; id -un; umask; echo home $HOME; pwd")
            assert limits.split()[:5] == ["77", "2048", "100", USERS["ada"], "0077"], limits
            assert f"home {place.homes}/ada" in limits and f"{place.work}/ada" in limits
            again = await told(ada, hers, "shell id -un; id -G; ulimit -n; cat /proc/self/status | grep NoNewPrivs")
            assert again.split() == [USERS["ada"], "65534", "77", "NoNewPrivs:", "1", "."], again
            await told(ada, hers, "shell setsid sleep 4321 >/dev/null 2>&1 &")

    launcher = (*LAUNCHERS["another user"], "--limit", "files=77", "--limit", "cpu=100", "--limit", "file-size=1M")
    with tenants(*launcher) as place:
        asyncio.run(story(place))
        _wait_until(lambda: b"4321" in _command_lines(), "the command was never there")
        place.server.kill()
    _wait_until(lambda: b"4321" not in _command_lines(), "a command of an agent outlived its server")


def _wait_until(happened: Callable[[], bool], otherwise: str) -> None:
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end, otherwise
        time.sleep(0.05)


def _command_lines() -> bytes:
    lines: list[bytes] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if line.startswith(b"sleep"):
            lines.append(line)
    return b"".join(lines)


def test_variables_of_an_agent_never_reach_the_programs_that_start_its_commands(tmp_path: Path) -> None:
    """`LD_PRELOAD` would let it in where it is not yet shut out."""
    evil = {"LD_PRELOAD": "/work/evil.so", "DOCKER_HOST": "tcp://evil"}
    docker = parse_template("docker run --rm -i -v {workspace}:{workspace} -w {cwd} --name a-{principal} image")
    by_command = Launcher(template=docker, directories=lambda _: AllowedDirectories([str(tmp_path)]))
    prepared = by_command.prepare("ada", ["agent", "--acp"], cwd=str(tmp_path), variables=evil)
    assert not evil.keys() & prepared.env.keys()
    mount = f"{tmp_path}:{tmp_path}"
    assert prepared.command == (
        "docker", "run", "--rm", "-i", "-v", mount, "-w", str(tmp_path), "--name", "a-ada", "image",
        "env", "LD_PRELOAD=/work/evil.so", "DOCKER_HOST=tcp://evil", "agent", "--acp",
    )  # fmt: skip
    limited = Launcher(limits=ProcessLimits.parse({"memory": "2G"}), home=f"{tmp_path}/{{principal}}",
                       directories=lambda _: AllowedDirectories([]))  # fmt: skip
    prepared = limited.prepare("ada", ["agent"], variables=evil)
    assert set(prepared.env) == {"HOLDFAST_ENVIRONMENT", "PATH"}
    carried = json.loads(prepared.env["HOLDFAST_ENVIRONMENT"])
    assert carried["LD_PRELOAD"] == "/work/evil.so" and carried["HOME"] == f"{tmp_path}/ada"
    assert json.loads(prepared.command[4])["limits"] == {"RLIMIT_AS": 2 << 30}


def test_what_would_separate_nobody_is_refused() -> None:
    def make(**settings: object) -> Launcher:
        return Launcher(directories=lambda _: AllowedDirectories([]), **settings)  # pyright: ignore[reportArgumentType]

    with pytest.raises(UsageError, match="makes no sense"):
        parse_template("docker 'run")
    with pytest.raises(UsageError, match="no limit"):
        ProcessLimits.parse({"memroy": "2G"})
    if os.geteuid() == 0:
        with pytest.raises(UsageError, match="same user for all"):
            make(user="nobody")
        with pytest.raises(UsageError, match="is root"):
            make(user="{principal}").identity("root")
        with pytest.raises(UsageError, match="useradd -m agent-ada"):
            make(user="agent-{principal}").prepare("ada", ["agent"])
    else:
        with pytest.raises(UsageError, match="as root"):
            make(user="agent-{principal}")
