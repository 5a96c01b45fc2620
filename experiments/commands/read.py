"""Commands that read a run, which may be unfinished."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragbed.experiments.commands.options import AnyRun, AsJson, CellName, Labels, Texts, Unit, refuse
from ragbed.guests import entries, load, load_for_folder, loaded, locate_run

if TYPE_CHECKING:
    from ragbed.experiments.analysis.compare import RunComparison
    from ragbed.experiments.analysis.gates import Gate
    from ragbed.experiments.analysis.view import View

_SHOWN = 200  # questions that a terminal shows
_TO_CHECK = {"questions": "use --shared to check the questions that both have", "cells": "name the cells with --cell",
             "answers": "finish the run, or use --shared to check the questions that both have"}


def report(run: AnyRun, labels: Labels = None, json: AsJson = False) -> None:
    """Write the report of a run as one HTML file."""
    from ragbed.experiments.report.page import report_run
    from ragbed.experiments.runs.finished import open_finished
    from ragbed.experiments.terminal.display import note, print_result

    complete = False
    while not complete:
        with open_finished(run, partial=True) as finished:
            views = [view for make in loaded("labels").values() for view in make(finished, labels)] if labels else []
            path = report_run(finished, views)
            inputs = load(entries("inputs")["run"])(finished) if json else {}
        # A run that finished meanwhile wrote its own report, which this one replaced.
        complete = not finished.unfinished or not (run / "summary.json").is_file()
    for text in finished.unfinished:
        note(text)
    print_result(json, {"run": str(run), "report": str(path), **finished.progress, "inputs": inputs},
                 str(path))


def show(run: Annotated[Path, typer.Argument(callback=locate_run, help="Folder of a run, which may be unfinished.")],
         question: Annotated[str, typer.Argument(help="An id, the beginning of one, or #N for the Nth question.")],
         cell: CellName = None,
         against: Annotated[str | None, typer.Option("--against", metavar="CELL", help=(
             "Draw the searches and calls of tools of two cells side by side."))] = None,
         prompts: Annotated[bool, typer.Option("--prompts", help="Include the prompts.")] = False,
         scores: Annotated[bool, typer.Option("--scores", help=(
             "Show every score, not only the run's columns."))] = False,
         json: AsJson = False) -> None:
    """Show one question: gold, answers, causes, scores and every step."""
    from ragbed.experiments.terminal.show import show_question

    if against is not None:
        load(entries("trajectory")["show_two"])(run, question, cell, against, json)
        return
    show_question(run, question, cell, prompts, scores, json)


def compare(first: Annotated[Path, typer.Argument(metavar="A", help="Folder of a run: the baseline.")],
            second: Annotated[Path | None, typer.Argument(metavar="B", help=(
                "Folder of another run, whose cells are compared with A's."))] = None,
            metric: Annotated[Texts, typer.Option("--metric", metavar="NAME", help=(
                "See `ragbed list metrics`. Default: the main metric."))] = None,
            cell: Annotated[Texts, typer.Option("--cell", metavar="NAME", help=(
                "Only cells whose name contains this, e.g. direct."))] = None,
            baseline: Annotated[str | None, typer.Option("--baseline", metavar="CELL", help=(
                "Compare every cell with this cell of A."))] = None,
            fail_if: Annotated[Texts, typer.Option("--fail-if", metavar="EXPR", help=(
                "Exit with status 1 if this holds for any cell (see above)."))] = None,
            shared: Annotated[bool, typer.Option("--shared", help=(
                "Check --fail-if on the questions that both runs share."))] = False,
            flips: Annotated[bool, typer.Option("--flips", help="List the questions whose score differs.")] = False,
            junit: Annotated[Path | None, typer.Option("--junit", metavar="FILE", help=(
                "Write the results of --fail-if as a JUnit file."))] = None,
            unit: Unit = None, json: AsJson = False) -> None:
    """Test which differences between runs or cells are significant.

    Without B, compares the cells of A that differ in exactly one factor. The tests are paired by question, and p is
    corrected for the number of comparisons (Holm).

    --fail-if 'right < baseline - 0.02' fails if the mean dropped by more than 0.02, which can happen by chance.
    'right.high < baseline - 0.02' fails only if the whole 95 % interval of the difference is below -0.02.
    'right.low < baseline - 0.02' fails if any part of the interval is below -0.02.
    """
    from ragbed.experiments.analysis.gates import Gate

    only_baseline = second is None and not any((metric, cell, fail_if, shared, flips, junit, unit))
    if only_baseline and (compare_folder := load_for_folder("comparison", first)):
        found, views = compare_folder(first, baseline)
        _print_comparison(found, views, json)
        return
    gates = [Gate.parse(text) for text in fail_if or ()]
    if junit:
        from ragbed.experiments.analysis.gates import is_gate_file
        from ragbed.retrieval.storage.files import check_replaceable

        if not gates:
            refuse("--junit writes the conditions of --fail-if; give at least one --fail-if")
        check_replaceable(junit, is_gate_file)
    paths = [locate_run(first), *([locate_run(second)] if second else [])]
    findings = _compare_paths(paths, metric or [], cell or [], baseline, gates, unit)
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
    checked = {"cells", *([] if shared else ["questions", "answers"]), *(f"metric {gate.metric}" for gate in gates)}
    left_out = {what: why for what, why in findings.left_out.items() if gates and what in checked}
    if junit:
        from ragbed.experiments.analysis.gates import write_gates

        write_gates(results, left_out, junit)
    if left_out:
        raise RunError("--fail-if cannot be checked: " + "; ".join(
            f"{why.rstrip('.')}; {_TO_CHECK.get(what, 'correct the function and rerun the run')}"
            for what, why in left_out.items()))
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
    from ragbed.experiments.terminal.run_tables import print_views

    if json:
        print_json(found)
    else:
        print_views(views, whole=True)


def _compare_paths(paths: Sequence[Path], metrics: Sequence[str], cells: Sequence[str], baseline: str | None,
                   gates: Sequence[Gate], unit: str | None) -> RunComparison:
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
        return compare_runs(first, second, [*own, *(gate.metric for gate in gates)], cells, baseline, unit)


def diagnose(run: AnyRun, cell: CellName = None,
             cause: Annotated[str | None, typer.Option("--cause", metavar="NAME", help=(
                 "List the questions with this cause, e.g. retrieval_miss."))] = None,
             json: AsJson = False) -> None:
    """Explain why answers are right or wrong: a cause for every question."""
    from dataclasses import asdict, replace

    from ragbed.documents.errors import RunError, did_you_mean
    from ragbed.experiments.analysis.causes import case_view, causes_by_name, find_cause, make_cases
    from ragbed.experiments.analysis.error_analysis import cause_views, summarise_causes
    from ragbed.experiments.analysis.tradeoff import estimate_tradeoff, refusal_views
    from ragbed.experiments.runs.finished import find_cells, open_finished
    from ragbed.experiments.terminal.display import print_text, say
    from ragbed.experiments.terminal.run_tables import print_views

    folded = (cause or "").strip().replace("-", "_").replace(" ", "_").lower()
    known = causes_by_name()
    wanted = known.get(folded) or next((one for one in known.values() if one.title == folded.replace("_", " ")), None)
    if cause is not None and wanted is None:
        raise RunError(f"unknown cause {cause!r}; {did_you_mean(cause, known)}choose from: {', '.join(known)}")
    with open_finished(run, partial=True) as read:
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
        for text in read.unfinished:
            print_text(text)
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
    heading = read.name if read.scheme.headline == "right" else f"{read.name}, right by {found['metric']}"
    show_views({"run": str(run), **read.progress, **found, "cells": cells, "joint": joint, "tradeoff": traded,
                **questions}, views, [heading, *read.unfinished], json)


def show_views(found: Mapping[str, Any], views: Sequence[View], heading: Sequence[str], json: bool) -> None:
    """Print the heading and the views, or everything as JSON."""
    from ragbed.experiments.terminal.display import print_json, print_text, say
    from ragbed.experiments.terminal.run_tables import print_views

    if json:
        print_json({**found, "views": [view.as_json() for view in views]})
        return
    for text in heading:
        print_text(text)
    say("")
    print_views(views, found.get("judge"))
