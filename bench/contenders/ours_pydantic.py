"""An agent on Pydantic AI, for `holdfast run`."""

from __future__ import annotations

from pydantic_thermometer import thermometer

from holdfast.integrations.pydantic_ai import acp_agent

agent = acp_agent(thermometer)
