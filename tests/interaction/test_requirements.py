"""Ties every rule an agent must keep to the tests that prove it; a rule without a test fails the build.

A test carries `@pytest.mark.requirement("B6")`, or its module does, with `pytestmark`.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent

RULES = {
    "A1": "one message a line on stdio, and nothing else on stdout",
    "A2": "what is not JSON is answered and the connection lives on",
    "A3": "invalid requests, unknown methods, batches",
    "A4": "lines over the limit",
    "A5": "ids come back unchanged; answers to nothing are ignored",
    "A6": "initialize comes first, may be followed at once, may come twice",
    "A7": "version 1 is negotiated; version 2 can be switched off",
    "A8": "the highest common version, or -32022",
    "A9": "$/cancel_request, both ways",
    "A10": "order of notifications and responses",
    "A11": "the end of the input, and SIGTERM",
    "A12": "_meta is carried and never mixed into parameters",
    "B1": "session/new: absolute cwd, unguessable id, durable at once",
    "B2": "mcpServers may be missing in version 1",
    "B3": "additional directories: checked, in order, never revived",
    "B4": "session/list: order, filter, pages, cursors, items",
    "B5": "sessions without a prompt are loadable and not listed",
    "B6": "version 1: session/load replays everything, then answers",
    "B7": "version 1: session/resume does not replay",
    "B8": "version 2: session/resume replays as asked and tells the state",
    "B9": "version 2: session/load of the early draft",
    "B10": "wrong cwd, unknown sessions; loading is no activity",
    "B11": "what a replay holds, in which order, with which ids",
    "B12": "a session whose turn runs can be loaded",
    "B13": "session/close",
    "B14": "session/delete",
    "B15": "session/fork",
    "B16": "archive, unarchive, set_title, status",
    "B17": "titles: automatic, given, cleared",
    "B18": "idle sessions leave memory",
    "B19": "a session opened by one version is loaded by the other",
    "C1": "what a prompt may hold",
    "C2": "version 1: the answer to a prompt ends its turn",
    "C3": "version 2: acknowledged, then told by states",
    "C4": "handlers that raise",
    "C5": "session/cancel",
    "C6": "prompts wait their turn",
    "C7": "every kind of update can be said and is replayed or not",
    "C8": "permissions: only a clear yes is one",
    "C9": "elicitation only as advertised",
    "C10": "slash commands",
    "C11": "files and terminals of the editor",
    "C12": "authentication",
    "D1": "options: kinds, defaults, persistence",
    "D2": "set_config_option: refusals, the complete list, no-ops, hooks",
    "D3": "version 1: switches only if known, nothing where there is nothing",
    "D4": "version 1: modes, models and options in step",
    "D5": "version 2: names and types of options",
    "D6": "changes by the agent are told, also in a turn",
    "E1": "MCP servers: kinds as advertised, others refused",
    "E2": "MCP servers: command, directory, environment",
    "E3": "MCP servers that fail, hang or die do not fail the session",
    "E4": "MCP tools, resources and prompts: listed, called, cancelled, revived",
    "E5": "no MCP server is left behind",
    "E6": "MCP connections are not shared, their secrets not kept",
}

OTHERS = frozenset(f"P{n}" for n in range(1, 14))
"""Promises, that tests may name too."""


@cache
def proofs() -> dict[str, list[str]]:
    """Find the tests that name each rule."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        tree = ast.parse(path.read_bytes())
        whole = [it for node in tree.body if isinstance(node, ast.Assign) for it in _marks(node.value)]
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                own = [it for decorator in node.decorator_list for it in _marks(decorator)]
                for rule in {*whole, *own}:
                    found[rule].append(f"{path.relative_to(TESTS)}::{node.name}")
    return dict(found)


def _marks(node: ast.expr) -> list[str]:
    """The rules a marker names, alone or in a list of markers."""
    calls = [it for it in ast.walk(node) if isinstance(it, ast.Call) and isinstance(it.func, ast.Attribute)]
    named = [it for it in calls if isinstance(it.func, ast.Attribute) and it.func.attr == "requirement"]
    return [str(arg.value) for it in named for arg in it.args if isinstance(arg, ast.Constant)]


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_has_a_test(rule: str) -> None:
    assert proofs().get(rule), f"no test carries requirement({rule!r}): {RULES[rule]}"


def test_tests_name_only_rules_that_there_are() -> None:
    assert proofs().keys() <= RULES.keys() | OTHERS


def test_the_table_has_every_rule_of_its_chapters() -> None:
    chapters = {"A": 12, "B": 19, "C": 12, "D": 6, "E": 6}
    assert list(RULES) == [f"{chapter}{n}" for chapter, count in chapters.items() for n in range(1, count + 1)]
