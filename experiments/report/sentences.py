"""Sentences on quality: which cell is best and what it beats, the best of each part, ceiling and floor. They claim no
more than the paired tests allow, corrected for their number."""
from __future__ import annotations

from collections.abc import Sequence

from ragbed.experiments.report.cells import Figure, ReportCell, Table, crossed, level_of
from ragbed.experiments.report.competition import (
    CellCosts,
    CellPair,
    CellPairs,
    Standing,
    cheapest,
    figures,
    leaders,
    standing,
)
from ragbed.experiments.report.entrants import in_words, rank, setting_of
from ragbed.experiments.statistics import ALPHA, POWER
from ragbed.experiments.words import UNKNOWN, column_words, difference, interval, listed, metric_words, plural, portion

_MOST = 6  # sentences


def on_parts(table: Table, tested: CellPairs | None) -> list[str]:
    """Return a sentence for each level of the second of two crossed factors, conditions in the order in which they
    compete; none where a third factor varies."""
    factors = crossed(table)
    if factors is None or tested is None or len(table.varying) > 2 or len(table.judges) > 1:
        return []
    parts: dict[str, list[ReportCell]] = {}
    for cell in table.cells:
        parts.setdefault(level_of(cell, factors[1]), []).append(cell)
    several = [(_called(factors[1], level), cells) for level, cells in parts.items() if len(cells) > 1]
    if factors[1] == "condition":
        several.sort(key=lambda part: rank(part[1][0].factors.get("condition") or ""))
    return [f"{words}: {_best(cells, factors[0], table, tested)}." for words, cells in several
            ] if 1 < len(several) <= _MOST else []


def _called(factor: str, level: str) -> str:
    return in_words(level) if factor == "condition" else f"{factor.capitalize()} {level}"


def _best(cells: Sequence[ReportCell], factor: str, table: Table, tested: CellPairs) -> str:
    best = leaders(table, cells)
    if not best:
        return "no figure"
    mean = f"{figures(table)[best[0].id].mean or 0.0:z.2f}"
    if len(best) > 1:
        return f"{listed([level_of(cell, factor) for cell in best])} alike, {mean}"
    found = standing(best[0], tested, factor)
    parts = [(words, [level_of(pair.first, factor) for pair in pairs]) for words, pairs in
             (("really better than", found.below), ("different on its own from", found.alone),
              ("no difference seen from", found.level),
              ("really below, over the questions that both have,", found.above))]
    said = "; ".join(f"{words} {listed(names)}" for words, names in parts if names)
    return f"{level_of(best[0], factor)}, {mean}, {said or 'tested against none'}"


_NAMED = 4  # cells that a sentence names


def headline(table: Table, tested: CellPairs | None, cost: CellCosts) -> str:
    """Return the best of the cells that compete, and how far that is certain."""
    known = figures(table)
    metric = column_words(table.judges[0]) if len(table.judges) == 1 else metric_words(table.quality)
    if not known:
        return f"No {metric} could be computed." if metric else "The run has no scores."
    if len(table.judges) > 1:
        return f"The cells have different judges, so that their {metric} does not compare."
    best, *equal = leaders(table)
    mean, setting = mean_words(known[best.id]), setting_of(table)
    if len(table.cells) == 1:
        return (f"{setting}, {best.label} has a mean {metric} of {mean}, over {plural(known[best.id].n, 'question')}. "
                "No other cell competes with it.")
    if len(equal) + 1 == len(known) > 1:
        all_ = "both" if len(known) == 2 else f"all {len(known)}"
        return f"{setting}, {all_} cells have the same {metric}, {known[best.id].mean or 0.0:z.2f}: none is best."
    if equal:
        names = listed([best.label, *(cell.label for cell in equal)])
        unseen = "" if tested is None or tested.real else " No cell is really different from another."
        return f"{setting}, {names} share the highest {metric}, {known[best.id].mean or 0.0:z.2f}.{unseen}"
    return f"{setting}, {best.label} has the highest {metric}, {mean}{_against(standing(best, tested), tested, cost)}"


def on_quality(table: Table, tested: CellPairs | None) -> list[str]:
    """Return the best cell against each cell that differs from it in one factor."""
    best = leaders(table)
    if len(best) != 1 or len(table.cells) == 1 or tested is None:
        return []
    found = standing(best[0], tested)
    said = [f"Really better than {_by(found.below)}."] if found.below else []
    if found.alone:
        said.append(f"Different on its own, but not after the correction for {tested.many}, from "
                    f"{_by(found.alone, tests=True)}.")
    if found.level:
        said += [f"No difference is seen from {_by(found.level)}.", _detectable(found.level)]
    if found.above:
        said.append(f"Over the questions that both have, {_by(found.above)} is really better.")
    untested = len(figures(table)) - 1 - found.tested
    if found.tested and untested:
        said.append(f"{plural(untested, 'further cell')} {'was' if untested == 1 else 'were'} not tested against it, "
                    "differing in more than one factor.")
    return said


