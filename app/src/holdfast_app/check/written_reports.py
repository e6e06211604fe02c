"""A report as files, each in the form that its option names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast_app.check.documents import junit, markdown
from holdfast_app.check.html_report import page
from holdfast_app.check.report import to_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from holdfast_app.check.report import Report


def write_reports(report: Report, files: Mapping[str, Path]) -> None:
    """Write a report as ``json``, ``junit``, ``html`` and ``markdown``, where a file is given for it."""
    if "json" in files:
        files["json"].write_bytes(to_json(report))
    for name, make in (("junit", junit), ("html", page), ("markdown", markdown)):
        if name in files:
            files[name].write_text(make(report), encoding="utf-8")
