"""Show dose and response: curves over the doses of negatives, the areas under them, and which areas differ."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ragbed.experiments.analysis.inputs import AnalysisInput
from ragbed.experiments.analysis.pairs import difference_view
from ragbed.experiments.analysis.replicates import group_replicates, label_groups
from ragbed.experiments.analysis.view import Chart, Point, Value, View, make_figure
from ragbed.experiments.cells import SEPARATOR, shorten_models
from ragbed.experiments.formatting import column_title, format_difference, format_interval, join_names, plural, truncate
from ragbed.experiments.metrics import family_of, name_with_judge
from ragbed.experiments.statistics import Comparison

COLOURS = 6  # curves per chart
_MAX_CHARTS = 18  # maximum charts per group of curves
_LEAST = {"unified": -1.0}  # lowest value of metrics that can be negative
_SECTION = "Dose and response"
_PLAIN = -1  # x position of cells without negatives on the axis of hardness
CurveRow = Mapping[str, Any]


_TITLES = {("negatives", "negatives"): "negatives added to what is shown",
           ("negatives", "pool"): "negatives searched together with the gold",
           ("hardness", "negatives"): "thirds of each question's negatives, added to what is shown",
           ("hardness", "pool"): "thirds of each question's negatives, searched together with the gold"}
_THIRDS = {"easy": "easiest third of negatives", "medium": "middle third of negatives",
           "hard": "hardest third of negatives"}


@dataclass(frozen=True, slots=True)
class CurveGroup:
    """Curves of a summary's `dose` with the same axis and word.

    Attributes:
        curves: their indexes in the summary.
        labels: in the same order.
        doses: all doses of the curves, with `words` for each.
    """

    axis: str
    word: str
    curves: tuple[int, ...]
    labels: tuple[str, ...]
    doses: tuple[int, ...]
    words: tuple[str, ...]

    @property
    def title(self) -> str:
        return _TITLES.get((self.axis, self.word), f"{self.axis}, {self.word}")


def group_curves(dose: Mapping[str, Any]) -> list[CurveGroup]:
    """Return the groups of a summary's `dose`, in the order of its curves."""
    found: dict[tuple[str, str], list[int]] = {}
    for place, curve in enumerate(dose["curves"]):
        found.setdefault((curve["axis"], curve["word"]), []).append(place)

    made = []
    for (axis, word), places in found.items():
        curves = [dose["curves"][place] for place in places]
        doses = sorted({point["dose"] for curve in curves for point in curve["points"]})
        words = [dose["hardness"][one] if axis == "hardness" else str(one) for one in doses]
        made.append(CurveGroup(axis, word, tuple(places), tuple(labels([curve["factors"] for curve in curves])),
                               tuple(doses), tuple(words)))
    return made


