"""`ragbed budgets` at work: a table of every way of answering at each budget, and which really differ."""
from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from documents.errors import RunError, SettingsError
from experiments.analysis.budgets import budgets_of_run
from experiments.metrics import metric_named, shown_name
from experiments.record import UNITS, Unit
from experiments.runs.finished import open_finished
from experiments.statistics import Comparison
from experiments.terminal.display import print_json, print_table, say
from experiments.words import difference, figure, probability, verdict

_MOST = 50  # budgets


def show_budgets(path: Path, unit: str, at: str | None, metric: str | None, json: bool) -> None:
    """Compute from the records, and show.

    Raises:
        UserError: there is no finished run, or an option does not fit.
    """
    chosen, budgets = _unit(unit), _budgets(at)
    if metric is not None:
        metric_named(metric)
    with open_finished(path) as run:
        judge = run.rows[0]["judge"]
        found = budgets_of_run(run, chosen, budgets, metric or run.summary["columns"][0].split(" / ")[0])
        if not any(point["n"] for row in found["rows"] for point in row["at"]):
            raise RunError(f"{found['metric']} is no metric of the cells of {run.path}; see `ragbed list metrics`")
        if json:
            print_json({"run": str(path), "scoring": run.rows[0]["scoring"], "judge": judge, **found})
            return
        title = f"{run.name}: {shown_name(found['metric'], judge)} where a question may use so many {unit}"
    print_table(["cell", f"{unit} used", *(_amount(budget) for budget in found["budgets"])],
                [_row(row) for row in found["rows"]], title=title)
    say("In brackets the 95 % interval; then the share of the records that came to their own end within the budget.")
    _show_tests(found)
    for text in found["notes"]:
        say(text)


def _unit(text: str) -> Unit:
    found = next((one for one in UNITS if one == text), None)
    if found is None:
        raise SettingsError(f"--unit {text!r}: there are {', '.join(UNITS)}")
    return found


def _budgets(text: str | None) -> list[float]:
    """Numbers above 0, apart by commas; none where no text is given."""
    try:
        found = [float(part) for part in text.split(",")] if text else []
    except ValueError:
        found = [-1.0]
    if len(found) > _MOST or not all(math.isfinite(one) and one > 0 for one in found):
        raise SettingsError(f"--at {text!r}: give at most {_MOST} numbers above 0, as in --at 500,1000,2000")
    return found


def _row(row: Mapping[str, Any]) -> list[str]:
    used = "-" if row["used"] is None else _amount(row["used"])
    return [row["label"], used, *(f"{figure(point['mean'], point['low'], point['high'])} {point['share']:.0%}"
                                  if point["n"] else "-" for point in row["at"])]


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == round(value) else f"{value:.3g}"


def _show_tests(found: Mapping[str, Any]) -> None:
    """Those that are real; most pairs of many cells at many budgets are not."""
    made = [(one, Comparison.of(found["metric"], one)) for one in found["tests"]]
    real = [[_amount(row["budget"]), row["second"], row["first"], str(one.n), difference(one), probability(one.p),
             probability(one.p_holm), verdict(one)] for row, one in made if one.real]
    if real:
        print_table(["budget", "cell", "against", "n", "difference [95 %]", "p", "p (Holm)", ""], real,
                    title="What is really different at equal budgets", keys=3)
    elif made:
        say("At no budget are two cells really different.")
