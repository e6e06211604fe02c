"""``python -m holdfast`` is ``holdfast`` where the products are installed; without them it can `run`."""

import sys
from collections.abc import Callable

ALONE = """holdfast: The library alone has one command: python -m holdfast run AGENT
Install the others (chat, wrap, serve, web, …): pip install holdfast"""


def products() -> Callable[[], int] | None:
    """Return the command line of the products, or None if only the library is installed."""
    try:
        from holdfast_app.cli.main import main  # noqa: PLC0415
    except ModuleNotFoundError as e:
        if e.name != "holdfast_app":
            raise
        return None
    return main


def main() -> int:
    """Run the products' command line, or the library's `run`."""
    if (everything := products()) is not None:
        return everything()
    if sys.argv[1:2] != ["run"]:
        sys.stderr.write(f"{ALONE}\n")
        return 2
    from holdfast.run.command import run  # noqa: PLC0415

    return run(sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
