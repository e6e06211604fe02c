"""A script for every requirement: `CHECKS` holds those that talk to an agent, `OBSERVATIONS` those that look on.

A script returns where the agent did what is required, and raises one of `holdfast_app.check.outcomes` otherwise. It
tests one rule and leans on as few others as possible, so that an agent with one fault fails one check.
"""

from holdfast_app.check.checks import durability, hostile, mcp, prompts, remote, restoring, services, sessions, wires
from holdfast_app.check.checks.registry import CHECKS, OBSERVATIONS, Observation, Script

__all__ = [
    "CHECKS",
    "OBSERVATIONS",
    "Observation",
    "Script",
    "durability",
    "hostile",
    "mcp",
    "prompts",
    "remote",
    "restoring",
    "services",
    "sessions",
    "wires",
]
