"""What the figures say, in sentences that claim no more than the intervals allow."""
from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from experiments.record import Result
from experiments.report.cells import Cell, Figure, Table

FAILED = ("malformed", "too_long", "budget", "timeout", "error")


def verdicts(table: Table, results: Sequence[Result]) -> list[str]:
    """Sentences about quality, refusals, failures and cost, in this order."""
    sentences = [sentence for column in _unified_columns(table) for sentence in _quality(table, column)]
    sentences += _refusals(results)
    sentences += _failures(table)
    sentences += _cost(table.cells)
    return sentences


def _unified_columns(table: Table) -> list[str]:
    return [column for column in table.columns if column.split(" ")[0] == "unified"]


def _quality(table: Table, column: str) -> list[str]:
    figures = {cell.label: cell.figures[column] for cell in table.cells if column in cell.figures}
    known = {label: figure for label, figure in figures.items() if figure.mean is not None}
    if not known:
        return [f"No {column} score could be computed."]
    best = max(known, key=lambda label: known[label].mean or 0.0)
    equal = [label for label, figure in known.items() if figure.mean == known[best].mean and label != best]
    same = f", the same mean as {_list(equal)}" if equal else ""
    first = f"Highest mean {column}: {best}, {_words(known[best])}{same}."
    others = {label: figure for label, figure in known.items() if label != best}
    return [" ".join([first, *_against(known[best], others)])]


def _against(best: Figure, others: Mapping[str, Figure]) -> list[str]:
    if best.low is None:
        return ["It has no interval, so no difference can be told."]
    unsure = [label for label, figure in others.items() if not _above(best, figure)]
    clear = [label for label in others if label not in unsure]
    sentences = []
    if unsure:
        sentences.append(f"Its interval overlaps {_list(unsure)}, so no difference from {_it(unsure)} can be told "
                         f"at n = {_sizes([best, *(others[label] for label in unsure)])}.")
    if clear:
        sentences.append(f"Its interval lies above {_list(clear)}. No paired test was made and nothing is corrected "
                         "for the number of comparisons.")
    return sentences


def _it(labels: Sequence[str]) -> str:
    return "it" if len(labels) == 1 else "them"


def _above(best: Figure, other: Figure) -> bool:
    return best.low is not None and other.high is not None and best.low > other.high


def _words(figure: Figure) -> str:
    mean = f"{figure.mean:.2f}"
    if figure.low is None or figure.high is None:
        return f"{mean} without an interval, n = {figure.n}"
    return f"{mean} (95 % interval {figure.low:.2f} to {figure.high:.2f}, n = {figure.n})"


def _sizes(figures: Sequence[Figure]) -> str:
    low, high = min(f.n for f in figures), max(f.n for f in figures)
    return str(low) if low == high else f"{low} to {high}"


def _list(labels: Sequence[str], most: int = 6) -> str:
    if len(labels) > most:
        return ", ".join(labels[:most]) + f" and {len(labels) - most} more"
    return labels[0] if len(labels) == 1 else ", ".join(labels[:-1]) + " and " + labels[-1]


def _refusals(results: Sequence[Result]) -> list[str]:
    sides = {side: [r for r in results if r.answerable is side] for side in (False, True)}
    if not sides[False]:
        return []
    right, over = (sum(r.refused for r in sides[side]) for side in (False, True))
    sentence = f"Over all cells, {right} of {len(sides[False])} answers to unanswerable questions were refusals"
    return [sentence + (f", and {over} of {len(sides[True])} to answerable ones." if sides[True] else ".")]


def _failures(table: Table) -> list[str]:
    counts: Counter[str] = Counter()
    for cell in table.cells:
        counts.update(dict(cell.outcomes))
    failed = {name: counts[name] for name in FAILED if counts[name]}
    if not failed:
        return [f"All {counts.total()} questions were answered or refused; none failed."]
    named = ", ".join(f"{name} {count}" for name, count in failed.items())
    return [f"{sum(failed.values())} of {counts.total()} ended without an answer ({named}). They stay in every mean."]


def _cost(cells: Sequence[Cell]) -> list[str]:
    costs = {cell.label: cell.tokens_each for cell in cells if cell.tokens_each}
    if len(costs) < 2:
        return []
    least, most = min(costs, key=lambda k: costs[k] or 0.0), max(costs, key=lambda k: costs[k] or 0.0)
    ratio = (costs[most] or 0.0) / (costs[least] or 1.0)
    return [f"Most tokens per question: {most}, {costs[most]:,.0f}; fewest: {least}, {costs[least]:,.0f} "
            f"({ratio:.1f} times as many)."]
