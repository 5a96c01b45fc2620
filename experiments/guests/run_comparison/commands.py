"""`ragbed compare`."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragbed.experiments.commands.options import AsJson, Texts, Unit, refuse
from ragbed.guests import load_for_folder, locate_run

if TYPE_CHECKING:
    from ragbed.experiments.analysis.view import View
    from ragbed.experiments.guests.run_comparison.compare import RunComparison
    from ragbed.experiments.guests.run_comparison.gates import Gate

_TO_CHECK = {"questions": "use --shared to check the questions that both have", "cells": "name the cells with --cell",
             "answers": "finish the run, or use --shared to check the questions that both have"}


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
    from ragbed.experiments.guests.run_comparison.gates import Gate

    only_baseline = second is None and not any((metric, cell, fail_if, shared, flips, junit, unit))
    if only_baseline and (compare_folder := load_for_folder("comparison", first)):
        found, views = compare_folder(first, baseline)
        _print_comparison(found, views, json)
        return
    gates = [Gate.parse(text) for text in fail_if or ()]
    if junit:
        from ragbed.experiments.guests.run_comparison.gates import is_gate_file
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
    from ragbed.experiments.guests.run_comparison.compare import cell_names, compare_views, comparison_json, flip_view
    from ragbed.experiments.guests.run_comparison.gates import GateResult
    from ragbed.experiments.terminal.display import note

    results = [GateResult.of(gate, one) for gate in gates for one in findings.found
               if one.comparison.metric == gate.metric]
    failed = [one for one in results if not one.passes]
    checked = {"cells", *([] if shared else ["questions", "answers"]), *(f"metric {gate.metric}" for gate in gates)}
    left_out = {what: why for what, why in findings.left_out.items() if gates and what in checked}
    if junit:
        from ragbed.experiments.guests.run_comparison.gates import write_gates

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

    from ragbed.experiments.guests.run_comparison.compare import compare_runs
    from ragbed.experiments.guests.run_comparison.compared_run import read_compared_run
    from ragbed.experiments.runs.finished import pause_collection

    with pause_collection(), ThreadPoolExecutor(2) as pool:  # the database reads without holding the interpreter lock
        first, *others = pool.map(read_compared_run, paths)
        second = others[0] if others else None
        if gates and second is None and not cells:
            baseline = baseline or next(iter(first.cells))  # a gate compares with one baseline
        own = metrics or (second or first).columns[0].split(" / ")[:1]
        return compare_runs(first, second, [*own, *(gate.metric for gate in gates)], cells, baseline, unit)
