"""Sample: the scores of a set, summed by what is drawn as a whole."""
from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from agents.types import Outcome
from experiments.metrics.bootstrap import together
from experiments.metrics.bounds import effective, room, weight
from experiments.metrics.catalogue import GROUPS, METRICS
from experiments.metrics.means import among
from experiments.metrics.metric import cut_of, family_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from experiments.metrics.means import Floats

_PLACES = {name: place for place, name in enumerate(METRICS)}


class ScoredRow(Protocol):
    """A scored question."""

    @property
    def answerable(self) -> bool: ...
    @property
    def scores(self) -> Mapping[str, float | None]: ...
    @property
    def outcome(self) -> Outcome: ...


@dataclass(frozen=True, slots=True)
class Sample:
    """Scores by unit: a question, or all questions of a cluster.

    Attributes:
        names: of `names_of`.
        sums, counts: arrays of units by splits (answerable, unanswerable) by names: of the scores, and of the
            questions that have one.
        shares: the names that are shares, of which every question has 0 or 1: a mean over repeats may be between.
    """

    names: Sequence[str]
    sums: Floats
    counts: Floats
    shares: frozenset[str]

    @property
    def sizes(self) -> dict[str, tuple[int, int]]:
        """By name, how many questions of each split have it."""
        total = self.counts.sum(axis=0)
        return {name: (int(total[0, at]), int(total[1, at])) for at, name in enumerate(self.names)}

    @property
    def together(self) -> bool:
        """Whether the splits share units."""
        return together(self.counts)

    def units(self, name: str) -> float:
        """How many units have it, as they weigh."""
        counts = self.counts[:, :, self.names.index(name)].sum(axis=1)
        return weight(counts) if counts.any() else 0.0

    def worth(self, name: str) -> float:
        """How many independent questions a share is of."""
        at = self.names.index(name)
        sums, counts = (array[:, :, at].sum(axis=1) for array in (self.sums, self.counts))
        if counts.max() <= 1:
            return float(counts.sum())
        return effective(sums[counts > 0], counts[counts > 0])

    def corners(self) -> tuple[Floats, Floats]:
        """The totals six times: first where little spread leaves room (`bounds.room`), one split's as low as that
        allows and then the other's, and each as high; then all as low, and as high, as scores can be."""
        import numpy as np

        low, high = ranges_of(self.names)
        down, up = room(self.sums, self.counts, low, high)
        total, counts = self.sums.sum(axis=0), self.counts.sum(axis=0)
        ends = [np.multiply(end, counts, out=np.zeros_like(total), where=counts > 0) for end in (low, high)]
        moved = np.stack([total] * 4 + ends)
        for split in (0, 1):
            moved[split, split] -= down[split] * counts[split]
            moved[split + 2, split] += up[split] * counts[split]
        return moved, np.stack([counts] * 6)


def sample_of(rows: Sequence[ScoredRow], clusters: Sequence[str] | None = None) -> Sample:
    """The rows, the same in whichever order they come.

    Args:
        clusters: of each row; without, or where no two share one, every row is a unit.
    """
    import numpy as np

    names = names_of(rows)
    own = [name for name in names if "&" not in name]  # they come first, and None is nan
    table = np.array([[row.scores.get(name) for name in own] for row in rows], dtype=np.float64)
    joint = np.array([[score_of(row, name) for name in names[len(own):]] for row in rows], dtype=np.float64)
    table = np.hstack([table.reshape(len(rows), len(own)), joint.reshape(len(rows), len(names) - len(own))])
    split = np.array([not row.answerable for row in rows], dtype=np.intp)
    order = np.lexsort((*table.T[::-1], split))
    table, split = table[order], split[order]
    units = np.arange(len(rows))
    if clusters is not None and len(set(clusters)) < len(rows):
        units = np.unique(clusters, return_inverse=True)[1][order]
    mask = np.isfinite(table)
    sums, counts = (_by_unit(array, units, split) for array in (np.where(mask, table, 0.0), mask.astype(np.float64)))
    if len(sums) < len(rows):
        order = np.lexsort([*sums.reshape(len(sums), -1).T[::-1], *counts.reshape(len(sums), -1).T[::-1]])
        sums, counts = sums[order], counts[order]
    shares = {name for name, values in zip(names, table.T, strict=True)
              if (known := METRICS.get(family_of(name))) is not None and known.share
              and np.isin(values[np.isfinite(values)], (0, 1)).all()}
    return Sample(names, sums, counts, frozenset(shares))


def _by_unit(values: Floats, units: NDArray[np.intp], split: NDArray[np.intp]) -> Floats:
    import numpy as np

    found = np.zeros((int(units.max(initial=-1)) + 1, 2, values.shape[1]))
    np.add.at(found, (units, split), values)
    return found


def place(name: str) -> tuple[int, int, str]:
    """Where a metric stands among others: in the order of the groups, and of the metrics in each."""
    return _PLACES.get(family_of(name), len(_PLACES)), cut_of(name), name


def names_of(rows: Iterable[ScoredRow]) -> list[str]:
    """What figures rest on: the metrics of the questions, and (`among`) several together."""
    own = sorted({name for row in rows for name in row.scores}, key=place)
    return [*own, *(among(name, group.together) for group in GROUPS.values() for name in group.together
                    if set(group.together) <= set(own))]


def score_of(row: ScoredRow, name: str) -> float:
    """The row's score by a name of `names_of`; nan where it has none, or lacks another that the name has with it."""
    if "&" not in name:
        score = row.scores.get(name)
        return math.nan if score is None else score
    scores = [row.scores.get(part) for part in name.split("&")]
    return math.nan if None in scores or scores[0] is None else scores[0]


def range_of(name: str, answerable: bool = True) -> tuple[float, float]:
    """The bounds of a question's score, by a name of `names_of`: infinite where there is none, nan of what is no
    metric."""
    known = METRICS.get(family_of(name.partition("&")[0]))
    if known is None:
        return math.nan, math.nan
    low = known.low if answerable or known.low_unanswerable is None else known.low_unanswerable
    return low, math.inf if known.high is None else known.high


def ranges_of(names: Sequence[str]) -> tuple[Floats, Floats]:
    """The lower and the upper bounds of the scores, splits by names."""
    import numpy as np

    bounds = np.array([[range_of(name, answerable) for name in names] for answerable in (True, False)])
    low, high = bounds.reshape(2, -1, 2).transpose(2, 0, 1)
    return low, high
