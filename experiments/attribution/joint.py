"""What becomes of a question that is answered rightly over the gold alone, under each other condition: pair by pair."""
from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.types import Outcome
from experiments.attribution.case import Case
from experiments.attribution.cases import Cases
from experiments.attribution.causes import cause_of
from experiments.attribution.shares import Grouped, share
from experiments.attribution.siblings import gold_alone, siblings_of
from experiments.cells import Cell
from experiments.statistics.pairs import pairs_of
from experiments.statistics.testing import holm, mcnemar, permutation

_DIGITS = 10


@dataclass(frozen=True, slots=True)
class _Answer:
    """Whether it is right, as pairs are made of it."""

    scores: Mapping[str, float | None]
    answerable: bool = True
    outcome: Outcome = "answered"


def joint_of(cells: Sequence[Cell], cases: Cases, grouped: Grouped, seed: int) -> list[dict[str, Any]]:
    """A row for each cell that has a sibling over the gold alone, which is `evidence` in the row.

    Over the questions that are scored and judged in both and answerable in both; where no answer came, none is right.
    `both`, `lost` (right over the gold alone, not in the cell), `gained` (the other way round) and `neither` count
    them. `kept` is the share of those right over the gold alone that are right in the cell; `mended` the share of the
    cell's retrieval misses that are right over the gold alone, and `others` that share of its other questions: better
    retrieval is a cause only as far as `mended` exceeds what a model that is right now and then would have anyway. p is
    that of McNemar's exact test, or of the permutation test where questions share documents; `p_holm` is corrected over
    the rows.
    """
    rows = [_row(cell, evidence, cases, grouped, seed) for cell, evidence in _paired(cells)]
    corrected = holm([row["p"] for row in rows])
    return [{**row, "p_holm": _rounded(p)} for row, p in zip(rows, corrected, strict=True)]


def _paired(cells: Sequence[Cell]) -> list[tuple[str, str]]:
    """Each cell with its sibling over the gold alone; closed-book, whose rules are its own, with each that has it."""
    siblings = siblings_of(cells)
    of = {cell.id: [one] for cell in cells if (one := siblings[cell.id].evidence) is not None}
    for cell in cells:
        closed = siblings[cell.id].closed_book
        if gold_alone(cell) and not cell.change.moves and closed is not None:
            of.setdefault(closed, []).append(cell.id)
    return [(cell.id, one) for cell in cells for one in of.get(cell.id, ())]


def _row(cell: str, evidence: str, cases: Cases, grouped: Grouped, seed: int) -> dict[str, Any]:
    pairs = {question: (case, other) for question, case in cases[cell].items()
             if (other := cases[evidence].get(question)) is not None and _comparable(case) and _comparable(other)}
    counts = Counter((case.right, other.right) for case, other in pairs.values())
    both, lost, gained = counts[True, True], counts[False, True], counts[True, False]
    kept = {question: case.right for question, (case, other) in pairs.items() if other.right}
    missed = {question for question, (case, _) in pairs.items() if cause_of(case).name == "retrieval_miss"}
    mended, others = ({question: other.right for question, (_, other) in pairs.items() if (question in missed) is miss}
                      for miss in (True, False))
    return {"cell": cell, "evidence": evidence, "n": len(pairs), "both": both, "lost": lost, "gained": gained,
            "neither": counts[False, False], "kept": share(kept, grouped),
            "mended": share(mended, grouped), "others": share(others, grouped),
            "p": _rounded(_p(pairs, lost, gained, grouped, seed))}


def _comparable(case: Case) -> bool:
    return case.answerable and case.score is not None and not case.unjudged


def _p(pairs: Mapping[str, tuple[Case, Case]], lost: int, gained: int, grouped: Grouped,
       seed: int) -> float | None:
    if not pairs:
        return None
    if len({grouped.get(question, question) for question in pairs}) == len(pairs):
        return mcnemar(gained, lost)
    first, second = ({question: _Answer({"right": float(pair[side].right)}) for question, pair in pairs.items()}
                     for side in (1, 0))
    return permutation(pairs_of("right", first, second, grouped), seed)


def _rounded(p: float | None) -> float | None:
    return None if p is None else round(p, _DIGITS)
