"""`ragbed compare` at work: reads the runs, shows what differs, and says whether a gate fails."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from types import MappingProxyType

import typer

from documents.errors import RunError, SettingsError
from experiments.analysis.compare import Finding, Findings, find
from experiments.analysis.gates import Gate, Passed
from experiments.analysis.side import read_side
from experiments.analysis.steps import Parting, findings_plain, flips, partings_of, partings_plain
from experiments.metrics import shown_name
from experiments.runs.finished import no_collections
from experiments.settings.cells import PART, short_names
from experiments.terminal.attribution import asked
from experiments.terminal.display import note, print_json, print_table, say
from experiments.words import difference, effect, figure, probability, verdict

_MANY = 12  # comparisons of a table above which those that are not real are not told one by one
_CHECKED: MappingProxyType[str, str] = MappingProxyType({  # how a gate is of what both runs have
    "questions": "--shared checks the questions that both have", "cells": "name those to check with --cell"})
_BAR = 40  # characters of the longest bar


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is compared, and what of it is shown.

    Attributes:
        metrics, cells, baseline: as `find` takes them.
        gates: conditions on which the exit status is 1.
        shared: whether gates are of the questions that both runs have, though one has others.
        flips: whether to list the questions whose score differs.
        steps: whether to show at which step the answers to each question part.
        junit: a file for the gates, as tests.
    """

    metrics: Sequence[str] = ()
    cells: Sequence[str] = ()
    baseline: str | None = None
    gates: Sequence[str] = ()
    shared: bool = False
    flips: bool = False
    steps: bool = False
    junit: Path | None = None


def show_comparisons(paths: tuple[Path, Path | None], wanted: Wanted, json: bool) -> None:
    """Compare and show. Exit status 1 where a gate fails.

    Raises:
        UserError: what the user can mend.
    """
    gates = [Gate.parse(text) for text in wanted.gates]
    if wanted.junit:
        _check_junit(wanted.junit, gates)
    with no_collections():
        findings = _find(paths, wanted, gates)
    passed = [Passed.of(gate, one) for gate in gates for one in findings.found
              if one.comparison.metric == gate.metric]
    failed = [one for one in passed if not one.passes]
    partings = partings_of(findings) if wanted.steps else []
    left_out = {what: said for what, said in findings.left_out.items()
                if gates and not (what == "questions" and wanted.shared)}
    if wanted.junit:
        from experiments.export.junit import write_gates  # brings all exports with it

        write_gates(passed, left_out, wanted.junit)
    if left_out:
        raise RunError("--fail-if cannot be checked of both runs: " + "; ".join(
            f"{said.rstrip('.')}; {_CHECKED[what]}" for what, said in left_out.items()))
    if json:
        steps = {"steps": partings_plain(findings, partings)} if wanted.steps else {}
        print_json({**findings_plain(findings, failed, wanted.flips), **steps})
    else:
        _show(findings, wanted.flips)
        _show_partings(findings, partings)
    for one in failed:
        note(f"fails: {one.said}")
    if failed:
        raise typer.Exit(1)


def _check_junit(path: Path, gates: Sequence[Gate]) -> None:
    from experiments.export.destinations import check_replaceable

    if not gates:
        raise SettingsError("--junit writes the conditions of --fail-if, and none is given; give one")
    check_replaceable(path, ".xml")


def _find(paths: tuple[Path, Path | None], wanted: Wanted, gates: Sequence[Gate]) -> Findings:
    with ThreadPoolExecutor(2) as pool:  # the database reads without holding the interpreter
        first, *others = pool.map(read_side, [path for path in paths if path])
    second = others[0] if others else None
    baseline = wanted.baseline
    if gates and second is None and not wanted.cells:
        baseline = baseline or next(iter(first.cells))  # a gate is of one baseline
    own = wanted.metrics or (second or first).columns[0].split(" / ")[:1]
    return find(first, second, [*own, *(gate.metric for gate in gates)], wanted.cells, baseline)


def _show(findings: Findings, with_flips: bool) -> None:
    for metric, group in groupby(findings.found, key=lambda one: one.comparison.metric):
        found = list(group)
        title = f"{_heading(findings)}: {shown_name(metric, findings.second.judge)}"
        for factor, part in groupby(found, key=lambda one: one.match.factor):
            _show_group(findings, list(part), f"{title}, by {factor}" if factor else title)
        if with_flips:
            _show_flips(findings, found)
    for text in findings.notes:
        say(text)


