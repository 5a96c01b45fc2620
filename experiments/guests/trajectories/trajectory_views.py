"""Show the figures of trajectories: gold, cost, calls, endings, calibration, and the tests between cells."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ragbed.experiments.analysis.inputs import AnalysisInput, aggregate_cell
from ragbed.experiments.analysis.pairs import compare_figures
from ragbed.experiments.analysis.view import Value, View
from ragbed.experiments.guests.trajectories.trajectory_figures import ENDS, TOOLS
from ragbed.experiments.metrics import calibration_error, estimate
from ragbed.experiments.metrics.intervals import bootstrap_interval
from ragbed.experiments.record import Result

_GOLD = {"gold seen": "gold_seen", "opened": "gold_opened", "cited": "gold_cited", "steps to gold": "steps_to_gold",
         "tokens to gold": "tokens_to_gold", "steps after": "steps_after_gold", "tokens after": "tokens_after_gold",
         "tokens": "trajectory_tokens", "tokens per right": "tokens_per_right"}
_CALLS = tuple(f"tool_calls_{kind}" for kind in (*TOOLS, "other"))
_FAULTS = ("tool_calls_repeated", "tool_calls_empty", "tool_calls_failed")
_ENDED = {**{f"ended by {end}": f"ended_by_{end}" for end in ENDS}, "calibration error": "calibration"}
_DRAWS = 500
_NOTES = (
    "n counts the answers whose model chose its searches or tools. Gold is the share of a question's gold items "
    "(spans, pages or documents) that a call found (`gold seen`), that the model read (`opened`), and that the answer "
    "cites. `steps` are calls of tools, `tokens` those of prompts and replies. `to gold`: until gold was first found. "
    "`after`: over-searching, from when all gold was found to the last call. `tokens per right`: all tokens over the "
    "number of right answers.",)
_CALIBRATED = ("`calibration error`: the root mean square difference between confidence and correctness, over bins "
               "of 100 answers by confidence. It needs 100 answers.",)
Row = tuple[str, int, Mapping[str, Any]]  # a cell: its label, number of answers, and every figure


def trajectory_views(run: AnalysisInput) -> list[View]:
    """Return the tables of every cell whose model chose its calls, and the tests between these cells."""
    chosen = {id: [one for one in results if one.scores.get("tool_calls") is not None]
              for id, results in run.results.items()}
    cells = [(label, cell, own) for label, cell in run.labelled() if (own := chosen.get(cell["id"], []))]
    if not cells:
        return []
    rows = [(label, len(own), {**aggregate_cell(run, cell, own), "calibration": _calibration(run, own)})
            for label, cell, own in cells]
    named = sorted({name for _, _, found in rows for name in found if name.startswith("tool_calls_")}
                   - {*_CALLS, *_FAULTS})
    calls = {name.removeprefix("tool_calls_"): name for name in (*_CALLS, *named, *_FAULTS)}
    tested = {title: name for title, name in {**_GOLD, "calls": "tool_calls"}.items() if title != "steps to gold"}
    return [_table(rows, "trajectories", "Trajectories: gold and tokens", _GOLD, _NOTES),
            _table(rows, "trajectories:calls", "Calls of tools per answer", {"calls": "tool_calls", **calls}),
            _table(rows, "trajectories:ended", "How trajectories ended (shares of answers)", _ENDED, _CALIBRATED),
            *compare_figures(run, chosen, tested, "trajectories:compared", "Trajectories: differences between cells")]


def _table(rows: Sequence[Row], name: str, title: str, figures: Mapping[str, str], notes: tuple[str, ...] = ()) -> View:
    """Return a table of these figures by their titles. Columns that are 0 or empty in all cells are left out."""
    kept = {column: figure for place, (column, figure) in enumerate(figures.items())
            if not place or any((found.get(figure) or {}).get("mean") for _, _, found in rows)}
    return View(name, title, ("cell", "n", *kept), tuple(
        (label, n, *(found.get(figure) for figure in kept.values())) for label, n, found in rows),
        notes=() if notes is _CALIBRATED and "calibration error" not in kept else notes)


def _calibration(run: AnalysisInput, results: Sequence[Result]) -> Value:
    """Return the calibration error of the confidences from 0 to 1, with a bootstrap interval over clusters."""
    import numpy as np

    sure = [one for one in results if (said := one.scores.get("confidence")) is not None and 0 <= said <= 1]
    pairs = np.array([(one.scores["confidence"], one.scores["solved"]) for one in sure], dtype=np.float64)
    if not len(sure) or (value := calibration_error(*pairs.T)) is None:
        return None
    unit = np.unique(run.clusters_of(sure), return_inverse=True)[1]
    members = [np.flatnonzero(unit == one) for one in range(unit.max() + 1)]
    random = np.random.default_rng(run.seed)
    drawn = (np.concatenate([members[one] for one in random.integers(len(members), size=len(members))])
             for _ in range(_DRAWS))
    spread = [calibration_error(*pairs[places].T) for places in drawn]
    known = np.array([one for one in spread if one is not None])
    return {**estimate(value, bootstrap_interval(value, known, len(members)), len(sure))}
