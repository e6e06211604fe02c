"""Two distributions of one version: the library, and the products that need exactly that library."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


def project(storey: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / storey / "pyproject.toml").read_text())["project"]


def test_the_products_need_the_library_of_their_own_version() -> None:
    library, products = project("core"), project("app")
    assert (library["name"], products["name"]) == ("holdfast-core", "holdfast")
    assert library["version"] == products["version"]
    (needed,) = (each for each in products["dependencies"] if each.startswith("holdfast-core"))
    assert needed.endswith(f"=={library['version']}")


def test_the_library_needs_at_most_three_packages() -> None:
    assert len(project("core")["dependencies"]) <= 3


def test_every_extra_that_the_products_name_is_one_of_the_library() -> None:
    extras = set(project("core")["optional-dependencies"])
    products = project("app")
    named = [
        *products["dependencies"],
        *(each for extra in products["optional-dependencies"].values() for each in extra),
    ]
    wanted = {
        extra
        for each in named
        if each.startswith("holdfast-core[")
        for extra in each.partition("[")[2].partition("]")[0].split(",")
    }
    assert wanted <= extras


def test_both_have_the_licence() -> None:
    texts = {(ROOT / place / "LICENSE").read_text() for place in (".", "core", "app")}
    assert len(texts) == 1
