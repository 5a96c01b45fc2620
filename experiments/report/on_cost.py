"""What quality costs, in sentences."""
from __future__ import annotations

from experiments.report.cells import Cell, Table
from experiments.report.comparisons import Comparisons
from experiments.report.cost import Cost, front
from experiments.report.standing import leaders, standing
from experiments.report.words import fraction, listed

_CHEAPER = 0.9  # of the best cell's cost, from which on less is worth a sentence


def on_cost(table: Table, cost: Cost, tested: Comparisons | None) -> list[str]:
    """The Pareto front, and the cheapest cell that cannot be told apart from the best one."""
    known = [cell for cell in table.cells if cell.id in cost.of]
    if len(known) < 2 or len({round(cost.of[cell.id], 10) for cell in known}) == 1:
        return []
    found = [_for_less(table, cost, tested), _range(known, cost)]
    best = front(table, cost)
    if best:
        found.append(f"On the Pareto front, where no other cell has a higher mean for as little: "
                     f"{listed([cell.label for cell in best], 6)}.")
    return [sentence for sentence in found if sentence]


def _for_less(table: Table, cost: Cost, tested: Comparisons | None) -> str:
    at_the_top = [cell for cell in leaders(table) if cell.id in cost.of]
    if len(at_the_top) != 1:
        return ""
    best = at_the_top[0]
    found = standing(best, tested)
    level = [cell for cell in found.others(found.level) if cell.id in cost.of]
    least = min(level, key=lambda cell: cost.of[cell.id], default=best)
    share = cost.of[least.id] / cost.of[best.id]
    if share > _CHEAPER:
        return ""
    of_what = "price" if cost.priced else "tokens"
    return (f"{least.label} cannot be told apart from {best.label} and takes {fraction(share)} of its {of_what}: "
            f"{cost.words(cost.of[least.id])} against {cost.full(cost.of[best.id])}.")


def _range(known: list[Cell], cost: Cost) -> str:
    least, most = (end(known, key=lambda cell: cost.of[cell.id]) for end in (min, max))
    ratio = cost.of[most.id] / cost.of[least.id]
    return (f"The dearest, {most.label}, takes {ratio:,.1f} times as much as the cheapest, {least.label}: "
            f"{cost.words(cost.of[most.id])} against {cost.full(cost.of[least.id])}.")
