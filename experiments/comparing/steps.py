"""The partings of compared cells: a histogram of the steps at which their answers to each question part."""
from __future__ import annotations

from dataclasses import dataclass

from experiments.comparing.divergence import Bar, Divergence, divergences, histogram
from experiments.comparing.findings import Finding, Findings
from experiments.comparing.flips import flips
from experiments.comparing.matching import Match


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
    """One for each cell that is compared, whatever by how many metrics; of repeats and seeds, the first's."""
    first_of = {one.match: one for one in reversed(findings.found)}
    return [_parting(findings, one) for one in reversed(first_of.values())]


def _parting(findings: Findings, one: Finding) -> Parting:
    first, second = findings.cells(one.match)
    before, after = (findings.first.path, first.row["id"]), (findings.second.path, second.row["id"])
    found = divergences(before, after, list(findings.second.questions))
    changed = flips(findings, one)
    up = {flip.question for flip in changed if flip.after > flip.before}
    down = {flip.question for flip in changed if flip.after < flip.before}
    return Parting(one.match, one.comparison.metric, tuple(found), tuple(histogram(found, up, down)))
