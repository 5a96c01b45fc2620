"""The front door in Python: carry out a run, or open a finished one, and take its figures to pandas.

    from ragbed.experiments import open_run, run

    with run("compare.yaml") as finished:
        print(finished.frame().groupby("cell_name")["score.em"].mean())
"""
from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ragbed.documents.errors import MissingExtra, SettingsError
from ragbed.experiments.analysis.cases import find_causes
from ragbed.experiments.analysis.view import View
from ragbed.experiments.export.tables import ExportedRun, rows
from ragbed.experiments.record import Record
from ragbed.experiments.runs.finished import Finished
from ragbed.experiments.runs.store import RunFolder
from ragbed.guests import locate_run

if TYPE_CHECKING:
    from pandas import DataFrame

    from ragbed.experiments.settings import RunSettings


class Run:
    """A finished run whose folder is open; a context manager that closes it."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder, self._finished = folder, Finished.of(folder)

    @property
    def path(self) -> Path:
        """The run's folder."""
        return self._finished.path

    @property
    def summary(self) -> Mapping[str, Any]:
        """What `summary.json` holds: cells with their figures and intervals, comparisons, views, notes."""
        return self._finished.summary

    @property
    def cells(self) -> Mapping[str, Mapping[str, Any]]:
        """The cells' rows of the summary, by the names that tables show."""
        return dict(zip(self._finished.labels.values(), self._finished.rows, strict=True))

    @property
    def views(self) -> Mapping[str, View]:
        """The analyses as tables with notes, tests and charts, by name: what terminal, report and JSON show."""
        return {view.name: view for view in map(View.of, self.summary["views"])}

    def records(self) -> Iterator[Record]:
        """Yield the record of every question in every cell, in the run's order, with its trace."""
        return self._folder.records(traces=True)

    def frame(self) -> DataFrame:
        """Return one row for each question in each cell, failures too: factors, answer, cause, scores, cost.
        Raises MissingExtra where pandas is not installed."""
        MissingExtra.check("pandas", "pandas")
        import pandas

        run = self._finished
        causes = find_causes(run.cells, self._folder.results(), run.questions, run.scheme.correctness_metrics,
                             run.scoring)
        return pandas.DataFrame(rows(ExportedRun(run, causes)))

    def close(self) -> None:
        """Let go of the folder."""
        self._folder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def open_run(path: str | Path) -> Run:
    """Open a finished run by its folder; RunError where there is none, or its summary is missing or damaged."""
    with ExitStack() as undone:
        folder = RunFolder.existing(locate_run(Path(path)))
        undone.callback(folder.close)
        opened = Run(folder)
        undone.pop_all()
    return opened


def run(settings: str | Path | Mapping[str, Any] | RunSettings, fresh: bool = False) -> Run:
    """Carry out a run, or continue it where it stopped, and open it.

    Args:
        settings: a YAML file, its content as a dict, or the model.
        fresh: remove what an earlier run left and begin anew.

    Raises:
        SettingsError: the settings do not fit, or describe several runs.
        UserError: what else the user can mend; records made so far are kept, and the same call continues.
    """
    resolved = _resolved(settings)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        _carry_out(resolved, fresh)
    else:  # a notebook's: a loop of our own runs in a thread beside it
        with ThreadPoolExecutor(1) as pool:
            pool.submit(_carry_out, resolved, fresh).result()
    return open_run(resolved.folder)


def _carry_out(settings: RunSettings, fresh: bool) -> None:
    from ragbed.experiments.running.runner import RunCallbacks
    from ragbed.experiments.running.runner import run as carry_out

    silent = RunCallbacks(lambda *stage: None, lambda begun: None, lambda record: None)
    asyncio.run(carry_out(settings, silent, fresh=fresh)).close()


def _resolved(settings: str | Path | Mapping[str, Any] | RunSettings) -> RunSettings:
    from ragbed.experiments.settings import RunSettings
    from ragbed.experiments.settings.file import read_runs, split_runs

    if isinstance(settings, RunSettings):
        return settings
    runs = split_runs(dict(settings), "settings") if isinstance(settings, Mapping) else read_runs(Path(settings))
    if len(runs) > 1:
        raise SettingsError(f"these settings are {len(runs)} runs, one for each benchmark; give one benchmark")
    return runs[0]
