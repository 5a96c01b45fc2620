"""Dose and response: a line for each curve over the doses of negatives, and the areas under them as a table."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.analysis.dose_curves import Group, groups_of, labels
from experiments.metrics import family_of
from experiments.report.axes import Axis, quality_axis
from experiments.report.cells import Figure, Table, column
from experiments.report.dose_lines import Facet, Frame, Line, across, facets
from experiments.report.text import visible
from experiments.statistics import Comparison
from experiments.words import column_words, difference, figure, interval, listed, probability, verdict

_MOST, _FEW = 18, 12  # panels of one group, and tests that are not folded
_LEAST = {"unified": -1.0}  # of metrics that go below 0


@dataclass(frozen=True, slots=True)
class Panel:
    """A chart: of one metric, and where a group has many curves of a part of them."""

    title: str
    lines: tuple[Line, ...]
    x: Axis
    y: Axis


@dataclass(frozen=True, slots=True)
class Row:
    """A curve in the table: its areas, and the last dose compared with the first."""

    label: str
    areas: tuple[Figure | None, ...]
    change: str
    p: str
    p_holm: str
    real: bool


@dataclass(frozen=True, slots=True)
class Test:
    """Two areas compared.

    Attributes:
        levels: the two values of the factor; `rest`: what else tells the two curves from others.
        first, second: what they are called.
    """

    factor: str
    levels: tuple[str, str]
    rest: str
    first: str
    second: str
    said: str
    difference: str
    before: str
    after: str
    p: str
    p_holm: str
    n: int
    real: bool


@dataclass(frozen=True, slots=True)
class Doses:
    """Curves over one axis.

    Attributes:
        keys: looks and labels of the lines: of all panels, or by part where each has its own.
        metrics: titles of the table's columns of areas.
        tests: the real differences first; `folded` are those beyond as many as are read at once.
        left_out: panels beyond those that are drawn.
    """

    title: str
    x_title: str
    said: tuple[str, ...]
    panels: tuple[Panel, ...]
    keys: tuple[tuple[str, tuple[tuple[int, str], ...]], ...]
    metrics: tuple[str, ...]
    rows: tuple[Row, ...]
    tests: tuple[Test, ...]
    folded: tuple[Test, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class Dose:
    """All groups, by one metric above all; `quality` is its title."""

    quality: str
    groups: tuple[Doses, ...]
    notes: tuple[str, ...]


def dose(stored: Mapping[str, Any] | None, table: Table) -> Dose | None:
    """The summary's dose and response; None where it has none."""
    if not stored or not stored.get("curves"):
        return None
    judges = {cell.judge for cell in table.cells}
    judge = judges.pop() if len(judges) == 1 else None
    return Dose(_title(stored["metric"], judge), tuple(_doses(group, stored, table, judge)
                                                       for group in groups_of(stored)),
                tuple(visible(note) for note in stored.get("notes") or ()))


def _title(metric: str, judge: str | None) -> str:
    return column_words(column(metric, judge))


def _doses(group: Group, stored: Mapping[str, Any], table: Table, judge: str | None) -> Doses:
    curves, names = [stored["curves"][place] for place in group.curves], [visible(one) for one in group.labels]
    metrics = _apart(curves, stored["metrics"])
    titles = {first: ", ".join(_title(name, judge) for name in alike) for first, alike in metrics.items()}
    parts, x = facets(curves, names), across(group, any(curve["plain"] for curve in curves))
    panels = [panel for metric in metrics for panel in _panels(metric, titles[metric], parts, x, group, table)]
    rows = tuple(_row(name, curve, list(metrics), stored["metric"]) for name, curve in zip(names, curves, strict=True))
    tests = sorted(_tests(group, stored, names), key=lambda one: not one.real)
    return Doses(
        group.title, "number of negatives" if group.axis == "negatives" else "hardness, in thirds of each question's",
        _said(rows, tests, list(metrics).index(stored["metric"]) if stored["metric"] in metrics else None),
        tuple(panels[:_MOST]), _keys(parts), tuple(titles.values()), rows, tuple(tests[:_FEW]), tuple(tests[_FEW:]),
        max(len(panels) - _MOST, 0))


