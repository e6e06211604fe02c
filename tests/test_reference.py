"""The reference is whole: every public function says what it takes, what it returns and what it raises.

It looks with the parser that makes the pages (griffe, Google's style), so that what passes here is what is shown there.
"""

from __future__ import annotations

import ast
import re
import textwrap
from functools import cache
from typing import TYPE_CHECKING, Any

import griffe
import pytest

from core.tests.support.schemas import ROOT
from core.tests.unit.test_public_line import EXPORTS
from holdfast import Turn
from holdfast.agent.turn_output import plan_entries
from holdfast.errors import UsageError
from holdfast.model import checked_event

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DIRECTIVE = re.compile(r"^::: (\S+)\n((?:    .*\n)*)", re.MULTILINE)
MEMBERS = re.compile(r"members: \[([^\]]*)\]")
RULE_ID = re.compile(r"\((?:[A-HP]\d{1,2}[, ]*)+\)")
NOTHING = frozenset({"None", "Self", "NoReturn"})
ALIASES = frozenset({"McpPolicy", "Reply", "Script"})
"""Names of types, which the signatures show."""
PACKAGES = (
    "holdfast.integrations.langgraph",
    "holdfast.integrations.openai_agents",
    "holdfast.integrations.pydantic_ai",
    "holdfast.testing.model_server",
)
MADE_BY_USERS = ("agent.agent.Agent", "model.history.History", "testing.model_server.server.ModelServer")


def source(path: str) -> Path | None:
    """Return the file of a module, of the library or of the products, or None if it is no module."""
    storey = "app" if path.partition(".")[0] == "holdfast_app" else "core"
    file = ROOT / storey / "src" / path.replace(".", "/")
    file = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
    return file if file.exists() else None


@cache
def module(path: str) -> griffe.Module:
    """Return what the source of a module says, without importing it; no other module is read."""
    file = source(path)
    assert file is not None, path
    return griffe.visit(path, file, file.read_text(), docstring_parser=griffe.Parser.google)


def find(path: str) -> griffe.Object:
    """Return an object by its path; what a package imports from a module of its own is looked for there."""
    home, _, name = path.rpartition(".")
    if source(path) is not None:
        return module(path)
    found = module(home).members[name]
    return find(found.target_path) if isinstance(found, griffe.Alias) else found


@cache
def shown() -> dict[str, griffe.Object]:
    """Return every object that a page of the reference shows, by its path."""
    pages = [page.read_text() for page in sorted((ROOT / "docs" / "reference").glob("*.md"))]
    return dict(
        entry for page in pages for match in DIRECTIVE.finditer(page) for entry in _shown_by(match[1], match[2])
    )


def _shown_by(path: str, options: str) -> Iterator[tuple[str, griffe.Object]]:
    thing = find(path)
    if not isinstance(thing, griffe.Module):
        yield path, thing
    if isinstance(thing, griffe.Class | griffe.Module):
        chosen = MEMBERS.search(options)
        own = [name for name, member in thing.members.items() if not name.startswith("_") and not member.is_alias]
        for name in chosen[1].split(", ") if chosen else own:
            yield (
                f"{path}.{name}",
                find(f"{path}.{name}") if isinstance(thing, griffe.Module) else member_of(thing, name),
            )


def member_of(owner: griffe.Class, name: str) -> griffe.Object:
    found = owner.members[name]
    assert isinstance(found, griffe.Object)
    return found


def functions() -> list[tuple[str, griffe.Function]]:
    """Return the functions and methods that are shown; properties are values to their users."""
    return [
        (path, thing)
        for path, thing in shown().items()
        if isinstance(thing, griffe.Function) and "property" not in thing.labels
    ]


def sections(thing: griffe.Object) -> dict[str, Any]:
    return {section.kind.value: section.value for section in thing.docstring.parsed} if thing.docstring else {}


def names_in(thing: griffe.Object, *kinds: str) -> set[str]:
    found = sections(thing)
    return {entry.name.lstrip("*") for kind in kinds for entry in found.get(kind, ())}


def taken_by(thing: griffe.Function | griffe.Class) -> set[str]:
    return {parameter.name.lstrip("*") for parameter in thing.parameters} - {"self", "cls"}


def test_every_public_name_is_described() -> None:
    silent = [
        path
        for path, thing in shown().items()
        if thing.docstring is None
        and not (isinstance(thing.parent, griffe.Class) and thing.name in names_in(thing.parent, "attributes"))
    ]
    assert silent == []


def test_no_description_names_a_rule_by_its_id() -> None:
    """The ids are for whoever changes the code; a reader of the reference has no table of them."""
    named = {path: RULE_ID.findall(thing.docstring.value) for path, thing in shown().items() if thing.docstring}
    assert {path: ids for path, ids in named.items() if ids} == {}


def test_every_public_function_names_its_arguments_and_no_others() -> None:
    said = {path: names_in(function, "parameters") for path, function in functions()}
    taken = {path: taken_by(function) for path, function in functions()}
    assert {path: (names, taken[path]) for path, names in said.items() if names != taken[path]} == {}


@pytest.mark.parametrize("path", MADE_BY_USERS)
def test_a_class_that_users_make_names_what_it_is_made_of(path: str) -> None:
    made = shown()[f"holdfast.{path}"]
    assert isinstance(made, griffe.Class)
    assert names_in(made, "parameters") == taken_by(made)


def test_every_public_function_that_returns_something_says_what() -> None:
    silent = [
        path
        for path, function in functions()
        if str(function.returns) not in NOTHING and not {"returns", "yields"} & set(sections(function))
    ]
    assert silent == []


def test_every_public_function_names_the_exceptions_that_it_raises_itself() -> None:
    silent: dict[str, set[str]] = {}
    for path, function in functions():
        raised = {
            node.exc.func.id
            for node in ast.walk(ast.parse(textwrap.dedent(function.source)))
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and isinstance(node.exc.func, ast.Name)
        }
        said = {str(entry.annotation) for entry in sections(function).get("raises", ())}
        if raised - said:
            silent[path] = raised - said
    assert silent == {}


def test_every_public_name_is_in_the_reference() -> None:
    page = (ROOT / "docs" / "versioning.md").read_text()
    (values,) = re.findall(r"`holdfast\.model` \| .*", page)
    public = {name for exports in EXPORTS.values() for name in exports} | set(re.findall(r"`([A-Za-z_]+)`", values))
    for package in PACKAGES:
        exports = {str(name) for name in module(package).exports or ()}
        assert exports
        public |= exports - ALIASES
    assert sorted(public - {path.rsplit(".", 1)[1] for path in shown()}) == []


def test_the_guide_and_the_reference_name_every_status_and_priority_that_a_plan_takes() -> None:
    guide = (ROOT / "docs" / "guides" / "plans.md").read_text()
    for wrong in (("Look", "done"), ("Look", "pending", "urgent")):
        with pytest.raises(UsageError) as refused:
            checked_event({"sessionUpdate": "plan_update", "plan": plan_of(wrong)})
        words = str(refused.value).partition("it can be ")[2].split(", ")
        assert len(words) >= 3
        for word in words:
            assert f"`{word}`" in guide and f"``{word}``" in (Turn.plan.__doc__ or "")


def plan_of(*entries: Any) -> dict[str, Any]:
    return {"type": "items", "planId": "plan", "entries": plan_entries(entries)}