def on_differences(tested: CellPairs | None) -> list[str]:
    """Return what the words for differences mean, and how many there are of each between all cells."""
    if tested is None:
        return []
    rule = f"p < {ALPHA:g} in a paired test over the same questions"
    if tested.many == 1:
        return [f"Two cells are really different where {rule}."]
    unseen = tested.many - tested.real - tested.alone
    return [f"Two cells are really different where {rule} holds after Holm's correction for all {tested.many:,} "
            f"comparisons, and different on their own where it holds only before. Of the {tested.many:,}: "
            f"{_none(tested.real)} really different, {_none(tested.alone)} on their own, {_none(unseen)} without a "
            "difference that is seen."]


def mean_words(figure: Figure) -> str:
    """Return the mean with its interval."""
    between = interval(figure.low, figure.high)
    return f"{figure.mean or 0.0:z.2f}" + (f" {between}" if between else "")


def _against(found: Standing, tested: CellPairs | None, cost: CellCosts) -> str:
    """The end of the headline: what the best cell beats, and what is the best choice beside it."""
    if tested is None:
        return ". Whether that is a real difference was not tested: ragbed compare does."
    if found.tested == 0:
        return ". No cell was tested against it: none differs from it in one factor alone."
    many = len(found.below)
    named = f"{many} of the other {found.tested}" if many < found.tested else \
        found.below[0].first.label if many == 1 else f"each of the other {many}"
    beaten = f", better by paired tests than {named}" if many else ""
    if found.above:
        return f"{beaten}; over the questions that both have, {found.above[0].first.label} is better."
    return f"{beaten}{_beside(found, cost)}."


def _beside(found: Standing, cost: CellCosts) -> str:
    """The cheapest of those that are not settled, where it costs clearly less; else the nearest."""
    cheaper = cheapest(found, cost)
    pair = cheaper or next(iter(found.unsettled), None)
    if pair is None:
        return ""
    price = f", at {portion(cost.share(pair.first, found.cell), f'its {cost.what}')}," if cheaper else ""
    lower = pair.tested.difference or 0.0
    way = f"{abs(lower):z.2f} {'lower' if lower > 0 else 'higher over the questions that both have'}"
    open_ = "which {} cannot settle" if pair.alone else "a difference that chance may make over {}"
    return f"; {pair.first.label}{price} is {way}, {open_.format(plural(pair.tested.n, 'question'))}"


def _by(pairs: Sequence[CellPair], tests: bool = False) -> str:
    """The other cells of the pairs, each with the difference and its interval, and with p where asked."""
    named = [f"{pair.first.label} ({difference(pair.tested).removesuffix(f' {UNKNOWN}')}"
             f"{f', {pair.both_p}' if tests else ''})" for pair in pairs[:_NAMED]]
    more = len(pairs) - _NAMED
    return listed(named, _NAMED) if more <= 0 else f"{', '.join(named)} and {more} more, in the table of comparisons"


def _detectable(pairs: Sequence[CellPair]) -> str:
    sizes = sorted(size for pair in pairs if (size := pair.tested.smallest) is not None and size <= 1)
    if not sizes:
        return "So few questions could show no difference."
    least, most = f"{sizes[0]:z.2f}", f"{sizes[-1]:z.2f}"
    needed = least if least == most else f"{least} to {most}"
    return f"So many questions would show a true difference of {needed} with a probability of {100 * POWER:.0f} %."


def _none(count: int) -> str:
    return f"{count:,}" if count else "none"


_SAME = ("benchmark", "model", "reasoning", "show")
_BOUNDS = {"gold": ("With the gold alone (gold) {} reaches {}{}.", ", the ceiling"),
           "closed-book": ("Without any document (closed-book) {} reaches {}{}.", ", the floor")}


def on_bounds(table: Table, competing: Table) -> list[str]:
    """Return the best of the competing cells under `gold` and `closed-book`, as far as these do not compete."""
    best, known = leaders(competing), figures(table)
    rivals = {cell.id for cell in competing.cells}
    if not best or len(competing.cells) == len(table.cells):
        return []
    said: list[str] = []
    for condition, (sentence, name) in _BOUNDS.items():
        # what answers in the same way, without perturbation
        cell = next((cell for cell in table.cells if cell.factors.get("condition") == condition
                     and cell.factors.get("perturbation") is None
                     and all(cell.factors.get(name) == best[0].factors.get(name) for name in _SAME)), None)
        if cell is not None and cell.id in known and cell.id not in rivals:
            figure, own = known[cell.id], known[best[0].id]
            over = "" if figure.n == own.n else f" over {figure.n} of the {own.n} questions"
            beyond = ((figure.mean or 0.0) - (own.mean or 0.0)) * (1 if condition == "gold" else -1)
            said.append(sentence.format("the same" if not said else "it", mean_words(figure) + over,
                                        name if beyond > 0 else ""))
    return said
