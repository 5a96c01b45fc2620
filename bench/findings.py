"""Test claims of five papers again with one model, on public data in their formats: the tables of `docs/findings.md`.

    python bench/findings.py --model http://127.0.0.1:8000/v1#NAME --data FOLDER [RUN ...] [--limit N]

The script starts or continues the runs of `findings.yaml`, and prints the tables of all claims whose runs have
finished. ragbed computes the tests, the intervals and the detectable differences. Without `--model` no question is
asked.
"""
from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml
from conversion import Draw
from convert import convert

from ragbed.documents import SettingsError, UserError
from ragbed.experiments import RunSettings, run
from ragbed.experiments.cells import FACTORS
from ragbed.experiments.formatting import estimate, fmt2, format_difference, format_p
from ragbed.experiments.guests.run_comparison.compared_run import ComparedRun, read_compared_run
from ragbed.experiments.metrics import ScoredQuestion, aggregate
from ragbed.experiments.settings.file import split_runs
from ragbed.experiments.statistics import Comparison, cluster_questions, compare, pair_scores

FILE = Path(__file__).with_suffix(".yaml")
OUT = Path("runs/findings")
_NOBODY = "http://127.0.0.1:1/v1#nobody"
_QUESTIONS = 100  # of each source
_COMMON = {"out": str(OUT), "concurrency": 16, "limits": {"max_tokens": 256, "seconds": 3600},
           "calls": {"calls": {"seconds": 1800}}}  # on two cores calls wait long for each other
_HEADER = ("what changes", "n", "before [95 %]", "after [95 %]", "difference [95 %]", "p (Holm)", "could have shown",
           "claim", "reply tokens")


def settings_of(name: str, stated: Mapping[str, Any], model: str, limit: int | None = None) -> RunSettings:
    """Return the settings of a run of `findings.yaml`."""
    own = {key: value for key, value in stated.items() if key not in ("data", "folder")}
    benchmark = {**stated["benchmark"], **({"path": stated["folder"]} if "folder" in stated else {})}
    if limit is not None:
        name, benchmark = f"{name}-{limit}", {**benchmark, "sample": limit}
    return split_runs({"models": model, **_COMMON, **own, "benchmark": benchmark, "name": name}, str(FILE))[0]


def prepare(stated: Mapping[str, Any], data: Path | None) -> None:
    """Write a run's questions into its folder, unless it is there."""
    if "folder" not in stated or Path(stated["folder"]).exists():
        return
    if data is None:
        raise SettingsError(f"{stated['folder']} is not there; name the folder of the public data with --data")
    target, source = stated["data"].split()
    name, _, path = source.partition("=")
    convert(target, [f"{name}={data / path}"], Draw(limit=_QUESTIONS), Path(stated["folder"]))


def carried_out(known: Mapping[str, Any], given: argparse.Namespace) -> Iterator[tuple[str, ComparedRun]]:
    """Yield each run by its name: those that are wanted carried out first, of the others those that have finished."""
    for name, stated in known.items():
        settings = settings_of(name, stated, given.model or _NOBODY, given.limit)
        if given.model and name in (given.runs or known):
            prepare(stated, given.data)
            run(settings).close()
        if (settings.folder / "summary.json").exists():
            yield name, read_compared_run(settings.folder)


_Scores = Mapping[str, ScoredQuestion]


def side_of(found: ComparedRun, side: Mapping[str, Any], metric: str) -> tuple[float, _Scores]:
    """Return how many tokens a reply of one cell has, and its scores by question, the side's own metric under the name
    of the claim's. An edited question and its original have one name."""
    cells = [row for row in found.rows if all(row.get(key) == side[key] for key in FACTORS if key in side)]
    if len(cells) != 1:
        raise SettingsError(f"{dict(side)} are {len(cells)} cells of {found.path}, expected one")
    version, hops = side.get("version"), side.get("hops")
    rows = {name: row for name, row in found.answers[cells[0]["id"]].items() if all(
        wanted is None or wanted in found.questions[name].tags.get(tag, ()) for tag, wanted in
        (("version", version), ("hops", hops)))}
    return cells[0]["usage"]["completion_tokens"] / cells[0]["n"], {
        name.removesuffix("-original"): ScoredQuestion(row.answerable, row.outcome, {
            metric: row.scores.get(side.get("metric", metric))}) for name, row in rows.items()}


