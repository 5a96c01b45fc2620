"""Show mined negatives and dose curves in the terminal."""
from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ragbed.documents.errors import RunError
from ragbed.experiments.analysis.notes import ON_MINERS
from ragbed.experiments.formatting import plural
from ragbed.experiments.guests.hard_negatives.benchmark import DECISIONS, MinedManifest
from ragbed.experiments.guests.hard_negatives.dose import compute_run_dose
from ragbed.experiments.guests.hard_negatives.dose_views import dose_views, label_replicates
from ragbed.experiments.guests.hard_negatives.guard import REASONS
from ragbed.experiments.metrics import find_metric
from ragbed.experiments.runs.finished import open_finished
from ragbed.experiments.terminal.display import print_json, print_table, print_text, say
from ragbed.experiments.terminal.run_tables import print_views

_MAX_SHOWN = 5  # questions with fewer negatives, listed one by one


def show_mining(manifest: MinedManifest, out: Path) -> None:
    """Show the negatives kept, their hardness, rejections with reasons, and questions with fewer negatives."""
    counts, miners = manifest.counts, manifest.counts["miners"]
    say(f"{counts['kept']} negatives of {counts['wanted']} wanted for {plural(counts['questions'], 'question')}, "
        f"{counts['filled_up_with']} of them to fill questions up; {out}")
    names = [*manifest.mining["miners"], *(name for name in miners if name not in manifest.mining["miners"])]
    rows = [[what, str(counts["candidates"][reason]), *(str(miners.get(name, {}).get(reason, 0)) for name in names)]
            for reason, what in (("kept", "kept"), *REASONS.items())
            if reason == "kept" or counts["candidates"][reason]]
    print_table(["candidates", "all", *names], rows)
    guard = counts["guard"]
    print_table(["best rank", "kept", "rejected"],
                [[band, str(each["kept"]), str(each["rejected"])] for band, each in guard["ranks"].items()])
    kept, rejected = guard["hardness"]["kept"], guard["hardness"]["rejected"]
    if kept is not None and rejected is not None:
        which = "more" if rejected > kept else "not more"
        print_text(f"Candidates that the guard rejected are {which} similar to the question than kept ones: mean "
                   f"hardness {rejected:.2f} and {kept:.2f}.")
    print_text(_say_what_was_checked(guard["checked"], counts["questions"]))
    for text in manifest.collection.get("judged", ()):
        print_text(text)
    print_table(["hardness, in thirds of each question's negatives", "n", "min", "mean", "max"], [
        [bucket, str(each["n"]), *(f"{each[name]:.2f}" for name in ("least", "mean", "greatest"))]
        for bucket, each in counts["hardness"].items()])
    say(f"{plural(len(manifest.short), 'question')} got fewer than wanted; manifest.json lists them all"
        if manifest.short else "every question got as many as wanted")
    for id, each in list(manifest.short.items())[:_MAX_SHOWN]:
        say(f"  {id}: {each['kept']} of {each['wanted']}, {each['rejected']} rejected; {each['why']}")
    say(f"all rejected candidates, with the reason: {out / DECISIONS}")
    say(f"to use the negatives: ragbed run mined {out}")


def _say_what_was_checked(checked: Mapping[str, int], questions: int) -> str:
    """Say in one line what the guard could compare, and what it cannot see."""
    parts = [f"with the answers for {plural(checked['answers'], 'question')}",
             f"with the gold texts for {checked['gold']} without answers to search for",
             f"with nothing for {checked['neither']} that have neither"]
    names = ("answers", "gold", "neither")
    compared = ", ".join(part for part, name in zip(parts, names, strict=True) if checked[name])
    more = "" if checked["reranker"] == questions else " (--reranker late_interaction)"
    return (f"The guard compared candidates {compared}, and a reranker for {checked['reranker']} of {questions}{more}. "
            "It does not see an answer in entirely other words.")


def show_dose(path: Path, metric: str | None, json: bool) -> None:
    """Compute the dose curves of a run and the areas under them, and show them.

    Raises UserError if the run is not finished, no two cells differ only in the dose, or no curve has the metric.
    """
    if metric is not None:
        find_metric(metric)
    with open_finished(path) as run:
        run.refuse_race()
        found = compute_run_dose(run, metric or run.summary["columns"][0].split(" / ")[0])
        if found is None:
            raise RunError(f"{path}: no two cells differ only in the number or the hardness of negatives; see "
                           "`ragbed dose --help` for perturbations that make a curve")
        if metric is not None and metric not in found["metrics"]:
            known = dict.fromkeys(name for row in run.rows for name, one in row["metrics"].items() if one["n"])
            raise RunError(f"{path}: its curves do not have the metric {metric}; choose from: {', '.join(known)}")
        miners = [note for note in run.summary["notes"] if note.startswith(ON_MINERS)]
        first = run.rows[0]
        found = {"run": str(run.path), "scoring": first["scoring"], "judge": first["judge"], **found,
                 "notes": [*found["notes"], *miners]}
        views = dose_views(found, label_replicates(run.rows), first["judge"])
        if json:
            print_json({**found, "views": [view.as_json() for view in views]})
            return
        say(run.name)
        say("")
        print_views(views, first["judge"])
