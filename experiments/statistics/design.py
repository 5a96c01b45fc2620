"""The design matrix of a run's cells: sum-coded factors and their interactions, and what of them can be estimated."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from experiments.metrics.means import Floats

Levels = Mapping[str, str | None]
Term = tuple[str, ...]  # a factor, or two that interact
_NOTHING = 1e-9


@dataclass(frozen=True, slots=True)
class Design:
    """Cells as rows of levels, and the terms of the model: an intercept, factors, interactions of two.

    A factor of k levels has k - 1 columns, in which its effects add up to zero. Where it has no effect in a cell, all
    its columns are 0 there: the cell stands at the mean of the levels. An interaction's columns are products.

    Attributes:
        cells: the level of each factor; None where it has no effect.
        levels: of each factor that varies, in the order in which they occur.
    """

    cells: tuple[Levels, ...]
    levels: Mapping[str, tuple[str, ...]]
    terms: tuple[Term, ...]

    @property
    def crossed(self) -> bool:
        """Whether every combination of the levels is a cell; closed-book, factors without an effect leave some out."""
        return {tuple(cell.values()) for cell in self.cells}.issuperset(product(*self.levels.values()))

    def row(self, cell: Levels) -> Floats:
        """The columns of a cell, which need be none of the design's."""
        import numpy as np

        codes = [[self._code(name, cell[name]) for name in term] for term in self.terms]
        return np.concatenate([np.ones(1), *(np.outer(one[0], one[-1]).ravel() if len(one) == 2 else one[0]
                                             for one in codes)])

    def matrix(self) -> Floats:
        """Cells by columns."""
        import numpy as np

        return np.array([self.row(cell) for cell in self.cells])

    def rank(self) -> int:
        import numpy as np

        return int(np.linalg.matrix_rank(self.matrix()))

    def means(self, names: Term) -> Floats:
        """The contrasts that give the marginal mean of each level, or of each combination of the levels of two
        factors: combinations by columns. Every combination of the other factors that occurs counts once."""
        import numpy as np

        having = [cell for cell in self.cells if all(cell[name] is not None for name in names)]
        others = {tuple((name, level) for name, level in cell.items() if name not in names) for cell in having}
        return np.array([np.mean([self.row({**dict(rest), **dict(zip(names, at, strict=True))})
                                  for rest in sorted(others, key=str)], axis=0) for at in self.combinations(names)])

    def combinations(self, names: Term) -> list[tuple[str, ...]]:
        """Of the levels, as the rows of `means`."""
        return list(product(*(self.levels[name] for name in names)))

    def effects(self, names: Term) -> Floats:
        """The contrasts of the effects: how far each mean is from what the rest says. Of a factor, from the mean of
        its levels; of two, from what both say when added."""
        import numpy as np

        sizes = [len(self.levels[name]) for name in names]
        centred = self.means(names).reshape(*sizes, -1)
        for axis in range(len(names)):
            centred = centred - centred.mean(axis=axis, keepdims=True)
        return np.asarray(centred.reshape(-1, centred.shape[-1]))

    def tells(self, names: Term) -> bool:
        """Whether the cells determine the means and effects of the term: all are sums of the cells' rows."""
        import numpy as np

        matrix = self.matrix()
        wanted = np.vstack([self.means(names), self.effects(names)])
        return bool(np.abs(wanted - wanted @ np.linalg.pinv(matrix) @ matrix).max(initial=0.0) < _NOTHING)

    def _code(self, name: str, level: str | None) -> Floats:
        import numpy as np

        among = self.levels[name]
        code = np.zeros(len(among) - 1)
        if level == among[-1]:
            code -= 1
        elif level is not None:
            code[among.index(level)] = 1
        return code


def varying(cells: Sequence[Levels], factors: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The levels of each factor that has several, in the order in which they occur."""
    levels = {name: tuple(dict.fromkeys(level for cell in cells if (level := cell[name]) is not None))
              for name in factors}
    return {name: among for name, among in levels.items() if len(among) > 1}


def design_of(cells: Sequence[Levels], factors: Sequence[str], interactions: bool = True) -> Design:
    """The design with every factor that varies, and every interaction that the cells can tell from the rest: one is
    left out, and taken for none, where combinations of levels are missing."""
    levels = varying(cells, factors)
    kept = tuple({name: cell[name] for name in levels} for cell in cells)
    design = Design(kept, levels, tuple((name,) for name in levels))
    rank = design.rank()
    for pair in combinations(levels, 2) if interactions else ():
        wider = replace(design, terms=(*design.terms, pair))
        columns = (len(levels[pair[0]]) - 1) * (len(levels[pair[1]]) - 1)
        if wider.rank() == rank + columns:
            design, rank = wider, rank + columns
    return design
