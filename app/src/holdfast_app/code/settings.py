"""What the user has set for the coding agent, read from the environment: its models, and what its commands may see."""

from __future__ import annotations

import os
from typing import NamedTuple

MODEL_VARIABLE = "HOLDFAST_MODEL"
"""One model, or several with commas between them; the first is the default."""
BASE_URL_VARIABLE = "HOLDFAST_BASE_URL"
"""The address of an endpoint that speaks OpenAI's protocol; all models are there then."""
API_KEY_VARIABLE = "HOLDFAST_API_KEY"
"""The key for that endpoint. Other providers' keys are in their own variables, and not sent there."""
PASS_ENV_VARIABLE = "HOLDFAST_PASS_ENV"  # noqa: S105  (it is a name)
"""Names of environment variables that commands get, besides the usual ones, with commas between them."""

NO_MODEL = f"""No model is set, so this agent cannot answer. Set `{MODEL_VARIABLE}`, or start it with `--model`:

- `{MODEL_VARIABLE}=openai:gpt-5.2` and `OPENAI_API_KEY=…`
- `{MODEL_VARIABLE}=anthropic:claude-opus-4-7` and `ANTHROPIC_API_KEY=…`
- `{MODEL_VARIABLE}=qwen3:8b` and `{BASE_URL_VARIABLE}=http://localhost:11434/v1` for any endpoint that speaks \
OpenAI's protocol, as Ollama, vLLM or LM Studio; its key, if it wants one, in `{API_KEY_VARIABLE}`

In an editor these belong into the `env` of the agent's settings. Several models, with commas between them, can be \
switched in the session."""

NOT_INSTALLED = "The coding agent needs Pydantic AI; install it with: pip install 'holdfast[code]'"


class CodeSettings(NamedTuple):
    """The settings of the coding agent."""

    models: tuple[str, ...] = ()
    """The models a user may choose from."""
    base_url: str | None = None
    """Where all of them are; without it, each is with its provider."""
    pass_env: tuple[str, ...] = ()
    """The environment variables that commands get, besides the usual ones."""


def read_settings() -> CodeSettings:
    """Return what the user has set in the environment."""
    base_url = os.environ.get(BASE_URL_VARIABLE, "").strip() or None
    return CodeSettings(_names(MODEL_VARIABLE), base_url, _names(PASS_ENV_VARIABLE))


def _names(variable: str) -> tuple[str, ...]:
    names = (name.strip() for name in os.environ.get(variable, "").split(","))
    return tuple(dict.fromkeys(name for name in names if name))
