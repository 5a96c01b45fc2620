"""`ragbed compare` at work: reads the runs, shows what differs, and says whether a gate fails."""
from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import typer

from documents.errors import RunError, SettingsError
from experiments.analysis.compare import RunComparison, compare_views, find
from experiments.analysis.compared_run import read_compared
from experiments.analysis.gates import Gate, Passed
from experiments.analysis.steps import findings_json, flip_view, parting_views, partings_json, partings_of
from experiments.runs.finished import no_collections
from experiments.terminal.display import note, print_json
from experiments.terminal.tables import print_views

_CHECKED = {"questions": "--shared checks the questions that both have",  # how a gate is of what both runs have
            "cells": "name those to check with --cell"}


def show_comparisons(paths: tuple[Path, Path | None], metrics: Sequence[str], cells: Sequence[str],
                     baseline: str | None, fail_if: Sequence[str], *, shared: bool, flips: bool, steps: bool,
                     junit: Path | None, json: bool) -> None:
    """Compare and show. Exit status 1 where a gate fails.

    Args:
        metrics, cells, baseline: as `find` takes them.
        fail_if: gates: conditions on which the exit status is 1.
        shared: whether gates are of the questions that both runs have, though one has others.
        flips: whether to list the questions whose score differs; steps, at which step the answers to each part.
        junit: a file for the gates, as tests.

    Raises:
        UserError: what the user can mend.
    """
    gates = [Gate.parse(text) for text in fail_if]
    if junit:
        from experiments.export.destinations import check_replaceable

        if not gates:
            raise SettingsError("--junit writes the conditions of --fail-if, and none is given; give one")
        check_replaceable(junit, ".xml")
    with no_collections():
        findings = _find(paths, metrics, cells, baseline, gates)
    passed = [Passed.of(gate, one) for gate in gates for one in findings.found
              if one.comparison.metric == gate.metric]
    failed = [one for one in passed if not one.passes]
    partings = partings_of(findings) if steps else []
    left_out = {what: said for what, said in findings.left_out.items()
                if gates and not (what == "questions" and shared)}
    if junit:
        from experiments.export.junit import write_gates  # brings all exports with it

        write_gates(passed, left_out, junit)
    if left_out:
        raise RunError("--fail-if cannot be checked of both runs: " + "; ".join(
            f"{said.rstrip('.')}; {_CHECKED[what]}" for what, said in left_out.items()))
    if json:
        parted = {"steps": partings_json(findings, partings)} if steps else {}
        views = {"views": [view.as_json() for view in compare_views(findings)]}
        print_json({**findings_json(findings, failed, flips), **parted, **views})
    else:
        named = dict.fromkeys(one.comparison.metric for one in findings.found)
        flipped = [view for name in named if (view := flip_view(findings, name))] if flips else []
        print_views([*compare_views(findings), *flipped, *parting_views(findings, partings)], whole=True)
    for one in failed:
        note(f"fails: {one.said}")
    if failed:
        raise typer.Exit(1)


def _find(paths: tuple[Path, Path | None], metrics: Sequence[str], cells: Sequence[str], baseline: str | None,
          gates: Sequence[Gate]) -> RunComparison:
    with ThreadPoolExecutor(2) as pool:  # the database reads without holding the interpreter
        first, *others = pool.map(read_compared, [path for path in paths if path])
    second = others[0] if others else None
    if gates and second is None and not cells:
        baseline = baseline or next(iter(first.cells))  # a gate is of one baseline
    own = metrics or (second or first).columns[0].split(" / ")[:1]
    return find(first, second, [*own, *(gate.metric for gate in gates)], cells, baseline)
