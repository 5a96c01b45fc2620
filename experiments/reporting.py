"""From a run's folder to its report."""
from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from documents.errors import RunError
from experiments.report import ReportInput, write_report
from experiments.report.text import visible
from experiments.runs.finished import Finished
from experiments.runs.garbage import no_collections
from retrieval.storage.files import why_unwritten


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
                       run.folder.database.text, run.scheme.rights, run.causes, _facts(run))


def _facts(run: Finished) -> list[tuple[str, str]]:
    """Which questions of the benchmark were asked, what was drawn by, and which ragbed writes this."""
    chosen = run.settings.benchmark
    found = {"sample": f"{chosen.sample} (seed {chosen.seed})" if chosen.sample else None, "limit": chosen.limit,
             "filter": ", ".join(f"{name} {value}" for name, value in chosen.filter.items()) or None,
             "seed": run.summary["seed"], "ragbed": version("ragbed")}
    return [(name, visible(str(value))) for name, value in found.items() if value is not None]
