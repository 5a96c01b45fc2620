"""From a run's folder to its report."""
from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from documents.errors import RunError
from experiments.attribution import causes_of
from experiments.cells import Cell
from experiments.record import Result
from experiments.report import ReportInput, write_report
from experiments.settings_file import read_settings
from experiments.store import RunFolder
from retrieval.files import why_unwritten


def report_run(folder: RunFolder) -> Path:
    """Write `report.html` of a finished run.

    Raises:
        RunError: the run has not finished, or the file cannot be written.
        SettingsError: the run's settings cannot be read.
    """
    path = folder.path / "report.html"
    try:
        with _no_collections():
            write_report(_input(folder), path)
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


def _input(folder: RunFolder) -> ReportInput:
    summary, questions = folder.summary(), folder.questions()
    settings = read_settings(folder.path / "config.yaml")
    scheme = settings.benchmark.scheme_of(questions.values())
    cells = [Cell.of(row) for row in summary["cells"]]

    def causes(results: Sequence[Result]) -> dict[str, dict[str, str]]:
        return causes_of(cells, results, questions, scheme, settings.scoring)

    return ReportInput(summary["name"], summary, questions, folder.records(), folder.database.text, scheme.rights,
                       causes)
