"""Compare two runs, or the cells of one run: match cells with baselines, test them by metric, and make views."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any

from ragbed.agents.types import Outcome
from ragbed.documents.errors import RunError, SettingsError
from ragbed.experiments.analysis.pairs import (
    comparison_row,
    describe_change,
    difference_view,
    replicate_notes,
    select_pairs,
)
from ragbed.experiments.analysis.replicates import VARIED, ReplicateGroup, use_own_intervals
from ragbed.experiments.analysis.view import View
from ragbed.experiments.cells import FACTORS, short_name
from ragbed.experiments.formatting import ON_INTERVALS, metric_title, verdict
from ragbed.experiments.guests.run_comparison.compared_run import ComparedRun
from ragbed.experiments.metrics import METRICS, family_of, find_metric
from ragbed.experiments.question import Question
from ragbed.experiments.runs.run_manifest import changed_inputs, difference
from ragbed.experiments.statistics import Comparison, Pairs, check_unit, cluster_questions, compare, pair_scores
from ragbed.experiments.statistics.testing import note_correlation
from ragbed.guests import entries, load, loaded

_BESIDE_FACTORS = ("layout", "brief", "sub_answers", "filled", "paraphraser", "support", "grader", "limits", "calls")


@dataclass(frozen=True, slots=True)
class Match:
    """Labels of a cell and its baseline, and the factor in which they differ if they were matched by it."""

    baseline: str
    cell: str
    factor: str | None = None


def match_by_factor(run: ComparedRun) -> tuple[list[Match], list[str]]:
    """Match the cells of one run that differ in exactly one factor, as its summary does. Also return notes. Raises
    SettingsError if there are no such cells."""
    pairs, notes = select_pairs(list(run.cells.values()))
    if len(run.cells) == 1:
        raise SettingsError(f"{run.path}: it has only one cell; give a second run to compare it with")
    if not pairs:
        raise SettingsError(f"{run.path}: no two cells differ in exactly one factor; choose a --baseline: "
                            f"{', '.join(run.cells)}")
    called = {cell.first["id"]: label for label, cell in run.cells.items()}
    return [Match(called[first.first["id"]], called[second.first["id"]], factor) for factor, first,
            second in pairs], notes


def match_within(run: ComparedRun, wanted: Sequence[str], baseline: str | None) -> list[Match]:
    """Match cells of one run with a baseline: the named cell, or the first of the wanted ones. Raises SettingsError if
    there is nothing to compare or a name matches several cells, and RunError if a name matches none."""
    chosen = _choose_cells(run, wanted)
    against = _find_one(run, baseline) if baseline else chosen[0] if len(chosen) > 1 else next(iter(run.cells))
    matches = [Match(against, label) for label in chosen if label != against]
    if not matches:
        raise SettingsError(f"{run.path}: no second cell to compare {against!r} with; give a second run's "
                            "folder" + (", or another --cell" if len(run.cells) > 1 else ""))
    return matches


def match_between(first: ComparedRun, second: ComparedRun, wanted: Sequence[str], baseline: str | None) -> list[Match]:
    """Match the cells of the second run with their counterparts in the first, or with the first's named baseline.
    Counterparts agree in every factor. Factors in which the two runs have no common level are ignored. Raises
    SettingsError if a cell or name has several counterparts, or if no cell has one. Raises RunError if a name matches
    none."""
    chosen = _choose_cells(second, wanted)
    if baseline:
        against = _find_one(first, baseline)
        return [Match(against, label) for label in chosen]
    if len(first.cells) == len(second.cells) == 1 and not wanted:
        return [Match(next(iter(first.cells)), chosen[0])]
    apart = disjoint_factors(first, second)
    alike: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for label in (*first.cells, *first.replicates):
        alike[_key(first, label, apart)].append(label)
    matches = []
    for label in chosen:
        found = alike.get(_key(second, label, apart), [])
        if len(found) > 1:
            names = " and ".join(map(repr, found))
            raise SettingsError(f"{label!r} of {second.path} has several counterparts: {names} of {first.path}; choose "
                                "one with --baseline")
        matches += [Match(one, label) for one in found]
    if not matches:
        raise SettingsError(f"no cell of {second.path} has a counterpart in {first.path}; choose a --baseline: "
                            f"{', '.join(first.cells)}")
    return matches


def disjoint_factors(first: ComparedRun, second: ComparedRun) -> list[str]:
    """Return the factors in which the two runs have no level in common."""
    levels = [{name: {str(row.get(name)) for row in run.rows} for name in FACTORS} for run in (first, second)]
    return [name for name in FACTORS if levels[0][name].isdisjoint(levels[1][name])]


def _key(run: ComparedRun, label: str, apart: Sequence[str]) -> tuple[str, ...]:
    """Return a key that identifies a cell across runs. Only keys of single cells include repeat and seed."""
    names = VARIED if label in run.cells else FACTORS
    row = run.cell(label).first
    return tuple(str(row.get(name)) for name in names if name not in apart)


def _choose_cells(run: ComparedRun, wanted: Sequence[str]) -> list[str]:
    if not wanted:
        return list(run.cells)
    found = {label for name in wanted for label in run.named(name)}
    return [label for label in (*run.cells, *run.replicates) if label in found]


def _find_one(run: ComparedRun, name: str) -> str:
    found = run.named(name)
    if len(found) > 1:
        raise SettingsError(f"{name!r} matches several cells of {run.path}; choose one of: {', '.join(found)}")
    return found[0]


@dataclass(frozen=True, slots=True)
class CellComparison:
    """The comparison of a cell with its baseline by one metric, with the paired scores."""

    match: Match
    comparison: Comparison
    pairs: Pairs


@dataclass(frozen=True, slots=True)
class RunComparison:
    """All comparisons of one call, ordered by metric and then by cell.

    Attributes:
        left_out: a sentence on the `questions` and one on the `cells` that only one of two runs has, on each
            `metric NAME` of a user that failed on answers, and on missing `answers` of unfinished runs.
    """

    first: ComparedRun  # the run of the baselines
    second: ComparedRun  # the run of the cells; the same as `first` if there is only one run
    found: tuple[CellComparison, ...]
    notes: tuple[str, ...]
    left_out: Mapping[str, str]

    def _repr_html_(self) -> str:
        return str(load(entries("table")["html"])(self))

    def cells(self, match: Match) -> tuple[ReplicateGroup, ReplicateGroup]:
        """Return the baseline and the cell of a match."""
        return self.first.cell(match.baseline), self.second.cell(match.cell)


def compare_runs(first: ComparedRun, second: ComparedRun | None, metrics: Sequence[str] = (), cells: Sequence[str] = (),
         baseline: str | None = None, unit: str | None = None) -> RunComparison:
    """Compare cells, with p corrected over all comparisons of this call.

    Without a second run, compare the named cells of the first run or, by default, all pairs that differ in exactly one
    factor. By default the metric is the first column of the run's table, and the unit of inference that of the run.

    Raises:
        SettingsError: a metric or the unit is unknown or has no effect, or there is nothing to compare.
        RunError: a cell is unknown, the runs use different scoring, or they share no question.
    """
    other = second or first
    matches, bound = (match_between(first, second, cells, baseline), []) if second else \
        (match_within(first, cells, baseline), []) if cells or baseline else match_by_factor(first)
    if first.scoring != other.scoring:
        raise RunError(f"{first.path} has {first.scoring} scoring and {other.path} {other.scoring}: their figures are "
                       "not comparable; rescore or rerun one of them")
    names = list(dict.fromkeys(metrics)) or [other.columns[0].split(" / ")[0]]
    known = [one for one in other.metrics if one in first.metrics]
    for name in names:
        find_metric(name)
        if name not in known:
            raise SettingsError(f"{name} is not a metric of both runs; metrics of both: {', '.join(known) or 'none'}")
    questions = _shared(first, other)
    if unit:
        check_unit(questions.values(), unit)
    grouped = cluster_questions(questions.values(), unit or other.made.scheme.unit)
    pairs = [(match, _pairs(first, other, match, name, questions, grouped.of)) for name in names for match in matches]
    results = compare([made for _, made in pairs], first.seed)
    if first.made.scheme.unit == other.made.scheme.unit == grouped.unit:
        results = [use_own_intervals(one, first.figures(match.baseline), other.figures(match.cell))
                   for (match, _), one in zip(pairs, results, strict=True)]
    found = tuple(CellComparison(match, result, made) for (match, made), result in zip(pairs, results, strict=True))
    compared = [*(first.cell(one.baseline) for one in matches), *(other.cell(one.cell) for one in matches)]
    left_out = {} if second is None else dict(_left_out_notes(first, second, questions, matches, cells, baseline))
    left_out |= {f"metric {name}": run.failed[name] for name in names for run in (first, other) if name in run.failed}
    if unfinished := {run.path: f"{run.path}: {' '.join(run.unfinished)}" for run in (first, other) if run.unfinished}:
        left_out["answers"] = " ".join(unfinished.values())
    tests = sum(one.pairs.n > 0 for one in found)
    notes = [*_run_notes(first, second, names, questions),
             *(text for make in loaded("pair_note").values() for text in make(first, other, matches)),
             *left_out.values(), *replicate_notes(compared), *bound, *grouped.notes(tests),
             *note_correlation([dict(zip(
                 one.pairs.questions, one.pairs.scores[:, 1] - one.pairs.scores[:, 0], strict=True))
                 for one in found if one.pairs.scores is not None], grouped)]
    if tests:
        notes.append(ON_INTERVALS)
    if tests > 1:
        notes.append(f"p (Holm) is corrected for the {tests} comparisons shown.")
    return RunComparison(first, other, found, tuple(notes), left_out)


def _shared(first: ComparedRun, second: ComparedRun) -> dict[str, Question]:
    asked = attrgetter("text", "answers", "options")
    shared = {name: question for name, question in second.questions.items()
              if name in first.questions and asked(question) == asked(first.questions[name])}
    if not shared:
        raise RunError(f"{first.path} and {second.path} share no question; compare runs over the same benchmark")
    return shared


def _pairs(first: ComparedRun, second: ComparedRun, match: Match, metric: str, questions: Mapping[str, Question],
           grouped: Mapping[str, str]) -> Pairs:
    cells = first.cell(match.baseline), second.cell(match.cell)
    sides = [{name: answered for name, answered in cell.answers.items() if name in questions} for cell in cells]
    return pair_scores(metric, sides[0], sides[1], grouped, first.scoring, all(cell.offers_refusal for cell in cells))


def _run_notes(first: ComparedRun, second: ComparedRun | None, metrics: Sequence[str],
               shared: Mapping[str, Question]) -> Iterator[str]:
    if second is None:
        return
    if first.results == second.results:
        yield "Both runs hold the same results."
    named = [{name: " / ".join(dict.fromkeys(str(row.get(name) or "none") for row in run.rows))
              for name in disjoint_factors(first, second)} for run in (first, second)]
    apart = [f"{name} ({level} against {named[1][name]})" for name, level in named[0].items()]
    if apart:
        yield f"The runs differ in {', '.join(apart)}."
    judged = any(known.judged for name in metrics if (known := METRICS.get(family_of(name))))
    if judged and first.judge != second.judge:
        yield f"The first run is judged by {first.judge or 'nobody'}, the second by {second.judge or 'nobody'}."
    yield from (f"The second run has {change}." for change in _changes(first, second, shared))


def _changes(first: ComparedRun, second: ComparedRun, shared: Mapping[str, Question]) -> Iterator[str]:
    """Describe what differs between two runs besides the factors: files with the same name, passages and settings."""
    yield from changed_inputs(first.made, second.made)
    same = first.made.benchmark["hash"] == second.made.benchmark["hash"]
    if not same and (first.questions.keys() == second.questions.keys()
                     or any(question != first.questions[name] for name, question in shared.items())):
        yield "other passages or gold for the same questions: the benchmark's files have changed"
    for name, content in second.pins.items():
        if first.pins.get(name, content) != content and (same or not name.startswith("the chunks")):
            yield f"another version of {name}"
    if found := difference(first.config, second.config, same, _BESIDE_FACTORS):
        yield f"other settings: {found}"


def _left_out_notes(first: ComparedRun, second: ComparedRun, shared: Mapping[str, Question], matches: Sequence[Match],
                    cells: Sequence[str], baseline: str | None) -> Iterator[tuple[str, str]]:
    """Describe the questions and cells that only one of the runs has. If cells are named, only these count. With a
    common baseline, no cell counts."""
    alone = len(first.questions.keys() ^ second.questions.keys())
    other = len(first.questions.keys() & second.questions.keys()) - len(shared)
    if alone or other:
        yield "questions", (f"{len(shared)} questions are in both runs; {alone} that only one run has are left out"
                            + (f", and {other} with the same id but different content." if other else "."))
    if cells:
        lonely = len({label for name in cells for label in second.named(name)} - {match.cell for match in matches})
    else:
        lonely = len(first.cells) + len(second.cells) - len({match.baseline for match in matches}) - len(matches)
    if lonely and not baseline:
        yield "cells", f"Cells without a counterpart in the other run: {lonely}."


def compare_views(findings: RunComparison) -> list[View]:
    """Return a view of the comparisons for each metric and, within one run, for each factor."""
    views: list[View] = []
    named = findings.first is not findings.second and any(
        one.match.cell != one.match.baseline for one in findings.found)
    for (metric, factor), part in groupby(findings.found, key=lambda one: (one.comparison.metric, one.match.factor)):
        title = comparison_title(findings, metric, factor)
        keys = ["what changes" if factor else "cell", *(["baseline"] if named else [])]
        rows = [((one.match.cell if named else describe_match(findings, one), *([one.match.baseline] if named else [])),
                 one.comparison) for one in part]
        views.append(difference_view(
            f"compare:{metric}:{factor or ''}", title, keys, rows,
            () if views else findings.notes, sides=("before", "after") if factor else ("baseline's", "cell's")))
    return views


def comparison_title(findings: RunComparison, metric: str, factor: str | None) -> str:
    """Return the title of the comparisons by one metric, of cells that differ in the factor if one is given."""
    names = [findings.first.name, findings.second.name]
    names = names if names[0] != names[1] else [str(findings.first.path), str(findings.second.path)]
    what = f"{names[1]} against {names[0]}" if findings.first is not findings.second else findings.first.name + (
        f" by {factor}" if factor else f" against {findings.found[0].match.baseline}")
    known, judge = METRICS.get(family_of(metric)), findings.second.judge
    judged = f", judge {short_name(judge)}" if judge and known is not None and known.judged else ""
    return f"{what}: {metric_title(metric)}, {findings.first.scoring} scoring{judged}"


def describe_match(findings: RunComparison, one: CellComparison) -> str:
    """Return the label of a comparison's row."""
    return describe_change(one.match.factor, *findings.cells(one.match), one.match.baseline, one.match.cell)