def _show_group(findings: Findings, found: Sequence[Finding], title: str) -> None:
    """A table, and each comparison in words; of many, those that are not real in one sentence."""
    print_table(*_table(findings, found), title=title)
    told = found if len(found) <= _MANY else [one for one in found if one.comparison.real]
    for one in told:
        say(f"{_named(findings, one)}: {verdict(one.comparison)}.")
    if len(told) < len(found):
        say(f"No difference can be shown in {'the other ' if told else ''}{len(found) - len(told)}.")
    say("")


def _heading(findings: Findings) -> str:
    if findings.first is findings.second:
        match = findings.found[0].match
        against = "" if match.factor else f" against {match.baseline},"
        return f"{findings.first.name}:{against} {findings.first.scoring} scoring"
    names = [findings.first.name, findings.second.name]
    names = names if names[0] != names[1] else [str(findings.first.path), str(findings.second.path)]
    return f"{names[1]} against {names[0]}, {findings.first.scoring} scoring"


def _table(findings: Findings, found: Sequence[Finding]) -> tuple[list[str], list[list[str]]]:
    lonely, named = any(one.comparison.unpaired for one in found), _names_baselines(findings)
    sides = ["before", "after"] if found[0].match.factor else ["baseline's", "cell's"]
    header = [found[0].match.factor or "cell", *(["baseline"] if named else []), "n",
              *(["unpaired"] if lonely else []), *(f"{side} [95 %]" for side in sides), "difference [95 %]",
              "up", "down", "effect", "test", "p", "p (Holm)"]
    return header, [_row(findings, one, named, lonely) for one in found]


def _names_baselines(findings: Findings) -> bool:
    """Whether a baseline needs a name beside its cell: it has another one in the other run."""
    return findings.first is not findings.second and any(
        one.match.cell != one.match.baseline for one in findings.found)


def _named(findings: Findings, one: Finding) -> str:
    """By the two values of the factor in which alone the cells differ, and what else the second is called; the
    first by what it is besides, where the second has no such part, as none closed-book is shuffled."""
    match = one.match
    if match.factor is None:
        return f"{match.cell} against {match.baseline}" if _names_baselines(findings) else match.cell
    names = short_names(str(row["model"]) for row in findings.second.rows)
    before, after = (names.get(level := str(cell.levels[match.factor]), level) for cell in findings.cells(match))
    parts, own = match.cell.split(PART), match.baseline.split(PART)
    rest, lacking = [part for part in parts if part != after], [part for part in own if part not in (before, *parts)]
    return f"{PART.join([before, *lacking])} → {after}" + (f", {PART.join(rest)}" if rest else "")


def _row(findings: Findings, one: Finding, named: bool, lonely: bool) -> list[str]:
    made = one.comparison
    figures = [figure(made.before, made.before_low, made.before_high),
               figure(made.after, made.after_low, made.after_high), difference(made), _count(made.gained),
               _count(made.lost)]
    return [one.match.cell if named else _named(findings, one), *([one.match.baseline] if named else []), str(made.n),
            *([str(made.unpaired)] if lonely else []), *figures, effect(made), made.test, probability(made.p),
            probability(made.p_holm)]


def _count(value: int | None) -> str:
    return "-" if value is None else str(value)


def _show_flips(findings: Findings, found: Sequence[Finding]) -> None:
    rows = list(_flip_rows(findings, found))
    if rows:
        print_table(["number", "question", *(["cell"] if len(found) > 1 else []), "baseline's", "cell's"], rows,
                    title=f"Questions whose {found[0].comparison.metric} differs")
        say("")


def _flip_rows(findings: Findings, found: Sequence[Finding]) -> Iterator[list[str]]:
    shown = asked(findings.second.questions)
    for one in found:
        for flip in flips(findings, one):
            yield [*shown[flip.question], *([_named(findings, one)] if len(found) > 1 else []),
                   f"{flip.before:g} {flip.before_outcome}", f"{flip.after:g} {flip.after_outcome}"]


def _show_partings(findings: Findings, partings: Sequence[Parting]) -> None:
    """A table for each, its bars drawn to one scale."""
    most = max((bar.questions for one in partings for bar in one.bars), default=1)
    for one in partings:
        rows = [[bar.where, str(bar.questions), str(bar.up), str(bar.down), "█" * -(-_BAR * bar.questions // most)]
                for bar in one.bars]
        print_table(["first step that differs", "questions", f"{one.metric} up", "down", ""], rows,
                    title=f"Where {one.match.cell} parts from {one.match.baseline}")
        say("")
    if any(cell.cells > 1 for one in partings for cell in findings.cells(one.match)):
        say("Of several repeats or seeds, the steps are those of the first; scores are the means over all.")
