"""Ties every rule an agent must keep to the tests that prove it; a rule without a test fails the build.

A test carries `@pytest.mark.requirement("B6")`, or its module does, with `pytestmark`.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from core.tests.support.requirements import defined

ROOT = Path(__file__).parent.parent
TESTS = (ROOT / "core" / "tests", ROOT / "app" / "tests", ROOT / "tests")

RULES = [rule for rule in defined() if rule[0] in "ABCDEFGH"]
"""The rules of what is built; those of later chapters get their tests with what they are about."""


@cache
def proofs() -> dict[str, list[str]]:
    """Find the tests that name each rule."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(path for tests in TESTS for path in tests.rglob("test_*.py")):
        tree = ast.parse(path.read_bytes())
        whole = [it for node in tree.body if isinstance(node, ast.Assign) for it in _marks(node.value)]
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                own = [it for decorator in node.decorator_list for it in _marks(decorator)]
                for rule in {*whole, *own}:
                    found[rule].append(f"{path.relative_to(ROOT)}::{node.name}")
    return dict(found)


def _marks(node: ast.expr) -> list[str]:
    """The rules a marker names, alone or in a list of markers."""
    calls = [it for it in ast.walk(node) if isinstance(it, ast.Call) and isinstance(it.func, ast.Attribute)]
    named = [it for it in calls if isinstance(it.func, ast.Attribute) and it.func.attr == "requirement"]
    return [str(arg.value) for it in named for arg in it.args if isinstance(arg, ast.Constant)]


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_has_a_test(rule: str) -> None:
    assert proofs().get(rule), f"no test carries requirement({rule!r}): {defined()[rule]}"


def test_tests_name_only_rules_and_promises_that_there_are() -> None:
    assert proofs().keys() <= defined().keys()
