"""Which cell is best, what it beats, and what cannot be told from it, in sentences."""
from __future__ import annotations

from collections.abc import Sequence

from experiments.report.cells import Cell, Figure, Table
from experiments.report.comparisons import Comparisons, Pair
from experiments.report.standing import Standing, figures, leaders, standing
from experiments.report.words import column_words, interval, listed, metric_words, plural
from experiments.statistics.power import ALPHA, POWER

_NAMED = 4  # cells that a sentence names


def headline(table: Table, tested: Comparisons | None) -> str:
    """One sentence, or two: the best cell, and how far that is certain."""
    known = figures(table)
    metric = column_words(table.judges[0]) if len(table.judges) == 1 else metric_words(table.quality)
    if not known:
        return f"No {metric} could be computed." if metric else "The run has no scores."
    if len(table.judges) > 1:
        return f"The cells have different judges, so that their {metric} does not compare."
    best, *equal = leaders(table)
    figure = known[best.id]
    if len(table.cells) == 1:
        return (f"{best.label}: {metric} {_words(figure)}, over {plural(figure.n, 'question')}. There is no second "
                "cell to compare it with.")
    if len(equal) + 1 == len(known) > 1:
        return f"All {len(known)} cells have the same {metric}, {figure.mean or 0.0:.2f}: none is best."
    if equal:
        names = listed([best.label, *(cell.label for cell in equal)])
        unseen = "" if tested is None or tested.real else " No cell can be told apart from another."
        return f"{names} share the highest {metric}, {figure.mean or 0.0:.2f}.{unseen}"
    return f"{best.label} has the highest {metric}, {_words(figure)}{_against(best, tested)}"


def on_quality(table: Table, tested: Comparisons | None) -> list[str]:
    """The best cell against each cell that differs from it in one factor."""
    best = leaders(table)
    if len(best) != 1 or len(table.cells) == 1 or tested is None:
        return []
    found = standing(best[0], tested)
    said = [f"It is better than {_by(found, found.below)}."] if found.below else []
    if found.level:
        said += [f"It cannot be told apart from {_by(found, found.level)}.", _detectable(found.level)]
    if found.above:
        said.append(f"Over the questions that both have, {_by(found, found.above)} is better.")
    untested = len(figures(table)) - 1 - found.tested
    if found.tested and untested:
        said.append(f"{plural(untested, 'further cell')} {'was' if untested == 1 else 'were'} not tested against it, "
                    "differing in more than one factor.")
    return said


def on_others(tested: Comparisons | None) -> list[str]:
    """How many differences there are between all cells, and what counts as one."""
    many = len(tested.rows) if tested else 0
    if tested is None or many == 0:
        return []
    rule = f"A difference is real where a paired test over the same questions has p < {ALPHA:g}"
    if many == 1:
        return [f"{rule}."]
    real = "None" if not tested.real else f"{tested.real:,}"
    return [f"{real} of {many:,} paired differences between cells {'are' if tested.real > 1 else 'is'} real. "
            f"{rule} after Holm's correction for all {many:,}."]


def _against(best: Cell, tested: Comparisons | None) -> str:
    """The end of the headline: how the best cell stands against those that it was tested against."""
    if tested is None:
        return ". Whether that is a real difference was not tested: ragbed compare does."
    found = standing(best, tested)
    beaten, whole = len(found.below), found.tested
    if whole == 0:
        return ". No cell was tested against it: none differs from it in one factor alone."
    if whole == 1 and not found.above:
        other = found.others(found.below or found.level)[0].label
        return f", and is really better than {other}." if beaten else f", but cannot be told apart from {other}."
    if beaten == whole:
        return f", and is really better than each of the {whole} cells that it was tested against."
    if whole == 1:
        return f", but is not really better than {found.others(found.above)[0].label}."
    if not beaten:
        return f", but is not really better than any of the {whole} cells that it was tested against."
    level = "the other" if len(found.level) == 1 else f"the other {len(found.level)}"
    rest = "" if found.above else f", not to be told apart from {level}"
    return f": really better than {beaten} of the {whole} cells that it was tested against{rest}."


def _by(found: Standing, pairs: Sequence[Pair]) -> str:
    """The other cells of the pairs, each with the difference and its interval."""
    named = [f"{pair.other(found.cell).label} ({_beyond(found.cell, pair)})" for pair in pairs[:_NAMED]]
    more = len(pairs) - _NAMED
    return listed(named, _NAMED) if more <= 0 else f"{', '.join(named)} and {more} more, in the table of comparisons"


def _beyond(best: Cell, pair: Pair) -> str:
    bounds = pair.bounds(best)
    between = f" [{bounds[0]:+.2f}, {bounds[1]:+.2f}]" if bounds else ""
    return f"{pair.beyond(best) or 0.0:+.2f}{between}"


def _detectable(pairs: Sequence[Pair]) -> str:
    """How large a difference would have had to be."""
    sizes = sorted(size for pair in pairs if (size := pair.tested.smallest) is not None and size <= 1)
    if not sizes:
        return "So few questions could show no difference."
    least, most = f"{sizes[0]:.2f}", f"{sizes[-1]:.2f}"
    needed = least if least == most else f"{least} to {most}"
    return f"To be found with a probability of {100 * POWER:.0f} %, a difference would have had to be about {needed}."


def _words(figure: Figure) -> str:
    between = interval(figure.low, figure.high)
    return f"{figure.mean or 0.0:.2f}" + (f" {between}" if between else "")
