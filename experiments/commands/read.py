"""Commands that read a finished run."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragbed.experiments.commands.options import AsJson, CellName, FinishedRun, Labels, Metric, Texts, refuse
from ragbed.guests import load_for_folder, loaded, locate_run

if TYPE_CHECKING:
    from ragbed.experiments.analysis.compare import RunComparison
    from ragbed.experiments.analysis.gates import Gate
    from ragbed.experiments.analysis.view import View

_SHOWN = 200  # questions that a terminal shows
_TO_CHECK = {"questions": "use --shared to check the questions that both have", "cells": "name the cells with --cell"}


def report(run: FinishedRun, labels: Labels = None, json: AsJson = False) -> None:
    """Write the report of a finished run as one HTML file."""
    from ragbed.experiments.report.page import report_run
    from ragbed.experiments.runs.finished import open_finished
    from ragbed.experiments.terminal.display import print_result

    with open_finished(run) as finished:
        views = [view for make in loaded("labels").values() for view in make(finished, labels)] if labels else []
        path = report_run(finished, views)
    print_result(json, {"run": str(run), "report": str(path)}, str(path))


def show(run: Annotated[Path, typer.Argument(callback=locate_run, help="Folder of a run, which may be unfinished.")],
         question: Annotated[str, typer.Argument(help="An id, the beginning of one, or #N for the Nth question.")],
         cell: CellName = None,
         prompts: Annotated[bool, typer.Option("--prompts", help="Include the prompts.")] = False,
         scores: Annotated[bool, typer.Option("--scores", help="Every score, not only the run's columns.")] = False,
         json: AsJson = False) -> None:
    """Show one question: gold, answers, causes, scores and every step."""
    from ragbed.experiments.terminal.show import show_question

    show_question(run, question, cell, prompts, scores, json)


def compare(first: Annotated[Path, typer.Argument(metavar="A", help="Folder of a finished run: the baseline.")],
            second: Annotated[Path | None, typer.Argument(metavar="B", help=(
                "Folder of another run, whose cells are compared with A's."))] = None,
            metric: Annotated[Texts, typer.Option("--metric", metavar="NAME", help=(
                "See `ragbed list metrics`. Default: headline."))] = None,
            cell: Annotated[Texts, typer.Option("--cell", metavar="NAME", help=(
                "Only cells with this name or part of it."))] = None,
            baseline: Annotated[str | None, typer.Option("--baseline", metavar="CELL", help=(
                "Compare every cell with this cell of A."))] = None,
            fail_if: Annotated[Texts, typer.Option("--fail-if", metavar="EXPR", help=(
                "Exit with status 1 if true for any cell."))] = None,
            shared: Annotated[bool, typer.Option("--shared", help=(
                "Check --fail-if over the questions that both runs have."))] = False,
            flips: Annotated[bool, typer.Option("--flips", help="List the questions whose score differs.")] = False,
            junit: Annotated[Path | None, typer.Option("--junit", metavar="FILE", help=(
                "Write the --fail-if conditions as JUnit tests."))] = None,
            json: AsJson = False) -> None:
    """Test which differences between runs or cells are significant.

    Without B, compares the cells of A that differ in exactly one factor. The questions are paired, and p is corrected
    for the number of comparisons (Holm).

    --fail-if 'unified < baseline - 0.02' compares means, which vary by chance. 'unified.high < baseline - 0.02' fails
    only if the whole 95 % interval of the difference lies below; 'unified.low < baseline - 0.02' fails unless the
    interval rules out such a loss.
    """
    from ragbed.experiments.analysis.gates import Gate

    only_baseline = second is None and not any((metric, cell, fail_if, shared, flips, junit))
    if only_baseline and (compare_folder := load_for_folder("comparison", first)):
        found, views = compare_folder(first, baseline)
        _print_comparison(found, views, json)
        return
    gates = [Gate.parse(text) for text in fail_if or ()]
    if junit:
        from ragbed.experiments.export.destinations import check_replaceable

        if not gates:
            refuse("--junit writes the conditions of --fail-if; give at least one --fail-if")
        check_replaceable(junit, ".xml")
    paths = [locate_run(first), *([locate_run(second)] if second else [])]
    findings = _compare_paths(paths, metric or [], cell or [], baseline, gates)
    _show_comparison(findings, gates, shared, flips, junit, json)


def _show_comparison(findings: RunComparison, gates: Sequence[Gate], shared: bool, flips: bool, junit: Path | None,
                     json: bool) -> None:
    from ragbed.documents.errors import RunError
    from ragbed.experiments.analysis.compare import cell_names, compare_views, comparison_json, flip_view
    from ragbed.experiments.analysis.gates import GateResult
    from ragbed.experiments.terminal.display import note

    results = [GateResult.of(gate, one) for gate in gates for one in findings.found
               if one.comparison.metric == gate.metric]
    failed = [one for one in results if not one.passes]
    left_out = {what: why for what, why in findings.left_out.items() if gates and not (what == "questions" and shared)}
    if junit:
        from ragbed.experiments.export.junit import write_gates

        write_gates(results, left_out, junit)
    if left_out:
        raise RunError("--fail-if cannot be checked for both runs: " + "; ".join(
            f"{why.rstrip('.')}; {_TO_CHECK[what]}" for what, why in left_out.items()))
    views = compare_views(findings)
    named = dict.fromkeys(one.comparison.metric for one in findings.found)
    flipped = [view for name in named if (view := flip_view(findings, name))] if flips else []
    _print_comparison({**comparison_json(findings, flips), "failed": [
        {"condition": one.gate.text, **cell_names(findings, one.finding.match)} for one in failed],
        "views": [view.as_json() for view in views]} if json else {}, [*views, *flipped], json)
    for one in failed:
        note(f"fails: {one.said}")
    if failed:
        raise typer.Exit(1)


def _print_comparison(found: Mapping[str, Any], views: Sequence[View], json: bool) -> None:
    from ragbed.experiments.terminal.display import print_json
    from ragbed.experiments.terminal.tables import print_views

    if json:
        print_json(found)
    else:
        print_views(views, whole=True)


def _compare_paths(paths: Sequence[Path], metrics: Sequence[str], cells: Sequence[str], baseline: str | None,
                   gates: Sequence[Gate]) -> RunComparison:
    from concurrent.futures import ThreadPoolExecutor

    from ragbed.experiments.analysis.compare import compare_runs
    from ragbed.experiments.analysis.compared_run import read_compared_run
    from ragbed.experiments.runs.finished import pause_collection

    with pause_collection(), ThreadPoolExecutor(2) as pool:  # the database reads without holding the interpreter lock
        first, *others = pool.map(read_compared_run, paths)
        second = others[0] if others else None
        if gates and second is None and not cells:
            baseline = baseline or next(iter(first.cells))  # a gate compares with one baseline
        own = metrics or (second or first).columns[0].split(" / ")[:1]
        return compare_runs(first, second, [*own, *(gate.metric for gate in gates)], cells, baseline)


def effects(run: FinishedRun, metric: Metric = None, json: AsJson = False) -> None:
    """Estimate the main effect of each factor, and which factors interact."""
    from ragbed.documents.errors import RunError
    from ragbed.experiments.analysis.compared_run import read_compared_run
    from ragbed.experiments.analysis.effects import effect_views, estimate_effects
    from ragbed.experiments.metrics import find_metric
    from ragbed.experiments.statistics import cluster_questions

    read = read_compared_run(run)
    name = metric or read.columns[0].split(" / ")[0]
    if find_metric(name).of_set:
        refuse(f"{name} is a metric of a whole set; choose one that every question has, such as those it is made of")
    if name not in read.metrics:
        own = dict.fromkeys(one for answers in read.answers.values() for row in answers.values() for one in row.scores)
        refuse(f"{read.path} has no metric {name}; choose from: {', '.join(own)}")
    found = estimate_effects(read.rows, read.answers, cluster_questions(read.questions.values()), name, read.scoring)
    if found is None:
        raise RunError(f"{run}: effects need at least two varying factors, not counting repeats and seeds, among "
                       f"cells with {name}; `ragbed compare {run}` compares cells that differ in one factor")
    _show({"run": str(run), "scoring": read.scoring, "judge": read.judge, **found}, effect_views(found, read.judge),
          f"{read.name}, {read.scoring} scoring", json)


def diagnose(run: FinishedRun, cell: CellName = None,
             cause: Annotated[str | None, typer.Option("--cause", metavar="NAME", help=(
                 "List the questions with this cause, e.g. retrieval_miss."))] = None,
             json: AsJson = False) -> None:
    """Explain why answers are right or wrong: a cause for every question."""
    from dataclasses import asdict, replace

    from ragbed.documents.errors import RunError
    from ragbed.experiments.analysis.cases import case_view, make_cases
    from ragbed.experiments.analysis.causes import BY_NAME, CAUSES, find_cause
    from ragbed.experiments.analysis.error_analysis import cause_views, summarise_causes
    from ragbed.experiments.analysis.tradeoff import estimate_tradeoff, refusal_views
    from ragbed.experiments.runs.finished import find_cells, open_finished
    from ragbed.experiments.terminal.display import say
    from ragbed.experiments.terminal.tables import print_views

    folded = (cause or "").strip().replace("-", "_").replace(" ", "_").lower()
    wanted = BY_NAME.get(folded) or next((one for one in CAUSES if one.title == folded.replace("_", " ")), None)
    if cause is not None and wanted is None:
        raise RunError(f"unknown cause {cause!r}; choose from: {', '.join(BY_NAME)}")
    with open_finished(run) as read:
        names, grouped, metrics = find_cells(read.rows, cell), read.grouped.of, read.scheme.correctness_metrics
        cases = make_cases(read.cells, read.folder.results(), read.questions, metrics, read.scoring)
        found = summarise_causes(read.cells, cases, read.questions, metrics, grouped, read.seed)
        if found is None:
            raise RunError(f"{run}: its benchmark scores only retrieval, so no answer has a cause")
        traded = [row for row in estimate_tradeoff(read.cells, cases, grouped, read.made.sweeps, read.seed) or ()
                  if row["cell"] in names]
        cells, joint = ([{**row, "name": names[row["cell"]]} for row in found[part] if row["cell"] in names]
                        for part in ("cells", "joint"))
        views = [case_view(wanted, cases, names, read.questions)] if wanted else [
            *cause_views(found, names, metrics), *refusal_views(traded, read.rows, names, metrics)]
    if wanted and not json:
        view, = views
        if not view.rows:
            say(f"{view.title}: no question has this cause.")
            return
        print_views([replace(view, rows=view.rows[:_SHOWN])])
        if len(view.rows) > _SHOWN:
            say(f"and {len(view.rows) - _SHOWN} more, with --json")
        say(f"`ragbed show {run} QUESTION` shows a question with its evidence and steps.")
        return
    questions = {} if wanted is None else {"questions": [
        {"cell": cell, "name": label, "question": question, **asdict(case)} for cell, label in names.items()
        for question, case in cases[cell].items() if find_cause(case) is wanted]}
    _show({"run": str(run), **found, "cells": cells, "joint": joint, "tradeoff": traded, **questions}, views,
          f"{read.name}, right by {found['metric']}", json)


def _show(found: Mapping[str, Any], views: Sequence[View], heading: str, json: bool) -> None:
    from ragbed.experiments.terminal.display import print_json, say
    from ragbed.experiments.terminal.tables import print_views

    if json:
        print_json({**found, "views": [view.as_json() for view in views]})
        return
    say(f"{heading}\n")
    print_views(views, found.get("judge"))
