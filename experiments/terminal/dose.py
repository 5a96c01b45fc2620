"""`ragbed dose` at work: curves over the doses of negatives, and the areas under them, as tables."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from documents.errors import RunError
from experiments.analysis.dose import dose_of_run
from experiments.analysis.dose_curves import Group, groups_of
from experiments.analysis.notes import on_miners
from experiments.metrics import metric_named, shown_name
from experiments.runs.finished import Finished, open_finished
from experiments.statistics import Comparison
from experiments.terminal.display import print_json, print_table, say
from experiments.words import difference, figure, probability, verdict


def show_dose(path: Path, metric: str | None, json: bool) -> None:
    """Compute from the records, and show.

    Raises:
        UserError: there is no finished run, no two cells of it differ in the dose alone, or no curve has the metric.
    """
    with open_finished(path) as run:
        judge = run.rows[0]["judge"]
        found = _found(run, metric)
        if json:
            print_json({"run": str(path), "scoring": run.rows[0]["scoring"], "judge": judge, **found})
            return
        title = f"{run.name}: {shown_name(found['metric'], judge)}"
    for group in groups_of(found):
        print_table(*_curves(group, found), title=f"{title} by {group.title}")
        say("")
        _show_hardness(group, found)
        _show_beside(group, found, judge)
        _show_compared(group, found, title)
    for text in found["notes"]:
        say(text)


def _found(run: Finished, metric: str | None) -> dict[str, Any]:
    if metric is not None:
        metric_named(metric)
    found = dose_of_run(run, metric or run.summary["columns"][0].split(" / ")[0])
    if found is None:
        raise RunError(f"{run.path}: no two of its cells differ in the number or the hardness of negatives alone; see "
                       "`ragbed dose --help` for the perturbations that make a curve")
    if metric is not None and metric not in found["metrics"]:
        known = dict.fromkeys(name for row in run.rows for name, one in row["metrics"].items() if one["n"])
        raise RunError(f"{metric} is no metric of the curves of {run.path}; there are: {', '.join(known)}")
    mined = any(question.mined for question in run.questions.values())
    miners = on_miners(run.settings, run.cells, run.questions.values()) if mined else []
    return {**found, "notes": [*found["notes"], *miners]}


def _curves(group: Group, found: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    metric, curves = found["metric"], [found["curves"][place] for place in group.curves]
    plain = any(curve["plain"] for curve in curves)
    header = ["curve", *["without"] * plain, *group.words, "area [95 %]", "last less first [95 %]", "p", "p (Holm)"]
    return header, [[label, *([_figure((curve["plain"] or {}).get("metrics", {}).get(metric))] if plain else []),
                     *_points(curve, group, metric), _area(curve["areas"].get(metric)), *_change(curve, metric)]
                    for label, curve in zip(group.labels, curves, strict=True)]


def _points(curve: Mapping[str, Any], group: Group, metric: str) -> list[str]:
    known = {point["dose"]: point["metrics"].get(metric) for point in curve["points"]}
    return [_figure(known.get(dose)) for dose in group.doses]


def _change(curve: Mapping[str, Any], metric: str) -> list[str]:
    if curve["change"] is None:
        return ["-"] * 3
    change = Comparison.of(metric, curve["change"])
    return [difference(change), probability(change.p), probability(change.p_holm)]


def _figure(value: Mapping[str, Any] | None) -> str:
    return "-" if value is None else figure(value["mean"], value["low"], value["high"])


def _area(value: Mapping[str, Any] | None) -> str:
    """With its questions, which are those of every dose."""
    return _figure(value) if value is None else f"{_figure(value)} n {value['n']}"


def _show_hardness(group: Group, found: Mapping[str, Any]) -> None:
    """The mean hardness of the negatives at each dose, where any were mined."""
    rows = []
    for place, label in zip(group.curves, group.labels, strict=True):
        known = {point["dose"]: point["hardness"] for point in found["curves"][place]["points"]}
        if any(one is not None for one in known.values()):
            own = (known.get(dose) for dose in group.doses)
            rows.append([label, *("-" if one is None else f"{one:.2f}" for one in own)])
    if rows:
        print_table(["curve", *group.words], rows, title="Mean hardness of the negatives (cosine with the question)")
        say("")


def _show_beside(group: Group, found: Mapping[str, Any], judge: str | None) -> None:
    """The areas by the other metrics."""
    curves = [found["curves"][place] for place in group.curves]
    names = [name for name in found["metrics"][1:] if any(name in curve["areas"] for curve in curves)]
    if names:
        print_table(["curve", *(shown_name(name, judge) for name in names)],
                    [[label, *(_area(curve["areas"].get(name)) for name in names)]
                     for label, curve in zip(group.labels, curves, strict=True)], title="Areas beside it")
        say("")


def _show_compared(group: Group, found: Mapping[str, Any], title: str) -> None:
    called = dict(zip(group.curves, group.labels, strict=True))
    rows = [_row(one, called, found["metric"]) for one in found["comparisons"] if one["first"] in called]
    if rows:
        print_table(["factor", "curve", "against", "n", "difference of areas [95 %]", "p", "p (Holm)", ""], rows,
                    title=f"{title}: area against area", keys=3)
        say("")


def _row(one: Mapping[str, Any], called: Mapping[int, str], metric: str) -> Sequence[str]:
    made = Comparison.of(metric, one)
    return [one["factor"], called[one["second"]], called[one["first"]], str(made.n), difference(made),
            probability(made.p), probability(made.p_holm), verdict(made)]
