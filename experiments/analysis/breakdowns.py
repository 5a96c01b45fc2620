"""Break figures down by tag, chain of sub-answers and history strategy, never mixing MRKE's two versions."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

from ragbed.experiments.analysis.inputs import Analysis, AnalysisInput, aggregate_cell, compute_figures
from ragbed.experiments.analysis.view import Value, View
from ragbed.experiments.cells import FACTORS, describe_factors, varying_factors
from ragbed.experiments.metrics import chain_pattern, estimate_clustered_share
from ragbed.experiments.record import Result

VERSIONS = ("original", "edited")


def apart(make: Analysis) -> Analysis:
    """Wrap an analysis so that it separates MRKE's versions. If the run has both, the first column shows the version.
    """
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


_AS_ASKED = "none"


def history(material: AnalysisInput) -> list[View]:
    """Show how each history strategy changes retrieval, compared with unchanged questions: the share of follow-up
    questions with different passages, and the shares with gold gained or lost."""
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
        shares = [estimate_clustered_share(hits, clusters) for hits in zip(*(_count_moved(*pair) for pair in searched),
                                                                           strict=True)]
        name = describe_factors(second, shared) or describe_factors(second, ["reasoning"])
        rows += [(second["history"], name, len(searched), *shares)] if shares else []
    if not rows:
        return []
    notes = [f"{left_out} pairs are left out because a question ended before its search."] * bool(left_out)
    return [View("history", "Effect of history strategies on retrieval", (
        "history", "cell", "n", "other passages", "gold gained", "gold lost"), tuple(rows), 2, notes=(
            "n counts follow-up questions. Each is compared with the same question under history: none. Gold is "
            "gained if some is shown with the strategy and none without it.", *notes))]


def _count_moved(before: Result, after: Result) -> tuple[bool, bool, bool]:
    found = [{passage.chunk for passage in one.evidence} for one in (before, after)]
    had, has = bool(before.gold_in_view), bool(after.gold_in_view)
    return found[0] != found[1], has and not had, had and not has


ALL = "all"
_ORDERS = {
    "task": ("Context", "Knowledge", "Reasoning"),  # as in MRCEval's Table 2
    "subtask": ("entity", "relation", "event", "counterfactual", "unanswerable", "inconsistent", "commonsense", "world",
                "domain", "logical", "arithmetic", "multi-hop", "temporal"),
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
_ALL_LISTED = 4  # longer chains list only patterns that occur; MRKE and MuSiQue have at most 4 steps


@apart
def chain(material: AnalysisInput) -> list[View]:
    """Return the share of each right/wrong pattern of sub-answers and the final answer, by exact match.

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
