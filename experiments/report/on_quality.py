"""Which cell is best, what it beats, and what is not settled, in sentences."""
from __future__ import annotations

from collections.abc import Sequence

from experiments.report.cells import Figure, Table
from experiments.report.comparisons import Comparisons, Pair
from experiments.report.contenders import setting_of
from experiments.report.cost import Cost
from experiments.report.standing import Standing, cheapest, figures, leaders, standing
from experiments.report.words import column_words, interval, listed, metric_words, plural, portion
from experiments.statistics.power import ALPHA, POWER

_NAMED = 4  # cells that a sentence names


def headline(table: Table, tested: Comparisons | None, cost: Cost) -> str:
    """The best cell, and how far that is certain.

    Args:
        table: the cells that compete.
    """
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


def on_quality(table: Table, tested: Comparisons | None) -> list[str]:
    """The best cell against each cell that differs from it in one factor."""
    best = leaders(table)
    if len(best) != 1 or len(table.cells) == 1 or tested is None:
        return []
    found = standing(best[0], tested)
    said = [f"Really better than {_by(found, found.below)}."] if found.below else []
    if found.alone:
        said.append(f"Different on its own, but not after the correction for {tested.many}, from "
                    f"{_by(found, found.alone, tests=True)}.")
    if found.level:
        said += [f"No difference is seen from {_by(found, found.level)}.", _detectable(found.level)]
    if found.above:
        said.append(f"Over the questions that both have, {_by(found, found.above)} is really better.")
    untested = len(figures(table)) - 1 - found.tested
    if found.tested and untested:
        said.append(f"{plural(untested, 'further cell')} {'was' if untested == 1 else 'were'} not tested against it, "
                    "differing in more than one factor.")
    return said


def on_differences(tested: Comparisons | None) -> list[str]:
    """What the words for differences mean, and how many there are of each between all cells."""
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
    """The mean with its interval."""
    between = interval(figure.low, figure.high)
    return f"{figure.mean or 0.0:z.2f}" + (f" {between}" if between else "")


def both_p(pair: Pair) -> str:
    """The test's p, and after the correction."""
    return f"p {pair.p}" if pair.tested.p == pair.tested.p_holm else f"p {pair.p}, corrected {pair.p_holm}"


def _against(found: Standing, tested: Comparisons | None, cost: Cost) -> str:
    """The end of the headline: what the best cell beats, and what is the best choice beside it."""
    if tested is None:
        return ". Whether that is a real difference was not tested: ragbed compare does."
    if found.tested == 0:
        return ". No cell was tested against it: none differs from it in one factor alone."
    beaten = f", better by paired tests than {_beaten(found)}" if found.below else ""
    if found.above:
        return f"{beaten}; over the questions that both have, {found.others(found.above)[0].label} is better."
    return f"{beaten}{_beside(found, cost)}."


def _beaten(found: Standing) -> str:
    named = [cell.label for cell in found.others(found.below)]
    if len(named) == found.tested:
        return named[0] if len(named) == 1 else f"each of the other {len(named)}"
    return f"{len(named)} of the other {found.tested}"


def _beside(found: Standing, cost: Cost) -> str:
    """The cheapest of those that are not settled, where it costs clearly less; else the nearest."""
    cheaper = cheapest(found, cost)
    pair = cheaper or next(iter(found.unsettled), None)
    if pair is None:
        return ""
    price = f", at {portion(cost.share(pair.other(found.cell), found.cell), f'its {cost.what}')}," if cheaper else ""
    lower = pair.beyond(found.cell) or 0.0
    way = f"{abs(lower):z.2f} {'lower' if lower > 0 else 'higher over the questions that both have'}"
    open_ = "which {} cannot settle" if pair.alone else "a difference that chance may make over {}"
    return f"; {pair.other(found.cell).label}{price} is {way}, {open_.format(plural(pair.tested.n, 'question'))}"


def _by(found: Standing, pairs: Sequence[Pair], tests: bool = False) -> str:
    """The other cells of the pairs, each with the difference and its interval, and with p where asked."""
    named = [f"{pair.other(found.cell).label} ({_beyond(found, pair)}{f', {both_p(pair)}' if tests else ''})"
             for pair in pairs[:_NAMED]]
    more = len(pairs) - _NAMED
    return listed(named, _NAMED) if more <= 0 else f"{', '.join(named)} and {more} more, in the table of comparisons"


def _beyond(found: Standing, pair: Pair) -> str:
    bounds = pair.bounds(found.cell)
    between = f" [{bounds[0]:+z.2f}, {bounds[1]:+z.2f}]" if bounds else ""
    return f"{pair.beyond(found.cell) or 0.0:+z.2f}{between}"


def _detectable(pairs: Sequence[Pair]) -> str:
    """How large a difference would have had to be."""
    sizes = sorted(size for pair in pairs if (size := pair.tested.smallest) is not None and size <= 1)
    if not sizes:
        return "So few questions could show no difference."
    least, most = f"{sizes[0]:z.2f}", f"{sizes[-1]:z.2f}"
    needed = least if least == most else f"{least} to {most}"
    return f"So many questions would show a true difference of {needed} with a probability of {100 * POWER:.0f} %."


def _none(count: int) -> str:
    return f"{count:,}" if count else "none"
