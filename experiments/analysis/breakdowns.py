"""Break a run's figures down by tag, document order, chain of sub-answers, question version and conversation.

Document order is an ablation of MDBench. Chain outcomes (Table 5) and the gap between original and edited questions
come from MRKE. No figure mixes MRKE's two versions of a question.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

from ragbed.experiments.analysis.inputs import Analysis, AnalysisInput, aggregate_cell, compute_figures, paired_change
from ragbed.experiments.analysis.view import Value, View
from ragbed.experiments.benchmarks.mrceval import TASKS
from ragbed.experiments.cells import FACTORS, describe_factors, varying_factors
from ragbed.experiments.metrics import chain_pattern, estimate_clustered_share
from ragbed.experiments.record import Result

VERSIONS = ("original", "edited")


def apart(make: Analysis) -> Analysis:
    """Wrap an analysis so that it treats MRKE's versions separately. If the run has both, the version is the first
    key."""
    def made(material: AnalysisInput) -> list[View]:
        if not all(any(version in question.tags.get("version", ()) for question in material.questions.values())
                   for version in VERSIONS):
            return make(material)
        views = [(version, view) for version in VERSIONS for view in make(_part(material, version))]
        if not views:
            return []
        first = views[0][1]
        return [replace(first, header=("version", *first.header), keys=first.keys + 1,
                        rows=tuple((version, *row) for version, view in views for row in view.rows),
                        notes=tuple(dict.fromkeys(note if note in first.notes else f"{version}: {note}"
                                                  for version, view in views for note in view.notes)))]
    return made


def _part(material: AnalysisInput, version: str) -> AnalysisInput:
    results = {cell: [one for one in found if version in material.tags(one, "version")]
               for cell, found in material.results.items()}
    cells = [{**cell, "n": len(results[cell["id"]]),
              "metrics": aggregate_cell(material, cell, results[cell["id"]])} for cell in material.cells]
    questions = {id: question for id, question in material.questions.items()
                 if version in question.tags.get("version", ())}
    return replace(material, cells=cells, results=results, questions=questions)


_ORDER = {None: "original", "unnumbered": "separators off", "shuffle": "shuffled",
          "shuffle+unnumbered": "separators off, shuffled"}
_SAME = tuple(name for name in FACTORS if name not in ("perturbation", "seed"))


def order(material: AnalysisInput) -> list[View]:
    """Compare cells that differ only in the order and numbering of their documents with the original order, question by
    question."""
    shared = [name for name in varying_factors(material.cells) if name != "perturbation"]
    rows: list[tuple[Value, ...]] = []
    for group in _groups(material.cells):
        for cell in group:
            results = material.results[cell["id"]]
            original = next((one for one in group if cell["perturbation"] and one["perturbation"] is None
                             and one.get("seed") in (None, cell.get("seed"))), None)
            before = {result.question: result for result in material.results[original["id"]]} if original else {}
            pairs = [(before[result.question], result) for result in results if result.question in before]
            means = compute_figures(material, cell, results, material.each)
            name = describe_factors(cell, shared) or describe_factors(cell, ["reasoning"])
            rows.append((_ORDER[cell["perturbation"]], name, len(results), *(
                value for mean, metric in zip(means, material.each, strict=True)
                for value in (mean, paired_change(material, pairs, metric)))))
    if not rows:
        return []
    header = [name for metric in material.each for name in (material.shown(metric), f"{metric}: change")]
    return [View("order", "Order of the documents", ("documents", "cell", "n", *header), tuple(rows), 2,
                 notes=("`change` is the mean difference from the original, question by question.",),
                 signed=tuple(f"{metric}: change" for metric in material.each))]


def _groups(cells: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Return groups of cells that differ only in document order and numbering, and include the original order."""
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for cell in cells:
        if cell["perturbation"] in _ORDER and cell["condition"] != "closed-book":
            groups.setdefault(tuple(str(cell.get(name)) for name in _SAME), []).append(cell)
    names = list(_ORDER)
    return [sorted(group, key=lambda cell: names.index(cell["perturbation"])) for group in groups.values()
            if {None} < {cell["perturbation"] for cell in group}]


_AS_ASKED = "none"


