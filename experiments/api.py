"""Run an experiment from Python, or open a run, and get its figures as a pandas frame.

    from ragbed import open_run, run

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
from ragbed.experiments.analysis.view import View
from ragbed.experiments.record import Record
from ragbed.experiments.runs.finished import Finished
from ragbed.experiments.runs.store import RunFolder
from ragbed.guests import entries, load, locate_run

if TYPE_CHECKING:
    from pandas import DataFrame

    from ragbed.experiments.settings import RunSettings


class Run:
    """A run with its open folder. As a context manager, it closes the folder. Unless `progress` says that the run is
    complete, everything covers the answers that it had when it was opened."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder, self._finished = folder, Finished.of(folder, partial=True)

    @property
    def path(self) -> Path:
        """The run's folder."""
        return self._finished.path

    @property
    def summary(self) -> Mapping[str, Any]:
        """Return the content of `summary.json`: cells with figures and intervals, comparisons, views, notes."""
        return self._finished.summary

    @property
    def progress(self) -> Mapping[str, Any]:
        """Return whether the run is `complete` and, if not, its `progress`: answers and how many are expected, by cell.
        """
        return self._finished.progress

    @property
    def cells(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the summary's row of each cell, by the cell's label in tables."""
        return dict(zip(self._finished.labels.values(), self._finished.rows, strict=True))

    @property
    def views(self) -> Mapping[str, View]:
        """Return the analyses by name: tables with notes, tests and charts."""
        return {view.name: view for view in map(View.of, self.summary["views"])}

    def records(self) -> Iterator[Record]:
        """Yield the record of every question in every cell, in the run's order, with its trace."""
        return self._folder.records(traces=True)

    def frame(self) -> DataFrame:
        """Return one row for each question in each cell, failures included: factors, answer, cause, scores, cost.
        Raises MissingExtra if pandas is not installed."""
        MissingExtra.check("pandas", "pandas")
        import pandas

        return pandas.DataFrame(load(entries("table")["records"])(self._finished))

    def _repr_html_(self) -> str:
        return str(load(entries("table")["html"])(self._finished))

    def close(self) -> None:
        """Close the folder."""
        self._folder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def open_run(path: str | Path) -> Run:
    """Open a run by its folder, even if it was stopped or is under way. Raises RunError if there is no run, it has no
    answers yet, or it is damaged."""
    with ExitStack() as undone:
        folder = RunFolder.existing(locate_run(Path(path)))
        undone.callback(folder.close)
        opened = Run(folder)
        undone.pop_all()
    return opened


def run(settings: str | Path | Mapping[str, Any] | RunSettings, fresh: bool = False) -> Run:
    """Run an experiment, or continue it where it stopped, and open the finished run.

    Args:
        settings: a YAML file, its content as a dict, or `RunSettings`.
        fresh: remove the files of an earlier run and start again.

    Raises:
        SettingsError: the settings do not fit, or describe several runs.
        UserError: another error that the user can correct. The same call then continues the run.
    """
    resolved = _resolve(settings)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        _carry_out(resolved, fresh)
    else:  # a notebook already runs an event loop, so start one in another thread
        with ThreadPoolExecutor(1) as pool:
            pool.submit(_carry_out, resolved, fresh).result()
    return open_run(resolved.folder)


def _carry_out(settings: RunSettings, fresh: bool) -> None:
    from ragbed.experiments.running.runner import RunCallbacks
    from ragbed.experiments.running.runner import run as carry_out

    silent = RunCallbacks(lambda *stage: None, lambda begun: None, lambda record: None)
    asyncio.run(carry_out(settings, silent, fresh=fresh)).close()


def _resolve(settings: str | Path | Mapping[str, Any] | RunSettings) -> RunSettings:
    from ragbed.experiments.settings import RunSettings
    from ragbed.experiments.settings.file import read_runs, split_runs

    if isinstance(settings, RunSettings):
        return settings
    runs = split_runs(dict(settings), "settings") if isinstance(settings, Mapping) else read_runs(Path(settings))
    if len(runs) > 1:
        raise SettingsError(f"these settings describe {len(runs)} runs, one per benchmark; give only one benchmark")
    return runs[0]
