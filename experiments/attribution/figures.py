"""What a run's summary says of causes: their shares in every cell, and what else the conditions tell."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.types import Outcome
from experiments.attribution.case import Case
from experiments.attribution.cases import Cases, cases_of
from experiments.attribution.causes import CAUSES, cause_of
from experiments.attribution.joint import joint_of
from experiments.attribution.notes import notes_of, on_chance, on_mended
from experiments.attribution.shares import Grouped, share
from experiments.attribution.tradeoff import tradeoff_of
from experiments.cells import Cell
from experiments.metrics.aggregate import Estimate, aggregate, share_among
from experiments.metrics.scored import Scoring
from experiments.question import Question
from experiments.record import Result
from experiments.scheme import Scheme
from experiments.settings.sweeps import NO_SWEEPS, Sweeps


@dataclass(frozen=True, slots=True)
class _Found:
    """The recall of all that was shown, for averaging."""

    scores: Mapping[str, float | None]
    answerable: bool = True
    outcome: Outcome = "answered"


def figures_of(cells: Sequence[Cell], results: Iterable[Result], questions: Mapping[str, Question], scheme: Scheme,
               scoring: Scoring, grouped: Grouped, seed: int, sweeps: Sweeps = NO_SWEEPS) -> dict[str, Any]:
    """The summary's `attribution` and `tradeoff`.

    Args:
        results: of these cells, with their scores; their traces are not needed.
        grouped: by question, its cluster.
    """
    cases = cases_of(cells, results, questions, scheme, scoring)
    return {"attribution": attribution_of(cells, cases, questions, scheme, grouped, seed),
            "tradeoff": tradeoff_of(cells, cases, grouped, sweeps)}


def attribution_of(cells: Sequence[Cell], cases: Cases, questions: Mapping[str, Question], scheme: Scheme,
                   grouped: Grouped, seed: int) -> dict[str, Any] | None:
    """The summary's `attribution`; None where the benchmark has no notion of a right answer.

    Of each cell, beside the shares of the causes: `known`, the share of its right answers that are right closed-book
    too; `gold_whole`, the share of the answerable questions with named gold that had all of it in view; `gold_found`,
    the mean share of it that was; `abstained`, the share of the retrieval misses that were refused.
    """
    if scheme.right is None:
        return None
    joint = joint_of(cells, cases, grouped, seed)
    return {"metric": scheme.right,
            "causes": [{"name": one.name, "title": one.title, "definition": one.definition} for one in CAUSES],
            "cells": [_row(cell, cases[cell.id], grouped, seed) for cell in cells],
            "joint": joint,
            "notes": [*notes_of(cells, cases, questions), *on_chance(cases, joint), *on_mended(joint)]}


def _row(cell: Cell, cases: Mapping[str, Case], grouped: Grouped, seed: int) -> dict[str, Any]:
    causes, together = [cause_of(case) for case in cases.values()], [grouped.get(name, name) for name in cases]
    named = {question: case for question, case in cases.items()
             if case.answerable and case.gold is not None and not case.closed_book}
    known = {question: case.known for question, case in cases.items() if case.right and case.known is not None}
    return {"cell": cell.id, "n": len(cases),
            "causes": {one.name: share_among([cause is one for cause in causes], together) for one in CAUSES},
            "known": share(known, grouped),
            "gold_whole": share({question: case.in_view for question, case in named.items()}, grouped),
            "gold_found": _found(named, grouped, seed),
            "abstained": share({question: case.refused for question, case in cases.items()
                                if cause_of(case).name == "retrieval_miss"}, grouped)}


def _found(cases: Mapping[str, Case], grouped: Grouped, seed: int) -> Estimate:
    rows = [_Found({"recall": case.found / case.gold}) for case in cases.values() if case.gold]
    together = [grouped.get(question, question) for question in cases]
    return aggregate(rows, seed=seed, clusters=together)["recall"] if rows else share({}, grouped)
