"""The command that shows main effects and interactions."""
from __future__ import annotations

from ragbed.experiments.commands.options import AnyRun, AsJson, Metric, Unit, refuse
from ragbed.experiments.commands.read import show_views


def effects(run: AnyRun, metric: Metric = None, unit: Unit = None, json: AsJson = False) -> None:
    """Estimate the main effect of each factor, and which factors interact."""
    from ragbed.documents.errors import RunError
    from ragbed.experiments.guests.effects.effects import effect_views, estimate_effects
    from ragbed.experiments.guests.run_comparison.compared_run import read_compared_run
    from ragbed.experiments.metrics import find_metric
    from ragbed.experiments.statistics import check_unit, cluster_questions

    read = read_compared_run(run)
    name = metric or read.columns[0].split(" / ")[0]
    if find_metric(name).of_set:
        refuse(f"{name} is a metric of a whole set; choose one that every question has, such as those it is made of")
    if name not in read.metrics:
        own = dict.fromkeys(one for answers in read.answers.values() for row in answers.values() for one in row.scores)
        refuse(f"{read.path} has no metric {name}; choose from: {', '.join(own)}")
    if unit:
        check_unit(read.questions.values(), unit)
    grouped = cluster_questions(read.questions.values(), unit or read.made.scheme.unit)
    found = estimate_effects(read.rows, read.answers, grouped, name, read.scoring)
    if found is None:
        raise RunError(f"{run}: effects need at least two varying factors, not counting repeats and seeds, among "
                       f"cells with {name}; `ragbed compare {run}` compares cells that differ in one factor")
    show_views({"run": str(run), **read.progress, "scoring": read.scoring, "judge": read.judge, **found},
               effect_views(found, read.judge), [f"{read.name}, {read.scoring} scoring", *read.unfinished], json)
