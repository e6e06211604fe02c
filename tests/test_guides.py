"""Every agent in the documentation runs, and says what its page says.

A page has Python, and behind it a transcript: the conversation that a user has with it. Lines with `>` are prompts, `?`
has the answer to a question, and `@ set OPTION VALUE` sets an option. The rest must come out as it is written.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from core.tests.support.schemas import ROOT
from core.tests.unit.testing.test_pytest_plugin import run_pytest
from holdfast import Agent
from holdfast.errors import RemoteError
from holdfast.testing import assert_valid_wire, connect_to

if TYPE_CHECKING:
    from pathlib import Path

DOCS = ROOT / "docs"
PAGES = [DOCS / "tutorial.md", *sorted((DOCS / "guides").glob("*.md"))]
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[[^\]]+\]\(([^)\s#]+)(?:#([^)\s]*))?\)")
ASKED = re.compile(r"\? .* → (.*)")
FORMS: dict[str, dict[str, str] | None] = {"accepted": {}, "declined": None}


class Example(NamedTuple):
    name: str
    program: str
    transcript: str


def examples() -> list[Example]:
    found: list[Example] = []
    for page in PAGES:
        blocks = [(match[1], match[2]) for match in BLOCK.finditer(page.read_text())]
        for at, (language, text) in enumerate(blocks):
            if language == "python":
                behind = blocks[at + 1] if at + 1 < len(blocks) else ("", "")
                found.append(Example(f"{page.stem} {at}", text, behind[1] if behind[0] == "text" else ""))
    return found


EXAMPLES = examples()


@pytest.mark.parametrize("example", EXAMPLES, ids=[example.name for example in EXAMPLES])
async def test_an_example_of_the_documentation_says_what_its_page_says(example: Example, tmp_path: Path) -> None:
    if "from todo import agent" in example.program:
        assert "connect_to" in example.program  # `test_the_test_of_the_tutorial_passes` runs it
        return
    names: dict[str, Any] = {"__name__": "example", "__file__": "main.py"}
    exec(compile(example.program, f"docs/{example.name}", "exec"), names)
    if not isinstance(agent := names.get("agent"), Agent) or agent.auth_required:
        return  # `test_the_login_of_the_guide_is_done_in_a_terminal` logs in first
    answers = [match[1] for match in map(ASKED.fullmatch, example.transcript.splitlines()) if match]
    forms = [answer for answer in answers if answer in FORMS or ": " in answer]
    async with connect_to(
        agent,
        cwd=tmp_path,
        permissions=[{"allow": True, "reject": False}.get(answer, answer) for answer in answers if answer not in forms],
        forms=[FORMS[form] if form in FORMS else dict(pair.split(": ") for pair in form.split(", ")) for form in forms],
    ) as client:
        for line in example.transcript.splitlines() or ["> hello"]:
            if line.startswith("> "):
                with suppress(RemoteError):  # the transcript says whether it was meant to fail
                    await client.say(line[2:])
            elif line.startswith("@ set "):
                _, _, option, value = line.split()
                await client.session.set(option, value == "true" if value in ("true", "false") else value)
        shown = "".join(line for line in example.transcript.splitlines(keepends=True) if not line.startswith("@ "))
        if shown:
            assert client.transcript() == shown
        assert_valid_wire(client)


def test_the_test_of_the_tutorial_passes(tmp_path: Path) -> None:
    programs = [example.program for example in EXAMPLES if example.name.startswith("tutorial")]
    names: dict[str, Any] = {}
    exec(programs[-2], names)
    exec(programs[-1].replace("from todo import agent", ""), names)

    def connecting(agent: Agent) -> Any:
        return connect_to(agent, cwd=tmp_path)

    asyncio.run(names["test_it_knows_me"](connecting))


async def test_the_login_of_the_guide_is_done_in_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (program,) = [example.program for example in EXAMPLES if "terminal=True" in example.program]
    (tmp_path / "bank.py").write_text(program)
    monkeypatch.setenv("HOME", str(tmp_path))
    names: dict[str, Any] = {}
    exec(program, names)
    with pytest.raises(RemoteError, match="Log in first"):
        async with connect_to(names["agent"], cwd=tmp_path):
            pass
    for typed, status, told in (("sesame", 1, "a key of the bank begins with bank-"), ("bank-1", 0, "")):
        done = await asyncio.to_thread(typing, typed, "run", "bank.py", "--login", "paste", cwd=tmp_path)
        assert done.returncode == status and told in done.stderr
    assert (tmp_path / ".bank-key").stat().st_mode & 0o777 == 0o600
    async with connect_to(names["agent"], cwd=tmp_path) as client:
        assert (await client.say("hello")).text == "You are rich."


def typing(text: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-m", "holdfast", *arguments)
    return subprocess.run(command, cwd=cwd, input=f"{text}\n", capture_output=True, text=True, timeout=90, check=False)


@pytest.mark.timeout(200)
def test_the_mcp_server_of_the_page_runs_with_the_agent_and_the_test_beside_it(tmp_path: Path) -> None:
    programs = [match[2] for match in BLOCK.finditer((DOCS / "mcp.md").read_text())]
    files = {program.split()[1]: program for program in programs if program.startswith("# ")}
    assert {*files} == {"clock.py", "teller.py", "test_teller.py"}
    for name, program in files.items():
        (tmp_path / name).write_text(program)
    (config,) = re.findall(r"^```json\n(\{.*\})\n```", (DOCS / "mcp.md").read_text(), re.MULTILINE)
    (tmp_path / "mcp.json").write_text(config.replace('"python"', json.dumps(sys.executable)))
    tested = run_pytest(cwd=tmp_path)
    assert tested.returncode == 0, tested.stdout
    command = (sys.executable, "-m", "holdfast", "run", "teller.py", "--mcp-config", "mcp.json", "--store", "s.db")
    talk = ("chat", "--bare", "--print", "--prompt", "What time is it?", "--", *command)
    answered = typing("", *talk, cwd=tmp_path)
    assert re.fullmatch(r"It is \d\d:\d\d\.\n", answered.stdout), answered


def anchors_of(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*DOCS.glob("**/*.md")], ids=lambda page: page.name)
def test_what_a_page_includes_is_included(page: Path) -> None:
    for line in page.read_text().splitlines():
        if "--8" in line:  # a formatter takes it for Python where its block says so
            assert re.fullmatch(r'--8<-- "\S+"', line), f"{page.name}: {line}"


@pytest.mark.parametrize("page", [*ROOT.glob("*.md"), *DOCS.glob("**/*.md")], ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target, anchor in LINK.findall(re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)):
        if ":" in target:
            continue
        path = (page.parent / target).resolve()
        assert path.exists(), f"{page.name} links to {target}"
        if anchor and path.suffix == ".md":
            assert anchor in anchors_of(path), f"{page.name} links to {target}#{anchor}"
