"""Show the figures of trajectories: gold, cost, calls, endings, calibration, and the tests between cells."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ragbed.experiments.analysis.inputs import AnalysisInput, compute_figures
from ragbed.experiments.analysis.pairs import compare_figures
from ragbed.experiments.analysis.view import Value, View
from ragbed.experiments.guests.trajectories.figures import ENDS, TOOLS
from ragbed.experiments.metrics import calibration_error, estimate
from ragbed.experiments.metrics.intervals import bootstrap_interval
from ragbed.experiments.record import Result

_GOLD = {"gold seen": "gold_seen", "opened": "gold_opened", "cited": "gold_cited", "steps to gold": "steps_to_gold",
         "tokens to gold": "tokens_to_gold", "steps after": "steps_after_gold", "tokens after": "tokens_after_gold",
         "tokens": "trajectory_tokens", "tokens per right": "tokens_per_right"}
_CALLS = {"calls": "tool_calls", **{kind: f"tool_calls_{kind}" for kind in (
    *TOOLS, "other", "repeated", "empty", "failed")}}
_ENDED = {f"ended by {end}": f"ended_by_{end}" for end in ENDS}
_DRAWS = 500
_NOTES = (
    "n counts the answers whose model chose its searches or tools. Gold is the share of a question's gold items "
    "(spans, pages or documents) that a call found (`gold seen`), that the model read (`opened`), and that the answer "
    "cites. `steps` are calls of tools, `tokens` those of prompts and replies. `to gold`: until gold was first found. "
    "`after`: over-searching, from when all gold was found to the last call. `tokens per right`: all tokens over the "
    "number of right answers.",)
_CALIBRATED = ("`calibration error`: the root mean square difference between confidence and correctness, over bins "
               "of 100 answers by confidence. It needs 100 answers.",)
Cells = Sequence[tuple[str, Mapping[str, Any], Sequence[Result]]]


def trajectory_views(run: AnalysisInput) -> list[View]:
    """Return the tables of every cell whose model chose its calls, and the tests between these cells."""
    chosen = {id: [one for one in results if one.scores.get("tool_calls") is not None]
              for id, results in run.results.items()}
    cells = [(label, cell, own) for label, cell in run.labelled() if (own := chosen.get(cell["id"], []))]
    if not cells:
        return []
    calls = _table(run, cells, "trajectories:calls", "Calls of tools per answer", _CALLS)
    ends = _table(run, cells, "trajectories:ended", "How trajectories ended (shares of answers)", _ENDED)
    errors = [_calibration(run, own) for _, _, own in cells]
    if any(errors):
        ends = View(ends.name, ends.title, (*ends.header, "calibration error"), tuple(
            (*row, error) for row, error in zip(ends.rows, errors, strict=True)), notes=_CALIBRATED)
    tested = {title: name for title, name in {**_GOLD, "calls": "tool_calls"}.items() if title != "steps to gold"}
    return [_table(run, cells, "trajectories", "Trajectories: gold and tokens", _GOLD, _NOTES), calls, ends,
            *compare_figures(run, chosen, tested, "trajectories:compared", "Trajectories: differences between cells")]


def _table(run: AnalysisInput, cells: Cells, name: str, title: str, figures: Mapping[str, str],
           notes: tuple[str, ...] = ()) -> View:
    """Return a table of these metrics by their titles. Columns that are 0 or empty in all cells are left out."""
    rows = [compute_figures(run, cell, own, figures.values()) for _, cell, own in cells]
    kept = [place for place, values in enumerate(zip(*rows, strict=True))
            if not place or any(isinstance(one, Mapping) and one["mean"] for one in values)]
    return View(name, title, ("cell", "n", *(list(figures)[place] for place in kept)), tuple(
        (label, len(own), *(row[place] for place in kept))
        for (label, _, own), row in zip(cells, rows, strict=True)), notes=notes)


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
