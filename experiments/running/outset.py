"""What a run starts from, checked as far as it can be before anything is opened, asked or written."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from documents.errors import RunError, UserError
from experiments.cells import Cell, cells_of
from experiments.exemplars import check_exemplars, read_exemplars
from experiments.question import Benchmark
from experiments.running.beginning import prepare_run
from experiments.running.checks import check_conditions
from experiments.running.spending import check_prices
from experiments.runs.manifest import check_ids, identities
from experiments.settings import RunSettings
from experiments.settings.matrix import retrievers_of
from experiments.settings.strategies import exemplars_of
from retrieval.index import Index
from strategies.types import Exemplar


@dataclass(frozen=True, slots=True)
class Outset:
    """The questions, the cells in which they are asked, and the worked examples that every prompt shows."""

    benchmark: Benchmark
    cells: list[Cell]
    exemplars: tuple[Exemplar, ...]


def outset_of(settings: RunSettings) -> Outset:
    """What the run starts from.

    Raises:
        UserError: a file is missing or does not fit, or the benchmark has not what the settings want of it.
    """
    benchmark = settings.benchmark.load()
    benchmark = replace(benchmark, scheme=settings.scheme_of(benchmark.questions))
    cells = cells_of(settings, benchmark)
    check_conditions(settings, cells, benchmark)
    exemplars = read_exemplars(settings.exemplars)
    check_exemplars(exemplars, benchmark)
    for file, shown in exemplars_of(settings).items():
        check_exemplars(shown, benchmark, f"few-shot examples: {file}")
    check_ids(benchmark)
    return Outset(benchmark, cells, exemplars)


def check_all(runs: Sequence[RunSettings], fresh: bool = False, replay: bool = False) -> None:
    """Make sure that each of several runs could begin, before the first call of any.

    Raises:
        RunError: one could not; it names the run.
    """
    for settings in runs:
        try:
            _check(settings, fresh, replay)
        except UserError as error:
            raise RunError(f"{settings.name}: {error}; so none of the runs was begun") from error


def _check(settings: RunSettings, fresh: bool, replay: bool) -> None:
    outset = outset_of(settings)
    if not replay:
        check_prices(settings, [cell.model for cell in outset.cells])
    searched = {cell.retriever for cell in outset.cells if cell.format is not None}
    for folder in {one.index for one in retrievers_of(settings) if one.name in searched and not replay} - {None}:
        Index.open(str(folder))
    if fresh or not (settings.folder / "records.sqlite").exists():
        identities(settings, {})
    else:
        prepare_run(settings, outset.benchmark, outset.exemplars).close()
