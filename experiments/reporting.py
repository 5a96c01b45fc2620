"""From a run's folder to its report."""
from __future__ import annotations

from pathlib import Path

from experiments.report import ReportInput, write_report
from experiments.store import RunFolder


def report_run(folder: RunFolder) -> Path:
    """Write `report.html` of a finished run; RunError where it has not finished."""
    path = folder.path / "report.html"
    summary = folder.summary()
    write_report(ReportInput(summary["name"], summary, folder.questions(), folder.records(), folder.database.text),
                 path)
    return path