@dataclass(frozen=True, slots=True)
class Flip:
    """A question with its score and outcome in the baseline and in the cell."""

    question: str
    before: float
    after: float
    before_outcome: Outcome
    after_outcome: Outcome


def find_flips(findings: RunComparison, finding: CellComparison) -> list[Flip]:
    """Return the flips of a comparison, losses first, in the order of the questions. A set-level metric has none."""
    scores = finding.pairs.scores
    if scores is None:
        return []
    before, after = (cell.answers for cell in findings.cells(finding.match))
    found = [Flip(name, float(first), float(second), before[name].outcome, after[name].outcome)
             for name, (first, second) in zip(finding.pairs.questions, scores, strict=True) if first != second]
    places = {name: place for place, name in enumerate(findings.second.questions)}
    return sorted(found, key=lambda flip: (flip.after > flip.before, places[flip.question]))


def comparison_json(findings: RunComparison, with_flips: bool) -> dict[str, Any]:
    """Return the comparisons as JSON, each with the names of its cells; `with_flips` adds the flips of each."""
    rows = [{"metric": one.comparison.metric, **comparison_row(*findings.cells(one.match), one.comparison),
             **cell_names(findings, one.match), "verdict": verdict(one.comparison),
             "differs": load(entries("inputs")["differences"])(findings.first, findings.second, one.match),
             **({"flips": [asdict(flip) for flip in find_flips(findings, one)]} if with_flips else {})}
            for one in findings.found]
    sides = {"first": findings.first, "second": findings.second}
    return {"first": str(findings.first.path), "second": str(findings.second.path),
            "complete": all(run.progress["complete"] for run in sides.values()),
            "progress": {side: run.progress.get("progress") for side, run in sides.items()},
            "scoring": findings.first.scoring,
            "comparisons": rows, "notes": list(findings.notes)}


def cell_names(findings: RunComparison, match: Match) -> dict[str, str]:
    """Return ids and names of the two cells of a match for JSON."""
    first, second = findings.cells(match)
    return {"first": first.first["id"], "second": second.first["id"], "first_name": match.baseline,
            "second_name": match.cell}


def flip_view(findings: RunComparison, metric: str) -> View | None:
    """Return a view of the questions whose scores differ; None if there are none."""
    found = [one for one in findings.found if one.comparison.metric == metric]
    places = {id: place for place, id in enumerate(findings.second.questions, start=1)}
    rows = [(f"#{places[flip.question]}", findings.second.questions[flip.question].text, describe_match(findings, one),
             f"{flip.before:g} {flip.before_outcome}", f"{flip.after:g} {flip.after_outcome}")
            for one in found for flip in find_flips(findings, one)]
    return View(f"flips:{metric}", f"Questions whose {metric} differs", (
        "number", "question", "cell", "baseline's", "cell's"), tuple(rows), 3, 3) if rows else None