def history(material: AnalysisInput) -> list[View]:
    """Show how each history strategy changes retrieval, compared with asking questions unchanged: the share of
    follow-up questions with different passages, and the shares with gold gained or lost."""
    cells = [cell for cell in material.cells if cell["condition"] == "retrieved"]
    shared = [name for name in varying_factors(cells) if name != "history"] if cells else []
    rows: list[tuple[Value, ...]] = []
    left_out = 0
    for first, second in product(cells, cells):
        if first.get("history") != _AS_ASKED or second.get("history") in (None, _AS_ASKED) or any(
                first.get(name) != second.get(name) for name in FACTORS if name != "history"):
            continue
        before = {one.question: one for one in material.results[first["id"]]}
        pairs = [(before[one.question], one) for one in material.results[second["id"]]
                 if one.question in before and material.questions[one.question].turns]
        searched = [pair for pair in pairs if all(one.evidence or one.failure is None for one in pair)]
        left_out += len(pairs) - len(searched)
        clusters = material.clusters_of(one for one, _ in searched)
        shares = [estimate_clustered_share(hits, clusters) for hits in zip(*(_moved(*pair) for pair in searched),
                                                                           strict=True)]
        name = describe_factors(second, shared) or describe_factors(second, ["reasoning"])
        rows += [(second["history"], name, len(searched), *shares)] if shares else []
    if not rows:
        return []
    notes = [f"{left_out} pairs are left out because a question ended before its search."] * bool(left_out)
    return [View("history", "Effect of history strategies on retrieval", (
        "history", "cell", "n", "other passages", "gold gained", "gold lost"), tuple(rows), 2, notes=(
            "n counts follow-up questions, each paired with the same question without a strategy (history: none). Gold "
            "is gained if some is shown now and none was before.", *notes))]


def _moved(before: Result, after: Result) -> tuple[bool, bool, bool]:
    found = [{passage.chunk for passage in one.evidence} for one in (before, after)]
    had, has = bool(before.gold_in_view), bool(after.gold_in_view)
    return found[0] != found[1], has and not had, had and not has


_METRICS = ("em", "f1")


def gap(material: AnalysisInput) -> list[View]:
    """Compare each cell's scores on original and edited questions of the same `pair`, by the number of hops of the
    edited one.

    An original counts once for each of its edited versions. The change is the edited question's score minus the
    original's. It is negative if memorised knowledge helps with the original.
    """
    metrics = [name for name in _METRICS if any(name in result.scores for results in material.results.values()
                                                for result in results)]
    rows = [row for label, cell in material.labelled() for row in _gap_rows(material, label, cell, metrics)]
    if not rows:
        return []
    header = [words for name in metrics for words in (f"{name}: original", f"{name}: edited", f"{name}: change")]
    rows.sort(key=lambda row: str(row[0]))
    return [View("gap", "Original against edited questions", ("hops", "cell", "n", *header), tuple(rows), 2, 5,
                 ("n counts pairs: an original counts once for each of its edited versions. `change` is the edited "
                  "question's score minus the original's.",), signed=tuple(f"{name}: change" for name in metrics))]


def _gap_rows(material: AnalysisInput, label: str, cell: Mapping[str, Any],
              metrics: Sequence[str]) -> list[tuple[Value, ...]]:
    originals: dict[str, Result] = {}
    for result in material.results[cell["id"]]:
        if "original" in material.tags(result, "version"):
            originals |= dict.fromkeys(material.tags(result, "pair"), result)
    pairs = [(originals[name], result) for result in material.results[cell["id"]]
             if "edited" in material.tags(result, "version") for name in material.tags(result, "pair")
             if name in originals]
    by_hops: dict[str, list[tuple[Result, Result]]] = {}
    for pair in pairs:
        for hops in material.tags(pair[1], "hops"):
            by_hops.setdefault(hops, []).append(pair)
    parts = by_hops if len(by_hops) > 1 else {}
    rows: list[tuple[Value, ...]] = []
    for hops, part in [*sorted(parts.items()), (ALL, pairs)]:
        sides = [compute_figures(material, cell, [pair[side] for pair in part], metrics) for side in (0, 1)]
        if part:
            rows.append((hops, label, len(part), *(value for name, original, edited in zip(metrics, *sides, strict=True)
                                                   for value in (original, edited, paired_change(material, part,
                                                                                                 name)))))
    return rows


