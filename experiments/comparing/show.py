"""`ragbed compare` at work: reads the runs, shows what differs, and says whether a gate fails."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import typer

from experiments.comparing.findings import Finding, Findings, find
from experiments.comparing.flips import flips
from experiments.comparing.gate import Gate
from experiments.comparing.gates_as_tests import Passed, write_gates
from experiments.comparing.side import read_side
from experiments.comparing.steps import partings_of, show_steps, steps_json
from experiments.comparing.words import difference, effect, figure, probability, verdict
from experiments.metrics import shown_name
from experiments.terminal.display import note, print_json, print_table, say


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is compared, and what of it is shown.

    Attributes:
        metrics, cells, baseline: as `find` takes them.
        gates: conditions on which the exit status is 1.
        flips: whether to list the questions whose score differs.
        steps: whether to show at which step the answers to each question part.
        junit: a file for the gates, as tests.
    """

    metrics: Sequence[str] = ()
    cells: Sequence[str] = ()
    baseline: str | None = None
    gates: Sequence[str] = ()
    flips: bool = False
    steps: bool = False
    junit: Path | None = None


def show(paths: tuple[Path, Path | None], wanted: Wanted, json: bool) -> None:
    """Compare and show. Exit status 1 where a gate fails.

    Raises:
        UserError: what the user can mend.
    """
    gates = [Gate.parse(text) for text in wanted.gates]
    with ThreadPoolExecutor(2) as pool:  # the database reads without holding the interpreter
        first, *others = pool.map(read_side, [path for path in paths if path])
    second = others[0] if others else None
    own = wanted.metrics or (second or first).columns[0].split(" / ")
    findings = find(first, second, [*own, *(gate.metric for gate in gates)], wanted.cells, wanted.baseline)
    passed = [Passed.of(gate, one) for gate in gates for one in findings.found
              if one.comparison.metric == gate.metric]
    failed = [one for one in passed if not one.passes]
    partings = partings_of(findings) if wanted.steps else []
    if wanted.junit:
        write_gates(passed, wanted.junit)
    if json:
        steps = {"steps": steps_json(partings)} if wanted.steps else {}
        print_json({**_as_json(findings, failed, wanted.flips), **steps})
    else:
        _show(findings, wanted.flips)
        show_steps(partings)
    for one in failed:
        note(f"fails: {one.said}")
    if failed:
        raise typer.Exit(1)


def _as_json(findings: Findings, failed: Sequence[Passed], with_flips: bool) -> dict[str, Any]:
    rows = [{**_cells(findings, one), **asdict(one.comparison), "verdict": verdict(one.comparison),
             **({"flips": [asdict(flip) for flip in flips(findings, one)]} if with_flips else {})}
            for one in findings.found]
    return {"first": str(findings.first.path), "second": str(findings.second.path), "scoring": findings.first.scoring,
            "comparisons": rows, "notes": list(findings.notes),
            "failed": [{"condition": one.gate.text, **_cells(findings, one.finding)} for one in failed]}


def _cells(findings: Findings, one: Finding) -> dict[str, Any]:
    first, second = findings.first.cells[one.match.baseline], findings.second.cells[one.match.cell]
    return {"baseline": {"id": first["id"], "name": one.match.baseline},
            "cell": {"id": second["id"], "name": one.match.cell}}


def _show(findings: Findings, with_flips: bool) -> None:
    for metric, group in groupby(findings.found, key=lambda one: one.comparison.metric):
        found = list(group)
        print_table(*_table(findings, found),
                    title=f"{_heading(findings)}: {shown_name(metric, findings.second.judge)}")
        for one in found:
            say(f"{one.match.cell}: {verdict(one.comparison)}.")
        say("")
        if with_flips:
            _show_flips(findings, found)
    for text in findings.notes:
        say(text)


def _heading(findings: Findings) -> str:
    if findings.first is findings.second:
        return (f"{findings.first.name}: against {findings.found[0].match.baseline}, {findings.first.scoring} scoring")
    names = [findings.first.name, findings.second.name]
    names = names if names[0] != names[1] else [str(findings.first.path), str(findings.second.path)]
    return f"{names[1]} against {names[0]}, {findings.first.scoring} scoring"


def _table(findings: Findings, found: Sequence[Finding]) -> tuple[list[str], list[list[str]]]:
    """The baseline has a column where cells have several, or one of another name in the other run."""
    lonely = any(one.comparison.unpaired for one in found)
    named = findings.first is not findings.second and any(one.match.cell != one.match.baseline for one in found)
    header = ["cell", *(["baseline"] if named else []), "n", *(["unpaired"] if lonely else []), "baseline's [95 %]",
              "cell's [95 %]", "difference [95 %]", "up", "down", "effect", "test", "p", "p (Holm)"]
    return header, [_row(one, named, lonely) for one in found]


def _row(one: Finding, named: bool, lonely: bool) -> list[str]:
    made = one.comparison
    figures = [figure(made.before, made.before_low, made.before_high),
               figure(made.after, made.after_low, made.after_high), difference(made), _count(made.gained),
               _count(made.lost)]
    return [one.match.cell, *([one.match.baseline] if named else []), str(made.n),
            *([str(made.unpaired)] if lonely else []), *figures, effect(made), made.test, probability(made.p),
            probability(made.p_holm)]


def _count(value: int | None) -> str:
    return "-" if value is None else str(value)


def _show_flips(findings: Findings, found: Sequence[Finding]) -> None:
    rows = list(_flip_rows(findings, found))
    if rows:
        print_table(["question", "cell", "baseline's", "cell's"], rows,
                    title=f"Questions whose {found[0].comparison.metric} differs")
        say("")


def _flip_rows(findings: Findings, found: Sequence[Finding]) -> Iterator[list[str]]:
    for one in found:
        for flip in flips(findings, one):
            yield [flip.question, one.match.cell, f"{flip.first:g} {flip.first_outcome}",
                   f"{flip.second:g} {flip.second_outcome}"]
