"""What moves a run's figures, the wording of instructions or the questions, and strategies over all wordings."""
from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from ragbed.experiments.analysis.effects import table_of
from ragbed.experiments.analysis.variants import VARIED, Answers, CellRows, Variant, variants_of
from ragbed.experiments.analysis.view import View, figure_value
from ragbed.experiments.metrics import Scoring
from ragbed.experiments.metrics.intervals import Z
from ragbed.experiments.statistics import Clusters
from ragbed.experiments.statistics.components import components, difference
from ragbed.experiments.statistics.factorial import varying
from ragbed.experiments.words import figure, metric_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragbed.experiments.metrics.metric import Floats

_OTHERS = tuple(name for name in VARIED if name not in ("reasoning", "wording"))
_DIGITS = 10
_ON_VIEW = ("Wordings are a sample of all that an instruction could have, questions of all like them. Each row moves a "
            "score by this standard deviation; the rest is how a question suits a wording, and chance. With one "
            "wording each and these questions it moves the difference of two strategies by up to so much, either way, "
            "19 times out of 20.")


def wording_effects(rows: CellRows, answers: Answers, clusters: Clusters, metric: str,
                    scoring: Scoring = "corrected") -> list[dict[str, Any]]:
    """Return, for each combination of the other factors under which strategies were asked in the same wordings, two at
    least: the standard deviations of what moves the metric, and the strategies' differences over all wordings. Repeats
    and seeds are averaged over. Questions over one document count as one, moved as their mean is."""
    worded = [one for one in variants_of(rows, answers) if one.levels["wording"] is not None]
    others = tuple(varying([one.levels for one in worded], _OTHERS))
    apart: dict[tuple[str | None, ...], dict[tuple[str | None, str | None], Variant]] = defaultdict(dict)
    for one in worded:
        apart[tuple(map(one.levels.get, others))][one.levels["reasoning"], one.levels["wording"]] = one
    made = []
    for at, own in apart.items():
        strategies, every = (list(dict.fromkeys(levels)) for levels in zip(*own, strict=True))
        wordings = [one for one in every if all((name, one) in own for name in strategies)]
        _, table, split, groups, _ = table_of([own[name, one] for name in strategies for one in wordings], clusters,
                                              metric, scoring)
        if len(wordings) < 2 or len(set(groups)) < 3:
            continue
        scores = _by_unit(table, split, groups).reshape(len(strategies), len(wordings), -1)
        made.append({"metric": metric, "of": dict(zip(others, at, strict=True)), "strategies": strategies,
                     "wordings": len(wordings), "units": scores.shape[2], "questions": table.shape[1],
                     "components": {name: _rounded(one._asdict()) for name, one in components(scores).items()},
                     "differences": [{"first": strategies[first], "second": strategies[second],
                                      **_rounded(difference(scores, first, second))}
                                     for first, second in combinations(range(len(strategies)), 2)]})
    return made


def _rounded(figures: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, _DIGITS) for name, value in figures.items()}


def on_wordings(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return by how much wording alone moves a difference, of each that `wording_effects` made."""
    return [f"Wording alone moves the difference of two strategies in {metric_words(one['metric'])}"
            + (f" ({', '.join(map(str, one['of'].values()))})" if one["of"] else "")
            + f" by up to {figure(*_moved(one, 'wording'))} either way, in 19 of 20 choices of one wording for each; "
            f"as {one['wordings']} wordings of each tell." for one in found]


def wording_views(found: Sequence[Mapping[str, Any]] | None) -> list[View]:
    """Return views of what moves the metric, and of the strategies over all wordings."""
    if not found:
        return []
    metric, factors = metric_words(found[0]["metric"]), tuple(found[0]["of"])
    moved = [(*one["of"].values(), name, figure_value(*_deviation(one, name)),
              None if name == "question" else figure_value(*_moved(one, name)))
             for one in found for name in one["components"]]
    over = [(*one["of"].values(), pair["second"], pair["first"], one["questions"],
             figure_value(pair["difference"], pair["low"], pair["high"]))
            for one in found for pair in one["differences"]]
    views = [View("wordings", f"What moves {metric}: wordings, questions, strategies",
                  (*factors, "what varies", "standard deviation", "moves a difference by"), tuple(moved),
                  len(factors) + 1, notes=(_ON_VIEW,), section="Factors"),
             View("wordings:strategies", f"Strategies over all wordings, by {metric}",
                  (*factors, "strategy", "against", "n", "difference"), tuple(over), len(factors) + 2,
                  len(factors) + 3, signed=("difference",), section="Factors",
                  notes=("The intervals are of what other wordings and other questions would give too.",))]
    return [view for view in views if view.rows]


def _moved(one: Mapping[str, Any], name: str) -> tuple[float, float, float]:
    """By how much what varies moves a difference at most, 19 times out of 20."""
    return _deviation(one, name, Z * math.sqrt(2 if name == "wording" else 2 / one["units"]))


def _deviation(one: Mapping[str, Any], name: str, scale: float = 1.0) -> tuple[float, float, float]:
    mean, low, high = (scale * math.sqrt(one["components"][name][end]) for end in ("variance", "low", "high"))
    return mean, low, high


def _by_unit(table: Floats, split: NDArray[np.intp], groups: NDArray[np.intp]) -> Floats:
    """Scores, cells by clusters, whose means are the cells' figures: each cluster's is the figure moved by as much as
    its questions move it."""
    import numpy as np

    sizes = np.bincount(split, minlength=2)
    weights = 1 / (sizes[split] * np.count_nonzero(sizes))
    means = np.array([np.bincount(split, row, 2) for row in table]) / np.maximum(sizes, 1)
    units = int(groups.max()) + 1
    apart = np.array([np.bincount(groups, weights * row) for row in table - means[:, split]])
    return np.asarray((table @ weights)[:, None] + units * apart)
