"""Agreement between two raters of the same answers. Raters are judges, repeats of a judge, or people.

Agreement is measured by Cohen's kappa (1960), with quadratic weights (1968) for points, as in scikit-learn. For steps,
each step is one judgement, as in DetectiveQA's comparison of its judge with people (Table 4).
"""
from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from ragbed.experiments.analysis.view import View, make_figure
from ragbed.experiments.guests.rescoring.rejudge import JudgedAnswer, Rater
from ragbed.experiments.judges.judge import GRADES
from ragbed.experiments.judges.model_judge import MAX_POINTS
from ragbed.experiments.metrics import estimate_clustered_share
from ragbed.experiments.metrics.intervals import percentiles
from ragbed.experiments.metrics.sample import Totals, draw_resamples
from ragbed.experiments.question import Rubric
from ragbed.experiments.record import Verdict

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LABELS: Mapping[Rubric, tuple[str, ...]] = MappingProxyType({
    "grades": GRADES, "points": tuple(map(str, range(MAX_POINTS + 1))), "steps": ("held", "not held")})


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement of two raters: the share of equal judgements and kappa, with 95 % intervals. Wilson's interval of
    the share is clustered by question if a question has several judgements. That of kappa comes from resampling
    questions, and is None for one question, or if all resamples agree.
    """

    first: str
    second: str
    n: int  # number of answers that both judged
    judgements: int  # number of judgements: the answers, or their steps
    agree: float | None
    agree_low: float | None
    agree_high: float | None
    kappa: float | None  # None if undefined: without judgements, or if all have one label
    low: float | None
    high: float | None
    labels: tuple[str, ...]  # labels of the rows and columns of `table`
    table: tuple[tuple[int, ...], ...]  # judgements by the first rater's label (rows) and the second's (columns)


def measure_agreement(raters: Sequence[Rater], rubric: Rubric, steps: Mapping[JudgedAnswer, int],
               seed: int = 0) -> list[Agreement]:
    """Measure the agreement of every two raters, in order. `steps` has the number of steps, for the rubric `steps`."""
    return [_agreement(first, second, rubric, steps, seed) for first, second in itertools.combinations(raters, 2)]


def _agreement(first: Rater, second: Rater, rubric: Rubric, steps: Mapping[JudgedAnswer, int], seed: int) -> Agreement:
    import numpy as np

    labels, quadratic = LABELS[rubric], rubric == "points"
    n, judged = 0, dict[str, list[tuple[int, int]]]()  # by question: indexes of the two raters' labels
    for item, verdict in first.verdicts.items():
        other = second.verdicts.get(item)
        if other is not None and not (verdict.unjudged or other.unjudged):
            n += 1
            sides = (_places(one, steps.get(item, 0)) for one in (verdict, other))
            judged.setdefault(item[1], []).extend(zip(*sides, strict=True))
    pairs = [(question, *pair) for question, own in judged.items() for pair in own]
    tables = np.zeros((len(judged), 2, len(labels), len(labels)))
    for place, own in enumerate(judged.values()):
        for pair in own:
            tables[(place, 0, *pair)] += 1
    whole = tables[:, 0].sum(axis=0)
    equal = estimate_clustered_share([one == other for _, one, other in pairs], [question for question, *_ in pairs])
    kappa, low, high = float(cohen_kappas(whole[None], quadratic)[0]), None, None
    if len(judged) > 1:  # interval over the resamples in which kappa is defined
        drawn, = draw_resamples([Totals(tables, np.ones_like(tables))], seed)
        low, high = percentiles(cohen_kappas(drawn.sums[:, 0], quadratic))
    if low is None or high is None or low >= high:
        low = high = None
    else:
        low, high = round(low, 10), round(high, 10)
    return Agreement(
        first.name, second.name, n, len(pairs), equal["mean"], equal["low"], equal["high"],
        None if math.isnan(kappa) else round(kappa, 10), low, high, labels,
        tuple(tuple(map(int, row)) for row in whole))


def _places(verdict: Verdict, steps: int) -> list[int]:
    if verdict.grade is not None:
        return [GRADES.index(verdict.grade)]
    if verdict.points is not None:
        return [verdict.points]
    return [int(step not in (verdict.steps or ())) for step in range(steps)]


def cohen_kappas(tables: Floats, quadratic: bool) -> Floats:
    """Compute Cohen's kappa of each table of counts (tables by labels by labels); nan if undefined."""
    import numpy as np

    count = tables.shape[1]
    distance = np.abs(np.subtract.outer(np.arange(count), np.arange(count))).astype(np.float64)
    weights = distance**2 if quadratic else np.minimum(distance, 1.0)
    expected = tables.sum(axis=2)[:, :, None] * tables.sum(axis=1)[:, None, :]
    chance = (weights * expected).sum(axis=(1, 2))
    seen = (weights * tables).sum(axis=(1, 2)) * tables.sum(axis=(1, 2))
    ratio: Floats = np.divide(seen, chance, out=np.full_like(seen, np.nan), where=chance > 0)
    return 1 - ratio


def krippendorff_alpha(units: Iterable[Sequence[Hashable]]) -> float | None:
    """Compute Krippendorff's alpha for nominal labels ("Content Analysis", 2004, section 11.3) of two or more raters,
    who need not label everything. Return None if all labels are the same, or no unit has two.

    Args:
        units: the labels of each unit.
    """
    labels, disagreement = Counter[Hashable](), 0.0
    for unit in units:
        if len(unit) > 1:
            own = Counter(unit)
            labels += own
            disagreement += (len(unit) ** 2 - sum(count**2 for count in own.values())) / (len(unit) - 1)
    n = labels.total()
    by_chance = n**2 - sum(count**2 for count in labels.values())
    return 1 - (n - 1) * disagreement / by_chance if by_chance else None


def agreement_view(found: Sequence[Agreement], rubric: Rubric, answers: int) -> View:
    """Return a view of the agreement of every two raters. `answers` is the number of answers to grade."""
    steps = rubric == "steps"
    kappa_of = "kappa, quadratic weights" if rubric == "points" else "kappa"
    rows = tuple((one.first, one.second, one.n, *([one.judgements] if steps else []),
                  make_figure(one.agree, one.agree_low, one.agree_high, one.n),
                  make_figure(one.kappa, one.low, one.high, one.n)) for one in found)
    notes = ("Kappa is undefined if two raters gave only one label, or have no answer in common.",
             ) if any(one.kappa is None for one in found) else ()
    return View("agreement", f"Agreement on {answers} answers", (
        "first", "second", "n", *(["steps"] if steps else []), "agree", kappa_of), rows, 2, notes=notes)