def labels(levels: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the curves' labels: the factor levels in which they differ or, if there are none, the strategy."""
    rows = shorten_models(levels)
    names = [name for name in dict.fromkeys(name for row in rows for name in row)
             if len({row[name] for row in rows if row.get(name) is not None}) > 1]
    return [SEPARATOR.join(filter(None, (_level(name, row.get(name)) for name in names)))
            or str(row.get("reasoning") or "none") for row in rows]


def _level(name: str, level: Any) -> str:
    """Return a level as text; empty for a perturbation that consists of the dose only."""
    if level is None or (name, level) == ("perturbation", "none"):
        return ""
    return _THIRDS.get(str(level), f"{level} negatives") if name in ("sort", "number") else str(level)


def dose_analysis(run: AnalysisInput) -> list[View]:
    """Return the views of a run's `dose_finding`."""
    return dose_views(run.found.get("dose"), label_replicates(run.cells), run.judge)


def dose_views(found: Mapping[str, Any] | None, called: Mapping[str, str], judge: str | None = None) -> list[View]:
    """Return the views of the result of `compute_dose`, by group of curves. `called` has the labels of cells by id."""
    if not found or not found["curves"]:
        return []
    views = [view for group in group_curves(found) for view in _group_views(group, found, called, judge)]
    return [replace(views[0], notes=(*views[0].notes, *found["notes"])), *views[1:]]


def _group_views(group: CurveGroup, found: Mapping[str, Any], called: Mapping[str, str],
                 judge: str | None) -> Iterator[View]:
    metric, name = found["metric"], f"dose:{group.axis}:{group.word}"
    curves = [found["curves"][place] for place in group.curves]
    tests = list(_tests(group, found))
    compared = difference_view(f"{name}:areas",
                               f"Differences of areas, by {group.title}: {name_with_judge(metric, judge)}",
                               ("factor", "what changes"), tests, section=_SECTION) if tests else None
    yield _curves(group, curves, found, called, judge, [made for _, made in tests])
    known = [[{point["dose"]: point["hardness"] for point in curve["points"]}.get(dose) for dose in group.doses]
             for curve in curves]
    if any(one is not None for own in known for one in own):
        yield View(f"{name}:hardness", "Mean hardness of the negatives (cosine with the question)",
                   ("curve", *group.words), tuple((label, *own) for label, own in zip(
                       group.labels, known, strict=True) if any(one is not None for one in own)), section=_SECTION)
    others = [one for one in found["metrics"] if one != metric and any(one in curve["areas"] for curve in curves)]
    if others:
        yield View(f"{name}:beside", f"Areas by other metrics, by {group.title}", (
            "curve", *(name_with_judge(one, judge) for one in others)), tuple(
            (label, *(curve["areas"].get(one) for one in others))
            for label, curve in zip(group.labels, curves, strict=True)), section=_SECTION)
    if compared:
        yield compared


def _curves(group: CurveGroup, curves: Sequence[CurveRow], found: Mapping[str, Any], called: Mapping[str, str],
            judge: str | None, tests: Sequence[Comparison]) -> View:
    metric, plain = found["metric"], any(curve["plain"] for curve in curves)
    rows = []
    for label, curve in zip(group.labels, curves, strict=True):
        points = {point["dose"]: point["metrics"].get(metric) for point in curve["points"]}
        without = [(curve["plain"] or {}).get("metrics", {}).get(metric)] if plain else []
        change = curve["change"] or {}
        rows.append((label, *without, *(points.get(dose) for dose in group.doses), curve["areas"].get(metric),
                     make_figure(*map(change.get, ("difference", "low", "high", "n"))), change.get("p"),
                     change.get("p_holm")))
    charts = _charts(group, curves, found, called, judge)
    header = ("curve", *["without"] * plain, *group.words, "area", "last minus first", "p", "p (Holm)")
    return View(f"dose:{group.axis}:{group.word}", f"{name_with_judge(metric, judge)} by {group.title}", header,
                tuple(rows), main=len(header) - 4, notes=tuple(_summarize(group, curves, found, tests)),
                signed=("last minus first",), p=("p", "p (Holm)"), section=_SECTION, charts=charts)


def _tests(group: CurveGroup, found: Mapping[str, Any]) -> Iterator[tuple[tuple[Value, ...], Comparison]]:
    places = {place: at for at, place in enumerate(group.curves)}
    factors = [found["curves"][place]["factors"] for place in group.curves]
    for one in found["comparisons"]:
        if one["first"] in places:
            first, second, factor = places[one["first"]], places[one["second"]], str(one["factor"])
            rests = labels([{name: level for name, level in row.items() if name != factor} for row in factors])
            before, after = labels([{factor: factors[first][factor]}, {factor: factors[second][factor]}])
            rest = f", {rests[first]}" if len(set(rests)) > 1 else ""
            yield (factor, f"{before} → {after}{rest}"), Comparison.of(found["metric"], one)


def _summarize(group: CurveGroup, curves: Sequence[CurveRow], found: Mapping[str, Any],
               tests: Sequence[Comparison]) -> Iterator[str]:
    """Yield sentences: the largest area, the curves with a significant change, and the areas that differ significantly.
    """
    metric = found["metric"]
    named = list(zip(group.labels, curves, strict=True))
    known = [(label, area) for label, curve in named
             if (area := curve["areas"].get(metric)) is not None and area["mean"] is not None]
    if not known:
        return
    most = max(area["mean"] for _, area in known)
    best = [f"{label} {format_interval(area['low'], area['high'])}".rstrip() for label, area in known
            if area["mean"] == most]
    if len(best) < len(known):
        yield f"Largest area: {most:z.2f}, {join_names(best)}."
    changes = [(label, Comparison.of(metric, curve["change"])) for label, curve in named if curve["change"]]
    real = [f"{label} ({format_difference(one)})" for label, one in changes if one.real]
    yield (f"Significant change from the first dose to the last: {join_names(real)}." if real else
           "No curve changes significantly from the first dose to the last.")
    places = dict(zip(group.curves, group.labels, strict=True))
    apart = [f"{places[one['second']]} against {places[one['first']]} ({format_difference(made)})"
             for one in found["comparisons"] if one["first"] in places
             and (made := Comparison.of(metric, one)).real]
    if tests:
        yield f"Significantly different areas: {join_names(apart)}." if apart else "No two areas differ significantly."


# A chart's title, its series, and its curves by label.
_Facet = tuple[str, tuple[str, ...], list[tuple[str, CurveRow]]]


def _facets(curves: Sequence[CurveRow], names: Sequence[str]) -> list[_Facet]:
    """Group curves into charts. If there are too many for one chart, keep the factor with the most levels that fit in a
    chart, and draw one chart per combination of the others. If no factor fits, fill charts in order.
    """
    pairs = list(zip(names, curves, strict=True))
    if len(curves) <= COLOURS:
        return [("", tuple(names), pairs)]
    factors = [one["factors"] for one in curves]
    varying = {name: list(dict.fromkeys(row[name] for row in factors if row.get(name) is not None))
               for name in factors[0]}
    fitting = [name for name, levels in varying.items() if 1 < len(levels) <= COLOURS
               and all(row.get(name) is not None for row in factors)]
    if not fitting:
        return [(f"{at + 1} to {min(at + COLOURS, len(curves))}", tuple(names[at:at + COLOURS]),
                 pairs[at:at + COLOURS]) for at in range(0, len(curves), COLOURS)]
    by = max(fitting, key=lambda name: len(varying[name]))
    rest = labels([{name: value for name, value in row.items() if name != by} for row in factors])
    level = labels([{by: row[by]} for row in factors])
    parts: dict[str, list[tuple[str, CurveRow]]] = {}
    for title, called, curve in zip(rest, level, curves, strict=True):
        parts.setdefault(title, []).append((called, curve))
    series = tuple(sorted(dict.fromkeys(level), key=lambda one: varying[by].index(factors[level.index(one)][by])))
    return [(title, series, own) for title, own in parts.items()]


def _charts(group: CurveGroup, curves: Sequence[CurveRow], found: Mapping[str, Any], called: Mapping[str, str],
            judge: str | None) -> tuple[Chart, ...]:
    """Return a chart for each metric, or several if there are many curves."""
    plain = any(curve["plain"] for curve in curves)
    ticks = (*([(float(_PLAIN), "without")] if plain else []),
             *((float(dose), words) for dose, words in zip(group.doses, group.words, strict=True)))
    x = "number of negatives" if group.axis == "negatives" else "hardness, in thirds of each question's negatives"
    made = []
    for metric, alike in _distinct_metrics(curves, found["metrics"]).items():
        title = ", ".join(column_title(name_with_judge(name, judge)) for name in alike)
        for part, series, own in _facets(curves, group.labels):
            points = [point for label, curve in own for point in _points(group, label, curve, metric, called)]
            if points:
                made.append(Chart("lines", " · ".join(filter(None, (title, part))), x, title, tuple(points),
                                  _LEAST.get(metric, 0.0), ticks, series=series))
    left = len(made) - _MAX_CHARTS
    caption = ["Vertical bars show 95 % intervals of the mean. Lines are shifted sideways slightly so that all are "
               "visible.", *(["Hollow points are cells without negatives, which areas leave out."] if plain else []),
               *([f"{left} more charts are left out; the table has all areas."] if left > 0 else [])]
    shown = made[:_MAX_CHARTS]
    return (*shown[:-1], *(replace(one, caption=" ".join(caption)) for one in shown[-1:]))


def _distinct_metrics(curves: Sequence[CurveRow], names: Sequence[str]) -> dict[str, list[str]]:
    """Return the metrics that any curve has, each with the metrics that equal it everywhere, such as recalls at cutoffs
    beyond the search depth.
    """
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


def _points(group: CurveGroup, label: str, curve: CurveRow, metric: str, called: Mapping[str, str]) -> Iterator[Point]:
    words = dict(zip(group.doses, group.words, strict=True))
    placed = [(one["dose"], one) for one in curve["points"]]
    for dose, one in [*([(_PLAIN, curve["plain"])] if curve["plain"] else []), *placed]:
        value = one["metrics"].get(metric)
        if value is None or value["mean"] is None:
            continue
        at = "no negatives" if dose == _PLAIN else words[dose]
        if group.axis == "negatives":
            at += f" negative{'' if at == '1' else 's'}"
        few = f", {one['fewer']} with fewer" if one["fewer"] else ""
        near = () if one.get("hardness") is None else (f"mean hardness {one['hardness']:.2f}",)
        text = (truncate(label), f"{at}: {value['mean']:z.2f} {format_interval(value['low'], value['high'])}",
                plural(value["n"], "question") + few, *near)
        yield Point(label, float(dose), value["mean"], value["low"], value["high"], cell=called.get(one["cell"], ""),
                    line="" if dose == _PLAIN else label, words=text, mark="hollow" if dose == _PLAIN else "")


def label_replicates(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the label of each replicate group by the id of its first cell. Labels omit repeat and seed."""
    variants = group_replicates(rows, {})
    return {one.first["id"]: label for one, label in zip(variants, label_groups(variants), strict=True)}
