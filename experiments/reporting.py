"""From a run's folder to its report."""
from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from documents.errors import RunError
from experiments.finished import Finished
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
        with _no_collections():
            write_report(_input(run), path)
    except OSError as error:
        raise RunError(f"{path}: {why_unwritten(error)}") from error
    return path


@contextmanager
def _no_collections() -> Iterator[None]:
    """What is read is kept to the end; walking it again and again in search of cycles took a quarter of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _input(run: Finished) -> ReportInput:
    return ReportInput(run.name, dict(run.summary), run.questions, run.folder.records(traces=True),
                       run.folder.database.text, run.scheme.rights, run.causes)
