"""Which models the coding agent may use: what the user has set, read from the environment."""

from __future__ import annotations

import os
from typing import NamedTuple

MODELS = "HOLDFAST_MODEL"
"""One model, or several with commas between them, the first being the default."""
BASE_URL = "HOLDFAST_BASE_URL"
"""The address of an endpoint that speaks OpenAI's protocol; all models are there then."""
API_KEY = "HOLDFAST_API_KEY"
"""The key for that endpoint. Other providers' keys are in their own variables, and not sent there."""

NO_MODEL = f"""No model is set, so this agent cannot answer. Set `{MODELS}`, or start it with `--model`:

- `{MODELS}=openai:gpt-5.2` and `OPENAI_API_KEY=…`
- `{MODELS}=anthropic:claude-opus-4-7` and `ANTHROPIC_API_KEY=…`
- `{MODELS}=qwen3:8b` and `{BASE_URL}=http://localhost:11434/v1` for any endpoint that speaks OpenAI's protocol, \
as Ollama, vLLM or LM Studio; its key, if it wants one, in `{API_KEY}`

In an editor these belong into the `env` of the agent's settings. Several models, with commas between them, can be \
switched in the session."""

NOT_INSTALLED = "The coding agent needs Pydantic AI; install it with: pip install 'holdfast[code]'"


class Choice(NamedTuple):
    """The models a user may choose from, and where they are: with their providers, or all at one address."""

    models: tuple[str, ...] = ()
    base_url: str | None = None


def chosen() -> Choice:
    """Read what the user has set."""
    models = tuple(dict.fromkeys(it.strip() for it in os.environ.get(MODELS, "").split(",") if it.strip()))
    return Choice(models, os.environ.get(BASE_URL, "").strip() or None)
