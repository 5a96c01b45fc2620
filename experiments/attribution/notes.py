"""What a reader of a run's attribution has to know, in sentences."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from experiments.attribution.case import Case
from experiments.attribution.cases import Cases
from experiments.attribution.causes import cause_of
from experiments.cells import Cell
from experiments.question import Question
from experiments.statistics.power import ALPHA


def notes_of(cells: Sequence[Cell], cases: Cases, questions: Mapping[str, Question]) -> list[str]:
    """What the run lacks for a cause to be told, and how answers were counted."""
    every = [case for of_cell in cases.values() for case in of_cell.values()]
    return [*_on_partial(every), *_on_lacking(cells, every), *_on_gold(cells, cases, questions), *_on_coarse(every)]


def _on_partial(every: Sequence[Case]) -> Iterator[str]:
    partial = sum(case.score is not None and 0 < case.score < 1 for case in every)
    if partial:
        yield f"{partial} of {len(every)} answers are partially correct: they count as wrong here, each with its cause."


def _on_lacking(cells: Sequence[Cell], every: Sequence[Case]) -> Iterator[str]:
    """Which condition would tell what is left open."""
    conditions = {cell.condition for cell in cells}
    names = [cause_of(case).name for case in every]
    if (untold := names.count("wrong_in_view")) and "evidence" not in conditions:
        yield (f"{untold} answers are wrong with the gold in view. Whether other passages distracted or the reasoning "
               "failed cannot be told without the gold alone: add `evidence` to the conditions.")
    if (guessed := names.count("unsupported")) and "closed-book" not in conditions:
        yield (f"{guessed} answers are right without gold in view. Whether from memory cannot be told without "
               "asking closed-book: add `closed-book` to the conditions.")


def _on_gold(cells: Sequence[Cell], cases: Cases, questions: Mapping[str, Question]) -> Iterator[str]:
    """Whose gold is not named, and whose is nowhere to be found."""
    unnamed = sum(question.answerable and not question.gold for question in questions.values())
    if unnamed:
        yield (f"{unnamed} of {len(questions)} questions are answerable and name no gold evidence: what is wrong there "
               "is neither retrieval's nor reasoning's for certain.")
    alone = [case for cell in cells for case in cases[cell.id].values() if case.gold_alone and case.answerable]
    short = sum(case.gold is not None and not case.in_view for case in alone)
    if short:
        yield (f"Under `evidence` {short} of {len(alone)} answers were given without all of the gold that is named, "
               "since not all of it is where evidence is taken from: wrong ones count as retrieval misses there too.")


def _on_coarse(every: Sequence[Case]) -> Iterator[str]:
    coarse, found = sum(case.coarse for case in every), sum(case.found > 0 for case in every)
    if coarse:
        yield (f"For {coarse} of the {found} answers with gold in view it was matched by document or page alone: a "
               "passage counts as gold there whether or not it states the answer.")


def on_mended(joint: Sequence[Mapping[str, Any]]) -> list[str]:
    """That retrieval misses which are right over the gold alone may be so by chance.

    Args:
        joint: rows of `experiments.attribution.joint`.
    """
    some = any(row["mended"]["mean"] for row in joint)
    return ["Retrieval misses that are right over the gold alone show what better retrieval could mend at most: a "
            "model that is right now and then, whatever it is shown, is right there as often. So it may be with what "
            "stays right. `ragbed attribute` shows beside them how often the cells' other questions are right over the "
            "gold alone."] if some else []


def on_chance(cases: Cases, joint: Sequence[Mapping[str, Any]]) -> list[str]:
    """That a model which is right now and then, whatever it is shown, looks distracted.

    Args:
        joint: rows of `experiments.attribution.joint`.
    """
    told = [row for row in joint if any(cause_of(case).name == "distracted" for case in cases[row["cell"]].values())]
    chance = sum(row["p_holm"] is None or row["p_holm"] >= ALPHA or row["lost"] <= row["gained"] for row in told)
    return [f"`distracted` may be chance in {chance} of {len(told)} cells that have it and are paired with the gold "
            "alone: questions that are right over the gold alone only are not clearly more there than those that are "
            "right in the cell only (`ragbed attribute` shows the pairs)."] if chance else []
