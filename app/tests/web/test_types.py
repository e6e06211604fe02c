"""The scripts of the page are checked by their types, which stand in their comments."""

from __future__ import annotations

import subprocess

from app.tests.support.browser import node
from core.tests.support.schemas import ROOT, lacking

TSC = ROOT / "node_modules" / "typescript" / "bin" / "tsc"


def test_the_scripts_of_the_page_are_right_by_their_types() -> None:
    if not TSC.is_file():
        lacking("typescript is not installed: `make test` does it")
    done = subprocess.run(
        [node(), str(TSC), "--project", str(ROOT / "tsconfig.json")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
