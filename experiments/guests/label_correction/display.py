"""Show how far judges and people agree, and scores corrected by human labels."""
from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from ragbed.agents.types import Cost
from ragbed.experiments.analysis.notes import LEXICAL, describe_unjudged
from ragbed.experiments.analysis.view import View
from ragbed.experiments.formatting import format_price
from ragbed.experiments.guests.label_correction.agreement import agreement_view, measure_agreement
from ragbed.experiments.guests.label_correction.inference import corrected_views
from ragbed.experiments.guests.label_correction.sheets import read_raters, write_sheet
from ragbed.experiments.guests.rescoring.rejudge import Material, Rater, find_judges, read_material, rejudge
from ragbed.experiments.runs.finished import Finished
from ragbed.experiments.runs.store import RunFolder, lock_run
from ragbed.experiments.settings import RunSettings
from ragbed.experiments.settings.file import read_settings
from ragbed.experiments.terminal.display import Bars, note, print_json, say, stoppable
from ragbed.experiments.terminal.tables import print_views


def show_agreement(path: Path, names: Sequence[str], repeats: int, labels: Sequence[Path], sheet: Path | None,
                json: bool) -> None:
    """Judge the answers, compare all raters with each other, and show it. The verdicts that the run recorded count as
    one rater. Raises UserError for errors that the user can fix."""
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
        raters, spent = _judged(folder, settings, material, names, repeats, opened)
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


def _judged(folder: RunFolder, settings: RunSettings, material: Material, names: Sequence[str], repeats: int,
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
    note(f"{spent.attempts} calls sent and {spent.replayed} from the journal, paid now {format_price(spent.paid)}")
