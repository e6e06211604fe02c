"""The tests on every Python that is there, with the newest and with the lowest dependencies: `make matrix`.

    python -m tests.matrix [--python 3.12] [--lowest] [PATHS…]

Each has an environment of its own in `build/matrix`, which is kept. The tests are those that need no other programs
(units, laws and contracts: 3,700, some minutes for each Python), unless paths are given; `make test` runs the whole on
one. The newest dependencies are those that pip chooses today. A Python that is not there is said to be missing.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
TESTS = ("core/tests/unit", "core/tests/laws", "core/tests/contract")


def lowest() -> list[str]:
    """Return the dependencies of both packages, each in the lowest version that its `pyproject.toml` allows."""
    library, products = (
        tomllib.loads((ROOT / storey / "pyproject.toml").read_text())["project"] for storey in ("core", "app")
    )
    wanted: list[str] = [*library["dependencies"], *products["dependencies"]]
    for extra in ("fast", "http", "mcp", "serve"):
        wanted += library["optional-dependencies"][extra]
    return [re.sub(r">=([^,; ]+)(,[^; ]+)?", r"==\1", each) for each in wanted if "holdfast-core" not in each]


def find(version: str) -> str | None:
    """Return a Python that can be started, on the path or where pyenv and uv put them; a shim may stand for none."""
    homes = [
        Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions",
        Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or Path.home() / ".local" / "share" / "uv" / "python"),
    ]
    there = [str(python) for home in homes for python in sorted(home.glob(f"*{version}*/bin/python{version}"))]
    for python in (f"python{version}", *reversed(there)):
        if shutil.which(python) and not subprocess.run([python, "-c", ""], capture_output=True).returncode:
            return python
    return None


def run(python: str, version: str, paths: list[str], *, low: bool) -> bool:
    """Set up an environment and run the tests in it; return whether all is well."""
    place = ROOT / "build" / "matrix" / f"{version}{'-lowest' if low else ''}"
    subprocess.run([python, "-m", "venv", str(place)], check=True)
    pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, "--upgrade", "pip>=25.1"], check=True)
    subprocess.run(
        [*pip, "--editable", "./core", "--editable", "./app", "--group", "dev", "--group", "peers"],
        check=True,
        cwd=ROOT,
    )
    if low:
        subprocess.run([*pip, *lowest()], check=True)
    done = subprocess.run([str(place / "bin" / "pytest"), "-q", "-n", "2", "-p", "no:cacheprovider", *paths], cwd=ROOT)
    return done.returncode == 0


def main() -> int:
    """Run what the command line says; return 0 if all is well wherever there is a Python."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", choices=PYTHONS, help="only this one; may be given several times")
    parser.add_argument("--lowest", action="store_true", help="only with the lowest dependencies, on the oldest Python")
    parser.add_argument("paths", nargs="*")
    chosen = parser.parse_args()
    versions = chosen.python or ([PYTHONS[0]] if chosen.lowest else list(PYTHONS))
    runs = [(version, chosen.lowest) for version in versions] + (
        [] if chosen.lowest or chosen.python else [(PYTHONS[0], True)]
    )
    paths: list[str] = chosen.paths or [*TESTS]
    print(f"{' '.join(paths)}, on Python {', '.join(versions)}; with the lowest dependencies too: {runs[-1][1]}")
    results: dict[str, str] = {}
    for version, low in runs:
        name = f"Python {version}{', lowest dependencies' if low else ''}"
        print(f"\n{name}", flush=True)
        if (python := find(version)) is None:
            results[name] = "not installed here"
            continue
        began = time.monotonic()
        result = "well" if run(python, version, paths, low=low) else "FAILED"
        results[name] = f"{result}, {(time.monotonic() - began) / 60:.0f} min"
    print("\n" + "\n".join(f"{name}: {result}" for name, result in results.items()))
    return 1 if any(result.startswith("FAILED") for result in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
