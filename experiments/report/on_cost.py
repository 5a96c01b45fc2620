"""What quality costs, in sentences."""
from __future__ import annotations

from experiments.report.cells import Cell, Table
from experiments.report.comparisons import Comparisons
from experiments.report.cost import Cost, front
from experiments.report.on_quality import both_p
from experiments.report.standing import cheapest, leaders, standing
from experiments.report.words import listed, portion


def on_cost(table: Table, cost: Cost, tested: Comparisons | None) -> list[str]:
    """The cheapest cell that is not really different from the best one, and the Pareto front.

    Args:
        table: the cells that compete.
    """
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
    least = cheapest(standing(best, tested), cost)
    if least is None:
        return ""
    cell, lower = least.other(best), least.beyond(best) or 0.0
    kind = "different on its own, not after the correction" if least.alone else "no difference is seen"
    return (f"For {portion(cost.share(cell, best), f'the {cost.what}')}, {cost.words(cost.of[cell.id])} against "
            f"{cost.full(cost.of[best.id])}, {cell.label} is {abs(lower):z.2f} {'lower' if lower >= 0 else 'higher'} "
            f"than {best.label}: {kind} ({both_p(least)}).")


def _range(known: list[Cell], cost: Cost) -> str:
    least, most = (end(known, key=lambda cell: cost.of[cell.id]) for end in (min, max))
    return (f"The dearest, {most.label}, takes {1 / cost.share(least, most):,.1f} times as much as the cheapest, "
            f"{least.label}: {cost.words(cost.of[most.id])} against {cost.full(cost.of[least.id])}.")
