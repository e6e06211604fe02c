"""`--model` and `--base-url`: which models the coding agent uses, for every command that starts it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Add `--model` and `--base-url` to a command."""
    parser.add_argument(
        "--model",
        metavar="PROVIDER:NAME",
        action="append",
        help="for `code`: a model, as openai:gpt-5.2; may be given several times (default: $HOLDFAST_MODEL)",
    )
    parser.add_argument(
        "--base-url",
        metavar="URL",
        help="for `code`: an endpoint that speaks OpenAI's protocol and has all models (default: $HOLDFAST_BASE_URL)",
    )


def use_models(agent: str, models: Sequence[str] | None, base_url: str | None) -> None:
    """Put the models into the environment, where agents look for them; warn if `code` is started without one."""
    if models:
        os.environ["HOLDFAST_MODEL"] = ",".join(models)
    if base_url:
        os.environ["HOLDFAST_BASE_URL"] = base_url
    if agent == "code":
        from importlib.util import find_spec  # noqa: PLC0415  (other agents need none of it)

        from holdfast.code.choice import NO_MODEL, NOT_INSTALLED, chosen  # noqa: PLC0415

        if find_spec("pydantic_ai") is None:
            sys.stderr.write(f"holdfast: {NOT_INSTALLED}\n")
        elif not chosen().models:
            sys.stderr.write(f"holdfast: {NO_MODEL}\n")
