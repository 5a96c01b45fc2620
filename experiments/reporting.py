"""From a run's folder to its report."""
from __future__ import annotations

from pathlib import Path

from documents.errors import RunError
from experiments.report import ReportInput, write_report
from experiments.store import RunFolder
from retrieval.files import why_unwritten


def report_run(folder: RunFolder) -> Path:
    """Write `report.html` of a finished run; RunError where it has not finished or the file cannot be written."""
    path = folder.path / "report.html"
    summary = folder.summary()
    try:
        write_report(ReportInput(summary["name"], summary, folder.questions(), folder.records(), folder.database.text),
                     path)
    except OSError as error:
        raise RunError(f"{path}: {why_unwritten(error)}") from error
    return path
