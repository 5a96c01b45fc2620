"""Show the plan and cost of a run in the terminal."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ragbed.experiments.formatting import format_price, plural
from ragbed.experiments.guests.run_estimates.dry_run import plan_run
from ragbed.experiments.settings import RunSettings
from ragbed.experiments.terminal.display import note, print_json, print_table, say


def show_estimates(runs: Sequence[RunSettings], json: bool) -> None:
    """Print what each run would cost, and their sum. Raises UserError if one could not begin."""
    plans = [plan_run(settings) for settings in runs]
    if json:
        print_json(plans if len(plans) > 1 else plans[0])
        return
    for plan in plans:
        show_plan(plan)
    if len(plans) > 1:
        show_total(plans)


def show_plan(plan: Mapping[str, Any]) -> None:
    """Show the cells with their bounds, then the judge, the smallest detectable difference, and notes."""
    too_long = ["too long"] if plan["total"]["too_long"] else []
    rows = [[cell["name"], *_row(cell, bool(too_long))] for cell in plan["cells"]]
    print_table(["cell", "calls", "prompt tokens", "completion tokens", "price", *too_long],
                [*rows, ["all", *_row(plan["total"], bool(too_long))]],
                title=f"{plan['run']}: {plural(len(rows), 'cell')} of {plural(plan['questions'], 'question')}")
    _show_judge(plan["judge"])
    say(_detectable(plan["detectable"]))
    for text in plan["notes"]:
        note(text)


def show_total(plans: Sequence[Mapping[str, Any]]) -> None:
    """Show the bounds of several runs, which share one judge, and their sum."""
    too_long = ["too long"] if any(plan["total"]["too_long"] for plan in plans) else []
    rows = [[Path(plan["run"]).name, *_row(plan["total"], bool(too_long))] for plan in plans]
    total = add_bounds([plan["total"] for plan in plans])
    print_table(["run", "calls", "prompt tokens", "completion tokens", "price", *too_long],
                [*rows, ["all", *_row(total, bool(too_long))]], title=f"{len(plans)} runs")
    if judged := [plan["judge"] for plan in plans if plan["judge"]]:
        _show_judge({**add_bounds([{**one, "model": 0} for one in judged]), "model": judged[0]["model"]})


def add_bounds(totals: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sum of bounds for each key. A sum is None if any bound is unknown."""
    first = totals[0]
    return {key: add_bounds([total[key] for total in totals]) if isinstance(first[key], Mapping) else
            None if any(total[key] is None for total in totals) else sum(total[key] for total in totals)
            for key in first}


def _show_judge(judge: Mapping[str, Any] | None) -> None:
    if judge is not None:
        say(f"The judge {judge['model']}: up to {judge['calls']:,} calls, {judge['prompt_tokens']:,} + "
            f"{judge['completion_tokens']:,} tokens, {format_price(judge['price'])}.")


def _row(figures: Mapping[str, Any], too_long: bool) -> list[str]:
    cost = figures["price"]
    prices = "?" if cost["most"] is None else "$0" if not cost["most"] else \
        f"{format_price(cost['least'])} to {format_price(cost['most'])}"
    most = figures["completion_tokens"]["most"]
    known = most or not figures["calls"]["most"]
    tokens = [_span(figures["prompt_tokens"]), f"up to {most:,}"] if known else ["?", "?"]
    return [_span(figures["calls"]), *tokens, prices, *([f"{figures['too_long']:,}"] * too_long)]


def _span(bounds: Mapping[str, int]) -> str:
    least, most = f"{bounds['least']:,}", f"{bounds['most']:,}"
    return least if least == most else f"{least} to {most}"


def _detectable(found: Mapping[str, Any]) -> str:
    one, every = found["of_one_pair"], found["of_all_pairs"]
    if one is None:
        verb = "is" if found["questions"] == 1 else "are"
        return f"{_count(found)} {verb} too few to detect any difference in {found['metric']} between two cells."
    text = (f"{_count(found)} can detect a difference in {found['metric']} of {one:.3f} between two cells (80 % power, "
            f"assuming that {found['assumed']})")
    if found["pairs"] < 2:
        return text + "."
    return text + (f"; corrected for all {found['pairs']} pairs that differ in one factor: "
                   f"{'none' if every is None else f'{every:.3f}'}.")


def _count(found: Mapping[str, Any]) -> str:
    asked = plural(found["questions"], "question")
    return asked if found["clusters"] == found["questions"] else f"{asked} in {found['clusters']:,} units"
