"""`--model`, `--base-url` and `--pass-env`: settings of the coding agent, for every command that starts it."""

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
    parser.add_argument(
        "--pass-env",
        metavar="NAME",
        action="append",
        help="for `code`: an environment variable that commands may see; may be given several times "
        "(default: $HOLDFAST_PASS_ENV)",
    )


def use_models(
    agent: str, models: Sequence[str] | None, base_url: str | None, pass_env: Sequence[str] | None = None
) -> None:
    """Note what was told, where agents look for it; say what is missing if `code` is to be started without a model."""
    if models:
        os.environ["HOLDFAST_MODEL"] = ",".join(models)
    if base_url:
        os.environ["HOLDFAST_BASE_URL"] = base_url
    if pass_env:
        os.environ["HOLDFAST_PASS_ENV"] = ",".join(pass_env)
    if agent == "code":
        from importlib.util import find_spec  # noqa: PLC0415  (other agents need none of it)

        from holdfast_app.code.settings import NO_MODEL, NOT_INSTALLED, read_settings  # noqa: PLC0415

        if find_spec("pydantic_ai") is None:
            sys.stderr.write(f"holdfast: {NOT_INSTALLED}\n")
        elif not read_settings().models:
            sys.stderr.write(f"holdfast: {NO_MODEL}\n")
