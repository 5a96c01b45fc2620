"""From a run's folder to its report."""
from __future__ import annotations

from pathlib import Path

from documents.errors import RunError
from experiments.finished import Finished
from experiments.garbage import no_collections
from experiments.report import ReportInput, write_report
from retrieval.files import why_unwritten


def report_run(run: Finished) -> Path:
    """Write `report.html` of a finished run.

    Raises:
        RunError: the file cannot be written.
        SettingsError: the run's settings cannot be read.
    """
    path = run.path / "report.html"
    try:
        with no_collections():
            write_report(_input(run), path)
    except OSError as error:
        raise RunError(f"{path}: {why_unwritten(error)}") from error
    return path


def _input(run: Finished) -> ReportInput:
    return ReportInput(run.name, dict(run.summary), run.questions, run.folder.records(traces=True),
                       run.folder.database.text, run.scheme.rights, run.causes)
