"""Does an agent keep the protocol's promises, and ours? Requirements as data, one small script for each, and reports.

- `requirements.REQUIREMENTS` is the table: what is required, by whom, of which version, and how badly.
- `checks` holds a script for each, written on `Trial`, which starts a fresh agent and talks to it, well or badly.
- `run_checks` runs them and returns a `Report`; `report` and `documents` write it for people and machines.

It starts agents and reads what they say; it knows no engine, no store and no agent of ours.
"""

from holdfast_app.check.report import Outcome, Report, Result
from holdfast_app.check.requirements import PROFILES, REQUIREMENTS, Requirement, Tier
from holdfast_app.check.runner import run_checks
from holdfast_app.check.settings import CheckSettings, Prompts
from holdfast_app.check.target import CommandTarget, Target

__all__ = [
    "PROFILES",
    "REQUIREMENTS",
    "CheckSettings",
    "CommandTarget",
    "Outcome",
    "Prompts",
    "Report",
    "Requirement",
    "Result",
    "Target",
    "Tier",
    "run_checks",
]