ALL = "all"
_ORDERS = {
    "task": tuple(dict.fromkeys(TASKS.values())),
    "subtask": tuple(TASKS),
    "difficulty_type": ("SimpleQA", "ComplexQA"),
    "version": VERSIONS}


def by_tag(material: AnalysisInput, tag: str) -> list[View]:
    """Return each cell's figures for the questions with each value of the tag, and for all questions. The row `all` is
    computed from the questions, not averaged from the other rows."""
    return _by_tag(material, tag) if tag == "version" else apart(partial(_by_tag, tag=tag))(material)


def _by_tag(material: AnalysisInput, tag: str) -> list[View]:
    order, every = _ORDERS.get(tag, ()), material.questions.values()
    values = sorted({value for question in every for value in question.tags.get(tag, ())}, key=lambda value: (
        order.index(value) if value in order else len(order), int(value) if value.isdecimal() else 0, value))
    untagged = any(tag not in question.tags for question in every)
    if len(values) + untagged < 2 or not values:
        return []
    words = tag.replace("_", " ")
    rows: list[tuple[Value, ...]] = []
    for value, (label, cell) in product([*values, *([None] if untagged else [])], material.labelled()):
        chosen = [result for result in material.results[cell["id"]]
                  if (value in material.tags(result, tag) if value is not None else not material.tags(result, tag))]
        if chosen:
            rows.append((f"no {words}" if value is None else value, label, len(chosen),
                         *compute_figures(material, cell, chosen, material.metrics)))
    rows += [(ALL, label, cell["n"], *(cell["metrics"].get(name) for name in material.metrics))
             for label, cell in material.labelled()]
    several = sum(len(question.tags.get(tag, ())) > 1 for question in every)
    return [View(f"by:{tag}", f"By {words}", (words, "cell", "n", *map(material.shown, material.metrics)), tuple(rows),
                 2, notes=(f"{several} questions have several values and count in each.",) if several else ())]


RIGHT, LUCKY = "right for the right reason", "lucky: right answer, a step wrong"
_ALL_LISTED = 4  # steps up to which all patterns are listed: MRKE and MuSiQue have at most 4


@apart
def chain(material: AnalysisInput) -> list[View]:
    """Return the share of each right/wrong pattern of N sub-answers and the final answer (2^(N+1) patterns), by exact
    match.

    An answer is right for the right reason if all sub-answers are correct too, and lucky if only the final answer is.
    For more than four sub-questions, only patterns that occur are listed. A note counts the questions without a scored
    chain, which are left out.
    """
    patterns = {cell["id"]: ["".join("c" if right else "w" for right in chain_pattern(result.scores))
                             for result in material.results[cell["id"]]] for cell in material.cells}
    hops = sorted({len(pattern) - 1 for found in patterns.values() for pattern in found if pattern})
    rows = [row for count in hops for row in _chain_rows(material, patterns, count)]
    if not rows:
        return []
    left_out = sum(found.count("") for found in patterns.values())
    notes = [f"{left_out} answers without a scored chain are left out."] if left_out else []
    return [View("chain", "Chain outcomes", ("sub-questions", "outcome", "cell", "n", "share"), tuple(rows), 3, notes=(
        "Each pattern lists the sub-answers and then the final answer: c is correct, w is wrong, by exact "
        "match.", *notes))]


def _chain_rows(material: AnalysisInput, patterns: Mapping[str, Sequence[str]], hops: int) -> list[tuple[Value, ...]]:
    found = {cell: [one for one in patterns[cell] if len(one) == hops + 1] for cell in patterns}
    clusters = {cell: [of for one, of in zip(patterns[cell], material.clusters_of(material.results[cell]), strict=True)
                       if len(one) == hops + 1] for cell in patterns}
    every = sorted(set().union(*found.values()))
    if hops <= _ALL_LISTED:
        every = ["".join(letters) for letters in product("cw", repeat=hops + 1)]
    wrong_somewhere = [one for one in every if one.endswith("c") and "w" in one]
    groups = [(" ".join(one), [one]) for one in every] + [(RIGHT, ["c" * (hops + 1)]), (LUCKY, wrong_somewhere)]
    return [(str(hops), words, label, len(found[cell["id"]]),
             estimate_clustered_share([one in members for one in found[cell["id"]]], clusters[cell["id"]]))
            for words, members in groups for label, cell in material.labelled() if found[cell["id"]]]
