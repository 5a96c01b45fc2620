"""The partings of compared cells: a histogram of the steps at which their answers to each question part."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from experiments.comparing.divergence import Bar, Divergence, divergences, histogram
from experiments.comparing.findings import Finding, Findings
from experiments.comparing.flips import flips
from experiments.comparing.matching import Match
from experiments.terminal.display import print_table, say

_BAR = 40  # characters of the longest


@dataclass(frozen=True, slots=True)
class Parting:
    """A cell against its baseline: where each question parts, and how many part at each place.

    Attributes:
        metric: by which a question scores higher or lower; that of the first finding.
    """

    match: Match
    metric: str
    questions: tuple[Divergence, ...]
    bars: tuple[Bar, ...]


def partings_of(findings: Findings) -> list[Parting]:
    """One for each cell that is compared, whatever by how many metrics."""
    first_of = {one.match: one for one in reversed(findings.found)}
    return [_parting(findings, one) for one in reversed(first_of.values())]


def _parting(findings: Findings, one: Finding) -> Parting:
    before = findings.first.path, findings.first.cells[one.match.baseline]["id"]
    after = findings.second.path, findings.second.cells[one.match.cell]["id"]
    found = divergences(before, after, list(findings.second.questions))
    changed = flips(findings, one)
    up = {flip.question for flip in changed if flip.second > flip.first}
    down = {flip.question for flip in changed if flip.second < flip.first}
    return Parting(one.match, one.comparison.metric, tuple(found), tuple(histogram(found, up, down)))


def steps_json(partings: Sequence[Parting]) -> list[dict[str, Any]]:
    """As `ragbed compare --steps --json` prints them."""
    return [{"baseline": one.match.baseline, "cell": one.match.cell, "metric": one.metric,
             "histogram": [asdict(bar) for bar in one.bars],
             "questions": [asdict(divergence) for divergence in one.questions]} for one in partings]


def show_steps(partings: Sequence[Parting]) -> None:
    """A table for each, its bars drawn to one scale."""
    most = max((bar.questions for one in partings for bar in one.bars), default=1)
    for one in partings:
        rows = [[bar.where, str(bar.questions), str(bar.up), str(bar.down), "█" * -(-_BAR * bar.questions // most)]
                for bar in one.bars]
        print_table(["first step that differs", "questions", f"{one.metric} up", "down", ""], rows,
                    title=f"Where {one.match.cell} parts from {one.match.baseline}")
        say("")
