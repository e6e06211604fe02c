"""Source, tests and documents name rules and promises by ids; each id is defined in the project's own documents."""

from __future__ import annotations

import ast
import re
import tokenize
from io import BytesIO
from typing import TYPE_CHECKING

import pytest

from core.tests.support.requirements import DEFINING, ROOT, defined, defined_twice

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ID = re.compile(r"(?<![\w.\-#/])[A-HP][1-9]\d?(?![\w\-])")
LIKE_AN_ID = re.compile(r"[A-HP][1-9]\d?")
CHAPTERS = {"A": 12, "B": 19, "C": 13, "D": 6, "E": 6, "F": 6, "G": 10, "H": 11, "P": 13}


def files() -> Iterator[Path]:
    for folder in ("core", "app", "tests", "docs", "examples", "bench"):
        for suffix in ("*.py", "*.md"):
            yield from (ROOT / folder).rglob(suffix)
    yield from ROOT.glob("*.md")


def may_name_others(path: Path) -> bool:
    """Say at a glance whether anything in a file looks like an id that is not defined; few do, and those are read."""
    return any(found not in defined() for found in LIKE_AN_ID.findall(path.read_text(encoding="utf-8")))


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield what is written for people, with the numbers of its lines: of a program, its docstrings and comments."""
    if path.suffix == ".md":
        yield from enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        return
    source = path.read_bytes()
    for token in tokenize.tokenize(BytesIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text
            case _:
                pass


def test_the_documents_define_every_id_of_their_chapters_once() -> None:
    assert list(defined()) == [f"{chapter}{n}" for chapter, count in CHAPTERS.items() for n in range(1, count + 1)]
    assert defined_twice() == []


def test_every_id_that_is_named_anywhere_is_defined() -> None:
    unknown = [
        f"{path.relative_to(ROOT)}:{number}: {found}"
        for path in files()
        if may_name_others(path)
        for number, text in prose(path)
        for found in ID.findall(text)
        if found not in defined()
    ]
    assert not unknown, f"defined neither in {' nor in '.join(path.name for path in DEFINING)}: {unknown}"


@pytest.mark.parametrize("text", [f"see (P{14})", f"B{20}: a rule", f"as H{12}, for example", f"(A2, A{13})"])
def test_an_id_that_is_not_defined_is_noticed(text: str) -> None:
    assert any(found not in defined() for found in ID.findall(text))
