"""DetectiveQA's win rate: how often the answer of one condition beats that of another (Table 6)."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any, Literal

from experiments.cells import FACTORS, called, level, varying
from experiments.metrics.aggregate import Estimate, share_among
from experiments.record import Result
from experiments.views.types import Material, Value, View

Ending = Literal["wins", "losses", "ties", "wrong in both"]

_CONDITIONS = ("evidence", "full", "given", "retrieved", "closed-book")
_FREE = ("condition", "retrieval", "retriever", "format")  # they go with the condition
_HEADER = ("wins", "losses", "ties", "wrong in both", "win rate")


def wins(material: Material) -> View | None:
    """Every pair of conditions of otherwise equal cells, question by question.

    A question's score is its answer, 0 or 1, and the share of the reference steps that its reasoning holds. Questions
    wrong in both are left out and counted; ties are shown apart; the rate is over the questions that either won.
    Evidence against the full context compares answers alone: evidence tells a reasoning what to hold.
    """
    rows: list[tuple[Value, ...]] = []
    unjudged: set[tuple[str, str]] = set()
    for first, second in _pairs([cell for cell in material.cells if "accuracy" in cell["metrics"]]):
        reasoning = {first["condition"], second["condition"]} != {"evidence", "full"}
        answers = _answers(material, first, second)
        endings = [_ending(*pair, reasoning) for pair in answers]
        unjudged.update((one.cell, one.question) for pair in answers for one in pair
                        if reasoning and one.scores.get("unjudged"))
        rows.append(_row(material, first, second, reasoning, Counter(endings), _rate(material, answers, endings)))
    if not rows:
        return None
    notes = [f"Reasonings that were not judged, and count as holding no step: {len(unjudged)}."] if unjudged else []
    return View("wins", "Win rate between conditions", ("conditions", "compared", "cell", "n", *_HEADER), tuple(rows),
                3, 8, ("The win rate is over wins and losses. Ties, and questions that both answer wrongly, stand "
                       "beside it.", *notes))


def _pairs(cells: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    for one, other in combinations(_CONDITIONS, 2):
        for first, second in product(*([cell for cell in cells if cell["condition"] == condition]
                                       for condition in (one, other))):
            if _comparable(first, second):
                yield first, second


def _comparable(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Whether they differ in the condition alone, and in what has no effect without documents."""
    closed = "closed-book" in (first["condition"], second["condition"])
    free = (*_FREE, "rules", "perturbation", "framing", "seed") if closed else _FREE
    return all(level(first, name) == level(second, name) for name in FACTORS if name not in free)


def _answers(material: Material, first: Mapping[str, Any], second: Mapping[str, Any]) -> list[tuple[Result, Result]]:
    others = {result.question: result for result in material.results[second["id"]]}
    return [(result, others[result.question]) for result in material.results[first["id"]]
            if result.question in others]


def _ending(first: Result, second: Result, reasoning: bool) -> Ending:
    if not first.scores.get("accuracy") and not second.scores.get("accuracy"):
        return "wrong in both"
    one, other = (_score(result, reasoning) for result in (first, second))
    return "ties" if one == other else "wins" if one > other else "losses"


def _score(result: Result, reasoning: bool) -> float:
    share = result.scores.get("reasoning_score") or 0.0
    return (result.scores.get("accuracy") or 0.0) + (share if reasoning else 0.0)


def _rate(material: Material, answers: Sequence[tuple[Result, Result]], endings: Sequence[Ending]) -> Estimate:
    """The share of wins among the wins and losses."""
    decided = [(ending == "wins", first) for (first, _), ending in zip(answers, endings, strict=True)
               if ending in ("wins", "losses")]
    return share_among([won for won, _ in decided], material.clusters_of(first for _, first in decided))


def _row(material: Material, first: Mapping[str, Any], second: Mapping[str, Any], reasoning: bool,
         endings: Counter[Ending], rate: Estimate) -> tuple[Value, ...]:
    return (f"{first['condition']} against {second['condition']}",
            "answers and reasoning" if reasoning else "answers alone", _called(material, first, second),
            endings.total(), endings["wins"], endings["losses"], endings["ties"], endings["wrong in both"], rate)


def _called(material: Material, first: Mapping[str, Any], second: Mapping[str, Any]) -> str:
    """What both are and other cells are not; the rules of closed-book cells follow from their condition."""
    factors = varying([cell for cell in material.cells if cell["condition"] != "closed-book"])
    shared = [name for name in factors if first.get(name) == second.get(name)]
    return called(first, shared) or called(first, ["reasoning"])
