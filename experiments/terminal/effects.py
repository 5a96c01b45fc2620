"""`ragbed effects` at work: main effects and interactions of a run's factors, as tables."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from documents.errors import RunError, SettingsError
from experiments.analysis.effects import effects, with_short_names
from experiments.analysis.side import Side, read_side
from experiments.metrics import metric_named, shown_name
from experiments.statistics import ALPHA, clusters
from experiments.terminal.display import print_json, print_table, say
from experiments.words import figure, probability

_LONGEST = 64  # combinations above which an interaction is not listed
_ALL = 10  # contrasts, which are those of five levels, above which the real ones alone are listed


def show_effects(path: Path, metric: str | None, json: bool) -> None:
    """Estimate and show.

    Raises:
        UserError: there is no finished run, fewer than two factors vary in it, or no question of it has the metric.
    """
    run = read_side(path)
    name = metric or run.columns[0].split(" / ")[0]
    _check(run, name)
    found = effects(run.rows, run.answers, clusters(run.questions.values()), name, run.scoring)
    if found is None:
        raise RunError(f"{path}: effects are of two factors and more, besides repeats and seeds, and no two vary "
                       f"between its cells with {name}; those of one are the comparisons of `ragbed compare {path}`")
    if json:
        print_json({"run": str(path), "scoring": run.scoring, "judge": run.judge, **found})
        return
    found = with_short_names(found)
    title = f"{run.name}: {shown_name(name, run.judge)}, {run.scoring} scoring"
    if found["factors"]:
        print_table(["factor", "level", "answers", "mean [95 %]", "effect [95 %]", "p", "p (Holm)"],
                    _rows(found["factors"]), title=f"{title}: main effects", keys=2)
        say("")
        _show_contrasts(title, found["factors"])
    _show_interactions(title, found["interactions"])
    for text in found["notes"]:
        say(text)


def _check(run: Side, name: str) -> None:
    known = metric_named(name)
    if known.of_set:
        raise SettingsError(f"{name} is computed of a whole set, and no question has one; effects are of metrics that "
                            "questions have, such as those that it is made of")
    if name not in run.metrics:
        own = dict.fromkeys(one for answers in run.answers.values() for row in answers.values() for one in row.scores)
        raise SettingsError(f"{name} is no metric of {run.path}; there are: {', '.join(own)}")


def _rows(factors: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """The test stands beside the first level."""
    return [[one["factor"] if first else "", row["level"], *_figures(row), *(_tests(one) if first else ["", ""])]
            for one in factors for first, row in _marked(one["levels"])]


def _show_contrasts(title: str, factors: Sequence[Mapping[str, Any]]) -> None:
    """A table of the levels of each factor against each other, the surest first; of many, of the real ones."""
    rows, more = [], []
    for factor in factors:
        every = sorted(factor["contrasts"], key=lambda one: (_corrected(one), -abs(one["difference"])))
        shown = every if len(every) <= _ALL else [one for one in every if _corrected(one) < ALPHA]
        rows += [[factor["factor"] if first else "", one["second"], one["first"],
                  figure(one["difference"], one["low"], one["high"], "+z.2f"), *_tests(one)]
                 for first, one in _marked(shown)]
        if factor["p"] is None:
            more.append(f"There are too few questions to test {factor['factor']}.")
        if len(shown) < len(every):
            more.append(f"Of {len(every)} pairs of levels of {factor['factor']}, {len(shown)} are really different; "
                        "all are shown with --json.")
    if rows:
        print_table(["factor", "level", "against", "difference [95 %]", "p", "p (Holm)"], rows,
                    title=f"{title}: level against level", keys=3)
    for text in [*more, ""]:
        say(text)


def _corrected(one: Mapping[str, Any]) -> float:
    return 1.0 if one["p_holm"] is None else float(one["p_holm"])


def _show_interactions(title: str, interactions: Sequence[Mapping[str, Any]]) -> None:
    """A table of those that are real; one line for each of the others."""
    for one in interactions:
        named, p = " x ".join(one["factors"]), one["p_holm"]
        if p is None or p >= ALPHA or len(one["cells"]) > _LONGEST:
            why = "there are too few questions to test it" if p is None else f"p (Holm) {probability(p)}"
            say(f"Interaction {named}: {why}; its {len(one['cells'])} combinations are shown with --json.")
            continue
        rows = [[*row["levels"], *_figures(row), *(_tests(one) if first else ["", ""])]
                for first, row in _marked(one["cells"])]
        print_table([*one["factors"], "answers", "mean [95 %]", "effect [95 %]", "p", "p (Holm)"], rows,
                    title=f"{title}: interaction {named}", keys=2)
        say("")


def _marked(rows: Sequence[Mapping[str, Any]]) -> list[tuple[bool, Mapping[str, Any]]]:
    return [(place == 0, row) for place, row in enumerate(rows)]


def _figures(row: Mapping[str, Any]) -> list[str]:
    return [str(row["n"]), figure(row["mean"], row["low"], row["high"]),
            figure(row["effect"], row["effect_low"], row["effect_high"], "+z.2f")]


def _tests(one: Mapping[str, Any]) -> list[str]:
    return [probability(one["p"]), probability(one["p_holm"])]
