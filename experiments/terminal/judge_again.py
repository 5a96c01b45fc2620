"""`ragbed judge` at work: the raters of a run's answers, and the table of their agreement."""
from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from agents.types import Cost
from experiments.analysis.agreement import Agreement, Rater, agreement_view, agreements
from experiments.analysis.notes import LEXICAL, unjudged
from experiments.running.labels import raters_of, write_sheet
from experiments.running.rejudge import Material, judges_named, material_of, rejudge
from experiments.runs.lock import hold
from experiments.runs.store import RunFolder
from experiments.settings import RunSettings
from experiments.settings.file import read_settings
from experiments.terminal.display import Bars, note, print_json, say, stoppable
from experiments.terminal.view_tables import print_views
from experiments.words import price


def judge_again(path: Path, names: Sequence[str], repeats: int, labels: Sequence[Path], sheet: Path | None,
                json: bool) -> None:
    """Judge, compare and show. The run's own judge is compared too, by what its records hold.

    Raises:
        UserError: what the user can mend.
    """
    with ExitStack() as opened:
        folder = RunFolder.existing(path)
        opened.callback(folder.close)
        settings = read_settings(path / "config.yaml")
        material = material_of(folder, settings)
        people = raters_of(labels, material)
        if sheet is not None:
            write_sheet(sheet, material)
            note(f"sheet: {len(material.graded)} answers to grade in {sheet}")
        names = names or ([settings.judge.name] if repeats > 1 else [])
        if sheet is not None and not names and not people:
            if json:
                print_json({"run": str(path), "sheet": str(sheet), "answers": len(material.graded)})
            return
        raters, spent = _judged(folder, settings, material, names, repeats, opened)
    raters += people
    found = agreements(raters, material.rubric, material.steps, settings.seed)
    if json:
        print_json({**_as_json(path, material, raters, found, spent), "temperature": settings.calls.temperature})
    else:
        _show(settings, material, raters, found, spent)


def _judged(folder: RunFolder, settings: RunSettings, material: Material, names: Sequence[str], repeats: int,
            opened: ExitStack) -> tuple[list[Rater], Cost]:
    """The run's own verdicts, unless its judge is asked anew, and those of the judges."""
    own = settings.judge.name
    recorded = [] if own in names else [Rater(f"{own} (the run's)", material.recorded)]
    if not names:
        return recorded, Cost()
    judges = judges_named(names, settings)
    opened.callback(hold(folder.path).close)
    with stoppable("what was judged is kept in the run's journal, and the same command continues"), Bars() as bars:
        judged, spent = asyncio.run(rejudge(folder, settings, material, judges, repeats, bars))
    return recorded + judged, spent


def _as_json(path: Path, material: Material, raters: Sequence[Rater], found: Sequence[Agreement],
             spent: Cost) -> dict[str, Any]:
    return {"run": str(path), "rubric": material.rubric, "answers": len(material.graded),
            "raters": [{"name": rater.name, "answers": len(rater.verdicts),
                        "unjudged": sum(verdict.unjudged for verdict in rater.verdicts.values()),
                        "why": unjudged(rater.verdicts.values())} for rater in raters],
            "pairs": [asdict(pair) for pair in found],
            "views": [agreement_view(found, material.rubric, len(material.graded)).as_json()] if found else [],
            "calls": spent.attempts, "replayed": spent.replayed, "paid": spent.paid}


def _show(settings: RunSettings, material: Material, raters: Sequence[Rater], found: Sequence[Agreement],
          spent: Cost) -> None:
    say(settings.name)
    if found:
        print_views([agreement_view(found, material.rubric, len(material.graded))])
    else:
        say(f"{raters[0].name} alone has nobody to agree with; give --judge, --repeats or --labels")
    for rater in raters:
        if why := unjudged(rater.verdicts.values()):
            say(f"{rater.name}: {why}.")
    if any(rater.name.startswith("lexical") for rater in raters):
        say(LEXICAL)
    if settings.calls.temperature == 0 and any(rater.name.endswith(" #2") for rater in raters):
        say("Repeats are asked at the run's temperature, 0: they differ in their seed and in what the server leaves to "
            "chance, so their agreement says little of how sure the judge is.")
    note(f"{spent.attempts} calls sent and {spent.replayed} from the journal, paid now {price(spent.paid)}")
