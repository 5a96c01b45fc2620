"""Show how far the judges of a run agree."""
from __future__ import annotations

from ragbed.experiments.analysis.inputs import AnalysisInput
from ragbed.experiments.analysis.view import View
from ragbed.experiments.guests.label_correction.agreement import agreement_view, measure_agreement
from ragbed.experiments.guests.rescoring.rejudge import Rater
from ragbed.experiments.record import Result, Verdict


def judge_views(run: AnalysisInput) -> list[View]:
    """Return the agreement of every two judges; nothing if there are fewer than two."""
    verdicts: dict[str, dict[tuple[str, str], Verdict]] = {}
    for cell, results in run.results.items():
        for result in results:
            for name, verdict in _verdicts(result):
                verdicts.setdefault(name, {})[cell, result.question] = verdict
    if len(verdicts) < 2:
        return []
    own_columns = {one.judge for results in run.results.values() for result in results for one in result.judgements}
    raters = [Rater(name, verdicts[name]) for name in sorted(verdicts, key=own_columns.__contains__)]
    graded = {item for own in verdicts.values() for item in own}
    view = agreement_view(measure_agreement(raters, "grades", {}, run.seed), "grades", len(graded))
    return [View("judges", view.title, view.header, view.rows, view.keys, notes=(
        *view.notes, "A judge's best grade counts as Correct, its worst as Wrong, others as Partially Correct."))]


def _verdicts(result: Result) -> list[tuple[str, Verdict]]:
    """Return the verdicts of a result by judge, each with a grade."""
    own = [one for one in result.judgements if one.note != "no answer"]
    main = result.verdict
    found = [*([(main.judge, main)] if main and main.judge not in {one.judge for one in own} else []),
             *((one.judge, one) for one in own)]
    return [(name, one if one.grade or one.points is None else one.model_copy(update={
        "grade": "Correct" if one.points == 10 else "Partially Correct" if one.points else "Wrong"}))
        for name, one in found]
