"""The official Python SDK as the least agent there can be: it answers `initialize`."""

# pyright: reportAbstractUsage=false, reportIncompatibleMethodOverride=false

import asyncio
from typing import Any

from acp import Agent, InitializeResponse, run_agent


class HelloAgent(Agent):
    async def initialize(self, protocol_version: int, **_others: Any) -> InitializeResponse:
        return InitializeResponse(protocol_version=protocol_version)


if __name__ == "__main__":
    asyncio.run(run_agent(HelloAgent()))
