"""Run `ragbed compare`, `effects` and `diagnose`: compute from a run's records and show the views."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import typer

from ragbed.documents.errors import RunError, SettingsError
from ragbed.experiments.analysis.cases import case_view, make_cases
from ragbed.experiments.analysis.causes import BY_NAME, CAUSES, Cause, find_cause
from ragbed.experiments.analysis.compare import (
    RunComparison,
    cell_names,
    compare_runs,
    compare_views,
    comparison_json,
    flip_view,
)
from ragbed.experiments.analysis.compared_run import read_compared_run
from ragbed.experiments.analysis.effects import effect_views, estimate_effects
from ragbed.experiments.analysis.error_analysis import cause_views, summarise_causes
from ragbed.experiments.analysis.gates import Gate, GateResult
from ragbed.experiments.analysis.tradeoff import estimate_tradeoff, refusal_views
from ragbed.experiments.analysis.view import View
from ragbed.experiments.metrics import find_metric
from ragbed.experiments.runs.finished import Finished, cells_named, no_collections, open_finished
from ragbed.experiments.statistics import cluster_questions
from ragbed.experiments.terminal.display import note, print_json, say
from ragbed.experiments.terminal.tables import print_views

_CHECKED = {"questions": "--shared checks the questions that both have",  # how a gate is of what both runs have
            "cells": "name those to check with --cell"}
_SHOWN = 200  # questions that a terminal shows


def show_effects(path: Path, metric: str | None, json: bool) -> None:
    """Estimate main effects and interactions of a run's factors, and show them; UserError where there is no finished
    run, fewer than two factors vary in it, or no question of it has the metric."""
    run = read_compared_run(path)
    name = metric or run.columns[0].split(" / ")[0]
    if find_metric(name).of_set:
        raise SettingsError(f"{name} is computed of a whole set, and no question has one; effects are of metrics that "
                            "questions have, such as those that it is made of")
    if name not in run.metrics:
        own = dict.fromkeys(one for answers in run.answers.values() for row in answers.values() for one in row.scores)
        raise SettingsError(f"{name} is no metric of {run.path}; there are: {', '.join(own)}")
    found = estimate_effects(run.rows, run.answers, cluster_questions(run.questions.values()), name, run.scoring)
    if found is None:
        raise RunError(f"{path}: effects are of two factors and more, besides repeats and seeds, and no two vary "
                       f"between its cells with {name}; those of one are the comparisons of `ragbed compare {path}`")
    _show({"run": str(path), "scoring": run.scoring, "judge": run.judge, **found}, effect_views(found, run.judge),
          f"{run.name}, {run.scoring} scoring", json)


def diagnose(path: Path, cell: str | None, cause: str | None, json: bool) -> None:
    """Show why the questions of a run came out as they did, from its records alone: those of cells of that name, or
    that have that cause. The run stays as it is. Raises UserError where there is no such run, cell or cause, or answers
    are not scored there."""
    wanted = None if cause is None else _cause_named(cause)
    with open_finished(path) as run:
        names, grouped = cells_named(run.rows, cell), run.grouped.of
        cases = make_cases(run.cells, run.folder.results(), run.questions, run.scheme.correctness_metrics, run.scoring)
        found = summarise_causes(run.cells, cases, run.questions, run.scheme.correctness_metrics, grouped, run.seed)
        if found is None:
            raise RunError(f"{path}: its benchmark scores what is found, not answers; there is no cause to tell")
        traded = [row for row in estimate_tradeoff(run.cells, cases, grouped, run.made.sweeps, run.seed) or ()
                  if row["cell"] in names]
        cells, joint = ([{**row, "name": names[row["cell"]]} for row in found[part] if row["cell"] in names]
                        for part in ("cells", "joint"))
        views = [case_view(wanted, cases, names, run.questions)] if wanted else [
            *cause_views(found, names, run.scheme.correctness_metrics), *refusal_views(traded, run.rows, names,
                                                                                       run.scheme.correctness_metrics)]
    if wanted and not json:
        view, = views
        if view.rows:
            print_views([replace(view, rows=view.rows[:_SHOWN])])
        else:
            say(view.title)
        if len(view.rows) > _SHOWN:
            say(f"and {len(view.rows) - _SHOWN} more, with --json")
        say("`ragbed show RUN QUESTION` shows each with its evidence and steps." if view.rows else
            "No question has it.")
        return
    questions = {} if wanted is None else {"questions": [
        {"cell": cell, "name": label, "question": question, **asdict(case)} for cell, label in names.items()
        for question, case in cases[cell].items() if find_cause(case) is wanted]}
    _show({"run": str(path), **found, "cells": cells, "joint": joint, "tradeoff": traded, **questions}, views,
          f"{run.name}, right by {found['metric']}", json)


def _cause_named(name: str) -> Cause:
    folded = name.strip().replace("-", "_").replace(" ", "_").lower()
    found = BY_NAME.get(folded) or next((one for one in CAUSES if one.title == name.strip().lower()), None)
    if found is None:
        raise RunError(f"no cause {name!r}; there are: {', '.join(BY_NAME)}")
    return found


def _about(run: Finished) -> dict[str, Any]:
    return {"run": str(run.path), "scoring": run.rows[0]["scoring"], "judge": run.rows[0]["judge"]}


def _show(found: Mapping[str, Any], views: Sequence[View], heading: str, json: bool) -> None:
    if json:
        print_json({**found, "views": [view.as_json() for view in views]})
        return
    say(heading)
    say("")
    print_views(views, found.get("judge"))


def show_comparisons(paths: tuple[Path, Path | None], metrics: Sequence[str], cells: Sequence[str],
                     baseline: str | None, fail_if: Sequence[str], *, shared: bool, flips: bool,
                     junit: Path | None, json: bool) -> None:
    """Compare, as `compare_runs` does, and show; exit status 1 where a gate fails, a condition of `fail_if`. With
    `shared`, gates are of the questions that both runs have, though one has others; `flips` lists the questions whose
    score differs. Gates are written as tests to the file `junit`. Raises UserError for what the user can mend."""
    gates = [Gate.parse(text) for text in fail_if]
    if junit:
        from ragbed.experiments.export.destinations import check_replaceable

        if not gates:
            raise SettingsError("--junit writes the conditions of --fail-if, and none is given; give one")
        check_replaceable(junit, ".xml")
    with no_collections():
        findings = _find(paths, metrics, cells, baseline, gates)
    passed = [GateResult.of(gate, one) for gate in gates for one in findings.found
              if one.comparison.metric == gate.metric]
    failed = [one for one in passed if not one.passes]
    left_out = {what: said for what, said in findings.left_out.items()
                if gates and not (what == "questions" and shared)}
    if junit:
        from ragbed.experiments.export.junit import write_gates  # brings all exports with it

        write_gates(passed, left_out, junit)
    if left_out:
        raise RunError("--fail-if cannot be checked of both runs: " + "; ".join(
            f"{said.rstrip('.')}; {_CHECKED[what]}" for what, said in left_out.items()))
    if json:
        print_json({**comparison_json(findings, flips),
                    "failed": [{"condition": one.gate.text, **cell_names(findings, one.finding.match)}
                               for one in failed],
                    "views": [view.as_json() for view in compare_views(findings)]})
    else:
        named = dict.fromkeys(one.comparison.metric for one in findings.found)
        flipped = [view for name in named if (view := flip_view(findings, name))] if flips else []
        print_views([*compare_views(findings), *flipped], whole=True)
    for one in failed:
        note(f"fails: {one.said}")
    if failed:
        raise typer.Exit(1)


def show_folder_comparison(found: Mapping[str, Any], views: Sequence[View], json: bool) -> None:
    """Print what a guest compared: as JSON, or as tables."""
    if json:
        print_json(found)
    else:
        print_views(views, whole=True)


def _find(paths: tuple[Path, Path | None], metrics: Sequence[str], cells: Sequence[str], baseline: str | None,
          gates: Sequence[Gate]) -> RunComparison:
    with ThreadPoolExecutor(2) as pool:  # the database reads without holding the interpreter
        first, *others = pool.map(read_compared_run, [path for path in paths if path])
    second = others[0] if others else None
    if gates and second is None and not cells:
        baseline = baseline or next(iter(first.cells))  # a gate is of one baseline
    own = metrics or (second or first).columns[0].split(" / ")[:1]
    return compare_runs(first, second, [*own, *(gate.metric for gate in gates)], cells, baseline)
