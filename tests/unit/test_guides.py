"""Every agent in the documentation runs, and says what its page says.

A page has Python, and behind it a transcript: the conversation that a user has with it. Lines with `>` are prompts, `?`
has the answer to a question, and `@ set OPTION VALUE` sets an option. The rest must come out as it is written.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from tests.support.schemas import ROOT

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
    if not isinstance(agent := names.get("agent"), Agent):
        return
    answers = [match[1] for match in map(ASKED.fullmatch, example.transcript.splitlines()) if match]
    forms = [answer for answer in answers if answer == "declined" or ": " in answer]
    async with connect_to(
        agent,
        cwd=tmp_path,
        permissions=[{"allow": True, "reject": False}.get(answer, answer) for answer in answers if answer not in forms],
        forms=[None if form == "declined" else dict(pair.split(": ") for pair in form.split(", ")) for form in forms],
    ) as client:
        for line in example.transcript.splitlines() or ["> hello"]:
            if line.startswith("> "):
                with suppress(RemoteError):  # the transcript says whether it was meant to fail
                    await client.say(line[2:])
            elif line.startswith("@ set "):
                _, _, option, value = line.split()
                await client.session.set_option(option, value == "true" if value in ("true", "false") else value)
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
