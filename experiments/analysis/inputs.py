"""The input of every analysis (`AnalysisInput`), and functions that compute figures for a part of a run."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ragbed.experiments.analysis.view import Value, View
from ragbed.experiments.cells import label_rows
from ragbed.experiments.metrics import Estimate, Scoring, aggregate, estimate, may_refuse, name_with_judge
from ragbed.experiments.question import Question
from ragbed.experiments.record import Result
from ragbed.experiments.statistics import Clusters, difference_interval, pair_scores


@dataclass(frozen=True)
class AnalysisInput:
    """A finished run as analyses see it."""

    cells: Sequence[Mapping[str, Any]]  # rows of the run's summary
    results: Mapping[str, Sequence[Result]]  # by cell id, in the order of the questions
    questions: Mapping[str, Question]  # by id
    columns: tuple[str, ...]  # the columns of the benchmark's scheme
    scoring: Scoring = "corrected"
    seed: int = 0
    units: Clusters = field(default_factory=lambda: Clusters({}))  # a question that it lacks is its own unit
    found: Mapping[str, Any] = field(default_factory=dict)  # findings of the summary, such as `effects`
    published: Sequence[str] = ()  # names of published tables to show with the run's figures
    correctness_metrics: Sequence[str] = ()  # an answer is right if the first of these that applies scores 1

    @property
    def clusters(self) -> Mapping[str, str]:
        """Return the cluster of each question, by question id."""
        return self.units.of

    @property
    def metrics(self) -> list[str]:
        """Return the metrics of all columns, as a flat list."""
        return [name for column in self.columns for name in column.split(" / ")]

    @property
    def metric(self) -> str:
        """Return the first metric, by which cells are compared."""
        return self.columns[0].split(" / ")[0]

    @property
    def each(self) -> list[str]:
        """Return the columns that show a single metric with a value per question."""
        scored = {name for results in self.results.values() for result in results for name in result.scores}
        return [column for column in self.columns if column in scored]

    def tags(self, result: Result, name: str) -> tuple[str, ...]:
        """Return the values of a tag of the result's question."""
        return self.questions[result.question].tags.get(name, ())

    def clusters_of(self, results: Iterable[Result]) -> list[str]:
        """Return the cluster of each result's question."""
        return [self.clusters.get(result.question, result.question) for result in results]

    @property
    def answers(self) -> dict[str, dict[str, Result]]:
        """Return the results by cell id, then by question id."""
        return {cell: {result.question: result for result in results} for cell, results in self.results.items()}

    @property
    def judge(self) -> str | None:
        return self.cells[0]["judge"] if self.cells else None

    @property
    def labels(self) -> dict[str, str]:
        """Return the label of each cell, by its id."""
        return {row["id"]: label for label, row in self.labelled()}

    def labelled(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Return the label and the row of each cell."""
        return list(zip(label_rows(self.cells), self.cells, strict=True))

    def shown(self, metric: str) -> str:
        """Return the metric's name, with the judge's name if it uses grades."""
        return name_with_judge(metric, self.judge)


Analysis = Callable[[AnalysisInput], list[View]]
Finding = Callable[[AnalysisInput], Any]  # figures as JSON for the summary; None if the run has nothing to compute


def compute_figures(material: AnalysisInput, cell: Mapping[str, Any], results: Sequence[Result],
            metrics: Iterable[str]) -> list[Value]:
    """Compute the metrics over these results of a cell; None for a metric without a value."""
    found = aggregate_cell(material, cell, results) if results else {}
    return [found.get(name) for name in metrics]


def aggregate_cell(material: AnalysisInput, cell: Mapping[str, Any], results: Sequence[Result]) -> dict[str, Estimate]:
    """Compute every metric over these results of a cell."""
    return aggregate(results, material.scoring, material.seed, refusing=may_refuse(cell["rules"]),
                     clusters=material.clusters_of(results))


def paired_change(material: AnalysisInput, pairs: Sequence[tuple[Result, Result]], metric: str) -> Estimate | None:
    """Return the mean change of the metric from the first to the second result of a pair, with the interval of a paired
    difference. Only pairs with both scores count; return None if there are none."""
    before, after = ({str(place): pair[side] for place, pair in enumerate(pairs)} for side in (0, 1))
    clusters = dict(zip(before, material.clusters_of(before.values()), strict=True))
    made = pair_scores(metric, before, after, clusters, material.scoring)
    if not made.n:
        return None
    first, second = made.observed()
    return estimate(second - first, difference_interval(made, material.seed), made.n)
