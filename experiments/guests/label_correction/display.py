"""Show how far judges and people agree, and scores corrected by human labels.

`ragbed judge --trial` keeps its result in the run's folder, for its summary and report.
"""
from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from ragbed.agents.models import describe_model
from ragbed.agents.types import Cost
from ragbed.experiments.analysis.notes import LEXICAL, describe_unjudged
from ragbed.experiments.analysis.view import View
from ragbed.experiments.formatting import format_price
from ragbed.experiments.guests.label_correction.agreement import agreement_view, measure_agreement
from ragbed.experiments.guests.label_correction.inference import corrected_views
from ragbed.experiments.guests.label_correction.judge_trial import (
    ErrorRate,
    TrialGate,
    corrected_view,
    count_errors,
    describe,
    make_trial_answers,
    trial_view,
)
from ragbed.experiments.guests.label_correction.sheets import read_raters, write_sheet
from ragbed.experiments.guests.rescoring.rejudge import Material, Rater, find_judges, read_material, rejudge
from ragbed.experiments.guests.run_estimates.bounds import Use
from ragbed.experiments.judges import ModelJudge
from ragbed.experiments.report.packing import as_json
from ragbed.experiments.report.page import report_run
from ragbed.experiments.runs.finished import TRIAL, Finished
from ragbed.experiments.runs.store import RunFolder, lock_run
from ragbed.experiments.settings import RunSettings
from ragbed.experiments.settings.file import read_settings
from ragbed.experiments.terminal.display import Bars, note, print_json, print_text, say, stoppable
from ragbed.experiments.terminal.run_tables import print_views
from ragbed.retrieval.storage.files import write_atomically
from ragbed.strategies.token_estimates import estimate_prompt_tokens


def show_agreement(path: Path, names: Sequence[str], repeats: int, labels: Sequence[Path], sheet: Path | None,
                json: bool) -> None:
    """Judge the answers, compare all raters with each other, and print the agreement. The verdicts that the run
    recorded count as one rater. Raises UserError for errors that the user can fix."""
    with ExitStack() as opened:
        folder = RunFolder.existing(path)
        opened.callback(folder.close)
        settings = read_settings(path / "config.yaml")
        material = read_material(folder, settings)
        people = read_raters(labels, material)
        if sheet is not None:
            write_sheet(sheet, material)
            note(f"sheet: {len(material.graded)} answers to grade in {sheet}")
        names = names or ([settings.judge.name] if repeats > 1 else [])
        if sheet is not None and not names and not people:
            if json:
                print_json({"run": str(path), "sheet": str(sheet), "answers": len(material.graded)})
            return
        views = corrected_views(Finished.of(folder), people) if people else []
        raters, spent = _collect_verdicts(folder, settings, material, names, repeats, opened)
    raters += people
    found = measure_agreement(raters, material.rubric, material.steps, settings.seed)
    views = [*([agreement_view(found, material.rubric, len(material.graded))] if found else []), *views]
    if not json:
        _show(settings, raters, views, spent)
        return
    print_json({"run": str(path), "rubric": material.rubric, "answers": len(material.graded),
                "raters": [{"name": rater.name, "answers": len(rater.verdicts),
                            "unjudged": sum(verdict.unjudged for verdict in rater.verdicts.values()),
                            "why": describe_unjudged(rater.verdicts.values())} for rater in raters],
                "pairs": [asdict(pair) for pair in found], "views": [view.as_json() for view in views],
                "calls": spent.attempts, "replayed": spent.replayed, "paid": spent.paid,
                "temperature": settings.calls.temperature})


def _collect_verdicts(folder: RunFolder, settings: RunSettings, material: Material, names: Sequence[str], repeats: int,
                      opened: ExitStack) -> tuple[list[Rater], Cost]:
    """Return the verdicts of the judges, and the run's recorded ones unless its own judge is among them."""
    own = settings.judge.name
    recorded = [] if own in names else [Rater(f"{own} (the run's)", material.recorded)]
    if not names:
        return recorded, Cost()
    judges = find_judges(names, settings)
    opened.callback(lock_run(folder.path).release)
    with stoppable("verdicts so far are kept in the run's journal; rerun the command to continue"), Bars() as bars:
        judged, spent = asyncio.run(rejudge(folder, settings, material, judges, repeats, bars))
    return recorded + judged, spent


