"""Two runs, or the cells of one, compared by the metrics that are wanted."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from documents.errors import RunError, SettingsError
from experiments.comparing.every import on_replicates
from experiments.comparing.matching import Match, between, differing, every, within
from experiments.comparing.own_intervals import with_own_intervals
from experiments.comparing.side import Side
from experiments.comparing.variants import Variant
from experiments.comparing.words import ON_INTERVALS
from experiments.metrics import METRICS, metric_named
from experiments.metrics.metric import family_of
from experiments.metrics.sample import Row
from experiments.metrics.scored import may_refuse
from experiments.question import Question
from experiments.statistics import Comparison, Pairs, clusters, compare, pairs_of


@dataclass(frozen=True, slots=True)
class Finding:
    """A cell against its baseline by one metric, with the pairs that it is of."""

    match: Match
    comparison: Comparison
    pairs: Pairs


@dataclass(frozen=True, slots=True)
class Findings:
    """What was compared, by metric and then by cell, and what a reader has to know of it.

    Attributes:
        second: the run of the cells; `first`, that of the baselines, where there is one run.
        left_out: of two runs, what is said of `questions` and `cells` that one of them has alone; among the notes too.
    """

    first: Side
    second: Side
    found: tuple[Finding, ...]
    notes: tuple[str, ...]
    left_out: Mapping[str, str]

    def answers(self, match: Match) -> tuple[Mapping[str, Row], Mapping[str, Row]]:
        """Those of the baseline, and of the cell."""
        before, after = self.cells(match)
        return before.answers, after.answers

    def cells(self, match: Match) -> tuple[Variant, Variant]:
        """The baseline, and the cell."""
        return self.first.cell(match.baseline), self.second.cell(match.cell)


def find(first: Side, second: Side | None, metrics: Sequence[str] = (), cells: Sequence[str] = (),
         baseline: str | None = None) -> Findings:
    """Compare; p is corrected over everything that is found here.

    Args:
        second: None to compare the cells of the first with each other: where neither cells nor a baseline are named,
            all that differ in exactly one factor, as the run's summary does.
        metrics: without, the first of the benchmark's table, which the run's summary compares.

    Raises:
        SettingsError: a metric is unknown, or there is nothing to compare.
        RunError: a cell is unknown, the runs are scored differently, or they share no question.
    """
    other = second or first
    matches, bound = _matches(first, second, cells, baseline)
    if first.scoring != other.scoring:
        raise RunError(f"{first.path} has {first.scoring} scoring and {other.path} {other.scoring}: their figures do "
                       "not compare; run one of them again with the other's")
    names = list(dict.fromkeys(metrics)) or [other.columns[0].split(" / ")[0]]
    for name in names:
        _check(name, first, other)
    questions = _shared(first, other)
    grouped = clusters(questions.values())
    pairs = [(match, _pairs(first, other, match, name, questions, grouped.of)) for name in names for match in matches]
    results = [with_own_intervals(one, first.figures(match.baseline), other.figures(match.cell)) for (match, _), one
               in zip(pairs, compare([made for _, made in pairs], first.seed), strict=True)]
    found = tuple(Finding(match, result, made) for (match, made), result in zip(pairs, results, strict=True))
    clustered = any(one.pairs.clustered for one in found)
    compared = [*(first.cell(one.baseline) for one in matches), *(other.cell(one.cell) for one in matches)]
    left_out = {} if second is None else dict(_left_out(first, second, questions, matches, cells, baseline))
    notes = [*_on_runs(first, second, names), *left_out.values(),
             *on_replicates(compared), *bound, *([grouped.note] if grouped.note else []), *_on_clusters(clustered),
             *([ON_INTERVALS] if (tested := sum(one.pairs.n > 0 for one in found)) else []), *_on_many(tested)]
    return Findings(first, other, found, tuple(notes), left_out)


def _matches(first: Side, second: Side | None, cells: Sequence[str],
             baseline: str | None) -> tuple[list[Match], list[str]]:
    """What is compared, and what a reader has to know of what is not."""
    if second is not None:
        return between(first, second, cells, baseline), []
    return (within(first, cells, baseline), []) if cells or baseline else every(first)


def _check(name: str, first: Side, second: Side) -> None:
    metric_named(name)
    if not {*first.metrics} & {*second.metrics} & {name}:
        known = [one for one in second.metrics if one in first.metrics]
        raise SettingsError(f"{name} is no metric of both; there are: {', '.join(known) or 'none'}")


def _shared(first: Side, second: Side) -> dict[str, Question]:
    """The questions that are the same in both, not by their id alone."""
    shared = {name: question for name, question in second.questions.items()
              if name in first.questions and _asked(question) == _asked(first.questions[name])}
    if not shared:
        raise RunError(f"{first.path} and {second.path} share no question; compare runs over the same benchmark")
    return shared


def _asked(question: Question) -> tuple[object, ...]:
    return question.text, question.answers, question.options


def _pairs(first: Side, second: Side, match: Match, metric: str, questions: Mapping[str, Question],
           grouped: Mapping[str, str]) -> Pairs:
    cells = first.cell(match.baseline), second.cell(match.cell)
    sides = [{name: answered for name, answered in cell.answers.items() if name in questions} for cell in cells]
    refusing = all(may_refuse(cell.row["rules"]) for cell in cells)
    return pairs_of(metric, sides[0], sides[1], grouped, first.scoring, refusing)


def _on_runs(first: Side, second: Side | None, metrics: Sequence[str]) -> Iterator[str]:
    if second is None:
        return
    if first.results == second.results:
        yield "Both runs hold the same results."
    apart = [f"{name} ({_named(first, name)} against {_named(second, name)})" for name in differing(first, second)]
    if apart:
        yield f"The runs differ in {', '.join(apart)}."
    judged = any(known.judged for name in metrics if (known := METRICS.get(family_of(name))))
    if judged and first.judge != second.judge:
        yield f"The first run is judged by {first.judge or 'nobody'}, the second by {second.judge or 'nobody'}."


def _named(run: Side, factor: str) -> str:
    return " / ".join(dict.fromkeys(str(row.get(factor) or "none") for row in run.rows))


def _left_out(first: Side, second: Side, shared: Mapping[str, Question], matches: Sequence[Match],
              cells: Sequence[str], baseline: str | None) -> Iterator[tuple[str, str]]:
    """Of cells that are named, only those; where a baseline is, every cell has it."""
    alone = len(first.questions.keys() ^ second.questions.keys())
    other = len(first.questions.keys() & second.questions.keys()) - len(shared)
    if alone or other:
        yield "questions", (f"{len(shared)} questions are in both runs; left out are {alone} that one of them has alone"
                            + (f", and {other} that differ under the same id." if other else "."))
    if cells:
        lonely = len({label for name in cells for label in second.named(name)} - {match.cell for match in matches})
    else:
        lonely = len(first.cells) + len(second.cells) - len({match.baseline for match in matches}) - len(matches)
    if lonely and not baseline:
        yield "cells", f"Cells without their like in the other run: {lonely}."


def _on_clusters(clustered: bool) -> Iterator[str]:
    if clustered:
        yield "Questions over one document are not independent: they are drawn, and swapped between cells, together."


def _on_many(tests: int) -> Iterator[str]:
    if tests > 1:
        yield f"p (Holm) is corrected for {tests} comparisons, all that are shown."
