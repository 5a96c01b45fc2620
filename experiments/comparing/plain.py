"""What was found as `ragbed compare --json` prints it; a comparison as the run's summary holds it."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from experiments.comparing.every import row_of
from experiments.comparing.findings import Findings
from experiments.comparing.flips import flips
from experiments.comparing.gates_as_tests import Passed
from experiments.comparing.matching import Match
from experiments.comparing.steps import Parting
from experiments.comparing.words import verdict


def findings_plain(findings: Findings, failed: Sequence[Passed], with_flips: bool) -> dict[str, Any]:
    """The comparisons, each with the names of its cells and the metric."""
    rows = [{"metric": one.comparison.metric, **row_of(*findings.cells(one.match), one.comparison),
             **_names(one.match), "verdict": verdict(one.comparison),
             **({"flips": [asdict(flip) for flip in flips(findings, one)]} if with_flips else {})}
            for one in findings.found]
    return {"first": str(findings.first.path), "second": str(findings.second.path), "scoring": findings.first.scoring,
            "comparisons": rows, "notes": list(findings.notes),
            "failed": [{"condition": one.gate.text, **_cells(findings, one.finding.match)} for one in failed]}


def partings_plain(findings: Findings, partings: Sequence[Parting]) -> list[dict[str, Any]]:
    """Where the answers of each two cells part."""
    return [{**_cells(findings, one.match), "metric": one.metric, "histogram": [asdict(bar) for bar in one.bars],
             "questions": [asdict(divergence) for divergence in one.questions]} for one in partings]


def _cells(findings: Findings, match: Match) -> dict[str, str]:
    first, second = findings.cells(match)
    return {"first": first.row["id"], "second": second.row["id"], **_names(match)}


def _names(match: Match) -> dict[str, str]:
    return {"first_name": match.baseline, "second_name": match.cell}