def _show(settings: RunSettings, raters: Sequence[Rater], views: Sequence[View], spent: Cost) -> None:
    say(settings.name)
    print_views(views)
    if not views:
        say(f"{raters[0].name} is the only rater; give --judge, --repeats or --labels")
    for rater in raters:
        if why := describe_unjudged(rater.verdicts.values()):
            say(f"{rater.name}: {why}.")
    if any(rater.name.startswith("lexical") for rater in raters):
        say(LEXICAL)
    if settings.calls.temperature == 0 and any(rater.name.endswith(" #2") for rater in raters):
        say("Repeats were judged at the run's temperature, 0. They differ only in their seed and in the server's own "
            "randomness, so their agreement does not show how certain the judge is.")
    note(f"{spent.attempts} calls sent and {spent.replayed} from the journal, newly paid {format_price(spent.paid)}")


def show_trial(path: Path, names: Sequence[str], most: int, dry_run: bool, fail_if: Sequence[str], json: bool) -> None:
    """Try the judges, by default the run's own, on answers made from at most `most` questions, and show their errors.

    Exit status 1: a condition holds, or a judge graded no answer. Raises UserError for errors that the user can fix.
    """
    gates = [TrialGate.parse(text) for text in fail_if]
    with ExitStack() as opened:
        folder = RunFolder.existing(path)
        opened.callback(folder.close)
        run, settings = Finished.of(folder), read_settings(path / "config.yaml")
        known = read_material(folder, settings)
        made = make_trial_answers(run, known.rubric, most)
        due = Material(known.rubric, {key: graded for key, (_, graded) in made.items()}, {})
        judges = find_judges(names or [settings.judge.name], settings)
        asked = len({question for _, question in made})
        plan = [f"{len(made):,} answers made from {asked:,} questions", *(
            _plan(judge, due, settings) for judge in judges if isinstance(judge, ModelJudge))]
        note("trial: " + "; ".join(plan))
        if dry_run:
            return
        opened.callback(lock_run(path).release)
        with stoppable("verdicts so far are kept in the run's journal; rerun the command to continue"), Bars() as bars:
            raters, spent = asyncio.run(rejudge(folder, settings, due, judges, 1, bars))
        rates = {rater.name: count_errors((made[key][0], key[1], verdict) for key, verdict in rater.verdicts.items())
                 for rater in raters}
        results = [_result(run, known, judge, found) for judge, found in rates.items()]
        for one in results:
            if one["judge"] == run.judge:
                write_atomically(path / TRIAL, as_json(one).encode())
                report_run(run)
    failed = [f"{gate.text} ({judge})" for gate in gates for judge, found in rates.items() if gate.holds(found)]
    if json:
        print_json({"run": str(path), "trials": results, "failed": failed, "calls": spent.attempts,
                    "replayed": spent.replayed, "paid": spent.paid})
    else:
        for one in results:
            print_text(one["said"])
            print_views(list(map(View.of, one["views"])))
        note(f"{spent.attempts} calls sent, {spent.replayed} from the journal, newly paid {format_price(spent.paid)}")
    for text in failed:
        note(f"fails: {text}")
    if failed or not all(any(one.rate["n"] for one in found) for found in rates.values()):
        raise typer.Exit(1)


def _plan(judge: ModelJudge, due: Material, settings: RunSettings) -> str:
    use = Use()
    for graded in due.graded.values():
        use += Use(1, estimate_prompt_tokens(next(judge.judge(graded))), judge.max_tokens)
    price = use.priced(describe_model(judge.model, settings.calls)[1])
    return (f"{judge.name}: {use.calls:,.0f} calls, about {use.prompt:,.0f} prompt tokens and at most "
            f"{use.completion:,.0f} of replies, {format_price(price)}")


def _result(run: Finished, known: Material, judge: str, rates: Sequence[ErrorRate]) -> dict[str, Any]:
    tried = {one.right for one in rates if one.rate["n"]}
    views = [trial_view(judge, rates), *([corrected_view(run, known.recorded, rates)] * (
        judge == run.judge and len(tried) > 1))]
    return {"judge": judge, "said": describe(judge, rates), "rates": [asdict(one) for one in rates],
            "views": [one.as_json() for one in views]}
