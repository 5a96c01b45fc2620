"""The questions whose score differs between two cells."""
from __future__ import annotations

from dataclasses import dataclass

from agents.types import Outcome
from experiments.comparing.findings import Finding, Findings


@dataclass(frozen=True, slots=True)
class Flip:
    """A question with its score and outcome in the baseline and in the cell."""

    question: str
    before: float
    after: float
    before_outcome: Outcome
    after_outcome: Outcome


def flips(findings: Findings, finding: Finding) -> list[Flip]:
    """The flips of a finding, losses first, in the order of the questions; none for a metric of sets."""
    scores = finding.pairs.scores
    if scores is None:
        return []
    before, after = findings.answers(finding.match)
    found = [Flip(name, float(first), float(second), before[name].outcome, after[name].outcome)
             for name, (first, second) in zip(finding.pairs.questions, scores, strict=True) if first != second]
    places = {name: place for place, name in enumerate(findings.second.questions)}
    return sorted(found, key=lambda flip: (flip.after > flip.before, places[flip.question]))