def _apart(curves: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, list[str]]:
    """The metrics that any of these curves has, each with those that are equal to it everywhere, as recalls are where
    fewer chunks are found than they count."""
    found: dict[str, list[str]] = {}
    figures: dict[str, list[Any]] = {}
    for name in names:
        own = [point["metrics"].get(name) for curve in curves for point in curve["points"]]
        if any(own):
            same = next((one for one, others in figures.items() if others == own and family_of(one) == family_of(name)),
                        name)
            figures[same] = own
            found.setdefault(same, []).append(name)
    return found


def _keys(parts: Sequence[Facet]) -> tuple[tuple[str, tuple[tuple[int, str], ...]], ...]:
    every = tuple(dict.fromkeys((line.look, line.label) for part in parts for line in part.lines))
    if len({look for look, _ in every}) == len(every):
        return (("", every),)
    return tuple((part.title, tuple((line.look, line.label) for line in part.lines)) for part in parts)


def _panels(metric: str, title: str, parts: Sequence[Facet], x: Axis, group: Group, table: Table) -> list[Panel]:
    """On one upright axis, a chart for each part."""
    ends = [value.get(end) for part in parts for one in part.lines for point in _every(one.curve)
            if (value := point["metrics"].get(metric)) for end in ("mean", "low", "high")]
    y = quality_axis(ends, _LEAST.get(metric, 0.0))
    frame = Frame(metric, x, y, group, {id: cell.number for cell in table.cells for id in cell.ids})
    made = [(part, frame.lines(part)) for part in parts]
    return [Panel(" · ".join(filter(None, (title, part.title))), lines, x, y)
            for part, lines in made if lines]


def _every(curve: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*curve["points"], *([curve["plain"]] if curve["plain"] else [])]


def _row(name: str, curve: Mapping[str, Any], metrics: Sequence[str], metric: str) -> Row:
    areas = tuple(Figure.of(curve["areas"][one]) if one in curve["areas"] else None for one in metrics)
    if curve["change"] is None:
        return Row(name, areas, "none", "-", "-", False)
    change = Comparison.of(metric, curve["change"])
    return Row(name, areas, difference(change), probability(change.p), probability(change.p_holm), change.real)


def _tests(group: Group, stored: Mapping[str, Any], names: Sequence[str]) -> Iterator[Test]:
    places = {place: at for at, place in enumerate(group.curves)}
    factors = [stored["curves"][place]["factors"] for place in group.curves]
    for one in stored["comparisons"]:
        if one["first"] in places:
            first, second, factor = places[one["first"]], places[one["second"]], str(one["factor"])
            rests = labels([{name: level for name, level in row.items() if name != factor} for row in factors])
            levels = labels([{factor: factors[first][factor]}, {factor: factors[second][factor]}])
            yield _test(Comparison.of(stored["metric"], one), factor, (visible(levels[0]), visible(levels[1])),
                        visible(rests[first]) if len(set(rests)) > 1 else "", (names[first], names[second]))


def _test(made: Comparison, factor: str, levels: tuple[str, str], rest: str, names: tuple[str, str]) -> Test:
    return Test(visible(factor), levels, rest, *names, verdict(made), difference(made),
                figure(made.before, made.before_low, made.before_high),
                figure(made.after, made.after_low, made.after_high), probability(made.p), probability(made.p_holm),
                made.n, made.real)


def _said(rows: Sequence[Row], tests: Sequence[Test], place: int | None) -> tuple[str, ...]:
    """Which curve has the largest area, which of them really change, and which areas really differ.

    Args:
        place: of the metric among the areas; None where no curve has it.
    """
    if place is None:
        return ()
    known = [(row.label, area) for row in rows if (area := row.areas[place]) is not None and area.mean is not None]
    most = max((area.mean or 0.0 for _, area in known), default=0.0)
    best = [f"{label} {interval(area.low, area.high)}".rstrip() for label, area in known if area.mean == most]
    said = [f"The largest area, {most:z.2f}, is that of {listed(best)}."] if 0 < len(best) < len(known) else []
    changed = [f"{row.label} ({row.change})" for row in rows if row.real]
    said.append(f"From the first dose to the last there is a real change of {listed(changed)}." if changed else
                "From the first dose to the last no real change is seen.")
    apart = [f"{test.second} against {test.first} ({test.difference})" for test in tests if test.real]
    if tests:
        said.append(f"Areas really differ: {listed(apart)}." if apart else "No two areas really differ.")
    return tuple(said)