def seen(expected: str, one: Comparison) -> str:
    """Return whether a comparison is as the paper lets expect."""
    if not one.n:
        return "no paired test"
    found = "same" if not one.real else "higher" if (one.difference or 0) > 0 else "lower"
    return ("seen" if found == expected != "same" else "not seen" if found == "same" != expected else
            "no difference seen" if found == expected else "a difference seen" if expected == "same" else
            "the opposite seen")


def lines(claim: Mapping[str, Any], runs: Mapping[str, ComparedRun]) -> Iterator[str]:
    """Yield the table of a claim as lines of Markdown; p is corrected over the rows."""
    metric, sides = claim["metric"], [claim["before"], *({**claim["before"], **after} for after in claim["after"])]
    first = runs[sides[0]["run"]]
    grouped = cluster_questions(first.questions.values())
    (tokens, before), *others = (side_of(runs[side["run"]], side, metric) for side in sides)
    tests = compare([pair_scores(metric, before, after, grouped.of) for _, after in others], first.seed)
    yield f"### {claim['claim']} ({claim['paper']}), by {metric}\n"
    yield f"| {' | '.join(_HEADER)} |\n{'|---' * len(_HEADER)}|"
    for after, (taken, rows), one in zip(claim["after"], others, tests, strict=True):
        changed = ", ".join(f"{claim['before'].get(key) or 'as it is'} → {value}" for key, value in after.items())
        paired = (str(one.n), estimate(one.before, one.before_low, one.before_high),
                  estimate(one.after, one.after_low, one.after_high), format_difference(one), format_p(one.p_holm),
                  "-" if one.smallest is None else fmt2(one.smallest), seen(claim["expects"], one))
        row = (changed, *(paired if one.n else _apart(metric, before, rows, grouped.of)), f"{tokens:.0f} → {taken:.0f}")
        yield f"| {' | '.join(row)} |"
    yield f"\n{grouped.note}"


def effect_of(found: ComparedRun, effect: Any, metric: str) -> dict[str, float]:
    """Return the scores of a cell by question, or by pair of twins if the effect names a wording. Of a list of two
    effects, return the second minus the first."""
    if not isinstance(effect, Mapping):
        first, second = (effect_of(found, one, metric) for one in effect)
        return {name: second[name] - value for name, value in first.items() if name in second}
    rows, wording = side_of(found, effect, metric)[1], effect.get("wording")
    tags = {name: found.questions[name].tags for name in rows}
    return {tags[name]["pair"][0] if wording else name: float(row.scores[metric] or 0) for name, row in rows.items()
            if not wording or wording in tags[name].get("wording", ())}


def interaction_lines(stated: Sequence[Mapping[str, Any]], found: ComparedRun) -> Iterator[str]:
    """Yield a table of interactions in one run: whether an effect differs between two groups of cells."""
    clusters = cluster_questions(found.questions.values()).of
    yield "### Interactions\n\n| effect | n | before | after | difference [95 %] | p |\n|---|---|---|---|---|---|"
    for one in stated:
        before, after = ({name: ScoredQuestion(True, "answered", {one["metric"]: value}) for name, value in effect_of(
            found, one[side], one["metric"]).items()} for side in ("before", "after"))
        test, = compare([pair_scores(one["metric"], before, after, clusters)], found.seed)
        yield (f"| {one['name']} | {test.n} | {test.before:.2f} | {test.after:.2f} | {format_difference(test)} | "
               f"{format_p(test.p_holm)} |")


def _apart(metric: str, before: _Scores, after: _Scores, clusters: Mapping[str, str]) -> tuple[str, ...]:
    """Columns of two sides that share no question."""
    sides = [aggregate(list(rows.values()), clusters=[clusters.get(name, name) for name in rows])[metric]
             for rows in (before, after)]
    return (" and ".join(str(one["n"]) for one in sides),
            *(estimate(one["mean"], one["low"], one["high"]) for one in sides), "-", "-", "-",
            "other questions: no paired test")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", metavar="RUN", help="runs of findings.yaml; all by default")
    parser.add_argument("--model", help="model to ask")
    parser.add_argument("--data", type=Path, help="the folder of the public data, with the paths of findings.yaml")
    parser.add_argument("--limit", type=int, help="ask only this many questions per run, as a trial")
    given = parser.parse_args()
    known = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    try:
        runs = dict(carried_out(known["runs"], given))
        for claim in known["claims"]:
            if all(side.get("run", claim["before"]["run"]) in runs for side in (claim["before"], *claim["after"])):
                print(*lines(claim, runs), sep="\n")
        for name, stated in groupby(known["interactions"], lambda one: str(one["run"])):
            if name in runs:
                print(*interaction_lines([*stated], runs[name]), sep="\n")
    except UserError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
