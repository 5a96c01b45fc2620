"""What the figures say, in sentences that claim no more than the intervals allow."""
from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from experiments.record import Result
from experiments.report.cells import Cell, Figure, Table, metric_of

FAILED = ("malformed", "too_long", "budget", "timeout", "error")


def verdicts(table: Table, results: Sequence[Result]) -> list[str]:
    """Sentences about quality, refusals, failures and cost, in this order."""
    sentences = [sentence for column in _quality_columns(table) for sentence in _quality(table, column)]
    sentences += _refusals(results)
    sentences += _failures(table)
    sentences += _cost(table.cells)
    return sentences


def _quality_columns(table: Table) -> list[str]:
    """One, or one for each judge."""
    return [column for column in table.columns if metric_of(column) == table.quality]


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
    if not others:
        return []
    known = {label: figure.high for label, figure in others.items() if figure.high is not None}
    if best.low is None or not known:
        return ["There is no interval to compare it by."]
    overlapped = [label for label, high in known.items() if high >= best.low]
    below = [label for label in known if label not in overlapped]
    parts = [f"overlaps that of {_list(overlapped)}"] if overlapped else []
    parts += [f"does not overlap that of {_list(below)}"] if below else []
    return [f"Its interval {' and '.join(parts)}.", "Overlap of intervals is no test: ragbed compare makes a paired "
            "one, corrected for the number of comparisons."]


def _words(figure: Figure) -> str:
    mean = f"{figure.mean:.2f}"
    if figure.low is None or figure.high is None:
        return f"{mean} without an interval, n = {figure.n}"
    return f"{mean} (95 % interval {figure.low:.2f} to {figure.high:.2f}, n = {figure.n})"


def _list(labels: Sequence[str], most: int = 6) -> str:
    if len(labels) > most:
        return ", ".join(labels[:most]) + f" and {len(labels) - most} more"
    return labels[0] if len(labels) == 1 else ", ".join(labels[:-1]) + " and " + labels[-1]


def _refusals(results: Sequence[Result]) -> list[str]:
    """By the run's own scoring, where refusals are scored at all."""
    right, over = ([score for result in results if (score := result.scores.get(name)) is not None]
                   for name in ("refusal_accuracy", "refused_answerable"))
    if not right:
        return []
    sentence = f"Over all cells, {sum(right):.0f} of {len(right)} answers to unanswerable questions were refusals"
    return [sentence + (f", and {sum(over):.0f} of {len(over)} to answerable ones." if over else ".")]


def _failures(table: Table) -> list[str]:
    counts: Counter[str] = Counter()
    for cell in table.cells:
        counts.update(dict(cell.outcomes))
    failed = {name: counts[name] for name in FAILED if counts[name]}
    if not failed:
        return [f"None of the {counts.total()} answers, one for each question in each cell, failed."]
    named = ", ".join(f"{name} {count}" for name, count in failed.items())
    kept = ("As published, those without text count in no mean of the published metrics, and n is smaller there."
            if table.drops_empty else "They stay in every mean.")
    return [f"{sum(failed.values())} of {counts.total()} answers, one for each question in each cell, failed "
            f"({named}). {kept}"]


def _cost(cells: Sequence[Cell]) -> list[str]:
    costs = {cell.label: cell.tokens_each for cell in cells if cell.tokens_each}
    if len(costs) < 2:
        return []
    if len(set(costs.values())) == 1:
        return []
    least, most = min(costs, key=lambda k: costs[k] or 0.0), max(costs, key=lambda k: costs[k] or 0.0)
    ratio = (costs[most] or 0.0) / (costs[least] or 1.0)
    return [f"Most tokens per question: {most}, {costs[most]:,.0f}; fewest: {least}, {costs[least]:,.0f} "
            f"({ratio:.1f} times as many)."]
