"""Read the questions that `ragbed construct computed` writes: each is asked over four versions of its documents
(worlds).

A record is one item with its chunks. For each world it lists the accepted answers, and the contents that differ from
the original by chunk index. In a world without answers, the correct reply is a refusal. `tables` has the indexes of the
chunks that the question is about, `keys` the columns that name their rows, and `plan` the computation.

    {"id": "computed-00004", "question": "In “Depots”, what is the “parcels” of the “depot” “Aster”?",
     "operation": "look-up", "language": "en", "source": "table", "keys": ["depot"],
     "plan": {"operation": "look-up", "fields": ["parcels"], "entities": ["Aster"], "where": []},
     "tables": [0],
     "documents": [{"source": "depots.csv",
       "content": "Depots\n\n| depot | parcels |\n| --- | --- |\n| Aster | 1,577 |\n| Birch | 904 |"}],
     "worlds": {"original": {"answers": ["1,577"], "contents": {}},
       "edited": {"answers": ["2,041"], "contents": {"0": "Depots\n\n| depot | parcels |..."}},
       "removed": {"answers": [], "contents": {"0": "..."}},
       "unrelated": {"answers": ["1,577"], "contents": {"0": "..."}}}}
"""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, product
from pathlib import Path
from typing import Literal

from ragbed.documents.rows import Row, convert_records
from ragbed.documents.types import Chunk, Document, digest
from ragbed.experiments.analysis.inputs import AnalysisInput, compute_figures, paired_change
from ragbed.experiments.analysis.pairs import difference_view, select_pairs
from ragbed.experiments.analysis.replicates import compare_groups, group_replicates, label_groups
from ragbed.experiments.analysis.view import Value, View
from ragbed.experiments.benchmarks.base import About, Loaded, RecordFiles
from ragbed.experiments.benchmarks.fields import gold_chunk, make_tags, passage
from ragbed.experiments.metrics.matching import same_answer
from ragbed.experiments.question import WORLDS, Question, Scheme, World
from ragbed.experiments.record import Result
from ragbed.experiments.statistics import Comparison


class Computed(RecordFiles):
    """A set of computed items; each world of an item is a question.

    Attributes:
        path: the set's folder, or a file of records.
    """

    about = About(
        paper="none: built by `ragbed construct computed`", licence="that of the documents it was built from",
        size="as many as were built, each in four worlds", get="ragbed construct computed SRC...",
        settings={"rules": "grounded", "conditions": "provided"})
    scheme = Scheme(
        groups=("worlds", "answers", "overlap", "form"), rubric="grades",
        columns=("original_right", "follow_rate", "stick_rate", "refusal_on_removal", "unrelated_right", "unified"),
        views=("by:operation", "by:language", "by:wording"))

    kind: Literal["computed"] = "computed"

    def loaded(self) -> Iterable[Loaded]:
        """Yield the four worlds of each record as questions, one after the other."""
        return chain.from_iterable(convert_records(_questions, self.rows()))

    def files(self) -> list[Path]:
        """Return the files to read. In the folder of a set, only `computed.jsonl` is read."""
        found = super().files()
        return [file for file in found if file.stem == "computed"] or found


def _questions(row: Row) -> list[Loaded]:
    worlds = row.fields.get("worlds")
    if not isinstance(worlds, dict) or set(worlds) != set(WORLDS):
        row.fail("worlds", f"an object of {', '.join(WORLDS)}", worlds)
    parts = {name: row.part(f"worlds.{name}", worlds[name]) for name in WORLDS}
    original = tuple(parts["original"].texts("answers"))
    records, tables = row.parts("documents"), row.decoded("tables", list, "the indexes of its tables")
    found: list[Loaded] = []
    for name, part in parts.items():
        made = [_passage(record, part, place) for place, record in enumerate(records)]
        answers = tuple(part.texts("answers"))
        found.append((Question(
            id=f"{row.filled('id')}-{name}", text=row.filled("question"), answers=answers, answerable=bool(answers),
            gold=tuple(gold_chunk(chunk) for place, (_, chunk) in enumerate(made) if place in tables),
            provided=tuple(chunk for _, chunk in made), world=World(name, original),
            tags=make_tags(world=name, item=row.filled("id"), **{
                tag: row.optional(tag) for tag in ("operation", "language", "source", "wording", "pair")})),
                      [document for document, _ in made]))
    return found


def _passage(record: Row, world: Row, place: int) -> tuple[Document, Chunk]:
    content = world.part("contents", world.fields.get("contents", {})).fields.get(str(place), record.text("content"))
    return passage(content, id=f"{record.filled('source')}#{digest(content)[:8]}")


_FIGURES = {"original right": "original_right", "follow rate": "follow_rate", "stick rate": "stick_rate",
            "follow rate where right": "follow_rate", "stick rate where right": "stick_rate",
            "refusal on removal": "refusal_on_removal", "unrelated right": "unrelated_right",
            "invariance": "unrelated_right"}
_OPERATION, _ALL = "operation", "all"
_ItemFigures = Mapping[str, Mapping[str, Result]]  # the result that has the score, by item and figure


def world_views(material: AnalysisInput) -> list[View]:
    """Return how often the answers of each cell follow the edited documents, by operation and in total, and a test of
    each pair of cells that differ in one factor, paired by item.
    """
    items = {cell["id"]: _group_by_item(material, material.results.get(cell["id"], ())) for cell in material.cells}
    kinds = dict.fromkeys(kind for one in material.questions.values() for kind in one.tags.get(_OPERATION, ()))
    rows: list[tuple[Value, ...]] = []
    for kind, (label, cell) in product([*kinds, _ALL], material.labelled()):
        own = [one for one in items[cell["id"]].values()
               if kind in (_ALL, *material.tags(one["follow rate"], _OPERATION))]
        found = {name: [one[name] for one in own if name in one] for name in _FIGURES}
        if own:
            rows.append((kind, label, len(own), *(
                compute_figures(material, cell, found[name], [metric])[0] for name, metric in _FIGURES.items())))
    if not rows:
        return []
    return [View("worlds", "Answers over edited documents, by operation", (_OPERATION, "cell", "n", *_FIGURES),
                 tuple(rows), 2, notes=(
                     "n counts items. Where right: among items that the cell answers correctly over the original "
                     "documents. Invariance: after an unrelated edit the reply gives the same answer as over the "
                     "original documents, right or wrong.",)), *_compare_cells(material, items)]


def _group_by_item(material: AnalysisInput, results: Sequence[Result]) -> _ItemFigures:
    """Return the results of each item whose four worlds were all asked."""
    asked: dict[str, dict[str, Result]] = defaultdict(dict)
    for result in results:
        if (world := material.questions[result.question].world) is not None:
            asked[result.question.removesuffix(f"-{world.name}")][world.name] = result
    return {item: _select_results(**one) for item, one in asked.items() if len(one) == len(WORLDS)}


def _select_results(original: Result, edited: Result, removed: Result, unrelated: Result) -> Mapping[str, Result]:
    same = same_answer((original.outcome, original.text), (unrelated.outcome, unrelated.text))
    right = original.scores.get("original_right")
    return {"original right": original, "follow rate": edited, "stick rate": edited, "refusal on removal": removed,
            "unrelated right": unrelated,
            "invariance": unrelated.model_copy(update={"scores": {"unrelated_right": float(same)}}),
            **({"follow rate where right": edited, "stick rate where right": edited} if right else {})}


def _compare_cells(material: AnalysisInput, items: Mapping[str, _ItemFigures]) -> list[View]:
    clusters = {item: material.clusters.get(one["follow rate"].question, item)
                for own in items.values() for item, one in own.items()}
    tested: list[tuple[tuple[Value, ...], Comparison]] = []
    for name, metric in _FIGURES.items():
        variants = group_replicates(material.cells, {id: {item: one[name] for item, one in own.items() if name in one}
                                                     for id, own in items.items()})
        called = dict(zip((one.first["id"] for one in variants), label_groups(variants), strict=True))
        couples = [(first, second) for _, first, second in select_pairs(variants)[0]]
        made = compare_groups(metric, couples, clusters, material.scoring, material.seed)
        tested += [((name, f"{called[first.first['id']]} → {called[second.first['id']]}"), comparison)
                   for (first, second), comparison in zip(couples, made, strict=True) if comparison is not None]
    notes = ("Pairs are items. Where right: among items that both cells answer correctly over the original documents. "
             "p (Holm) is corrected within a figure.",)
    return [difference_view("worlds:compared", "Answers over edited documents, between cells",
                            ("figure", "what changes"), tested, notes)] if tested else []


_WORDINGS, _RIGHT = ("literal", "paraphrased"), "right"
_CHANGE = "change"  # from -1 to 1, so it must not have a metric's name, whose bounds would apply


def twin_views(material: AnalysisInput) -> list[View]:
    """Return how much each cell loses if a question has none of its document's words: the share of right answers to
    literal and to paraphrased twins, and their difference. A second view tests whether cells that differ in one factor
    lose differently, such as a search for words and one for meaning. Such a difference is an interaction."""
    twins = {cell["id"]: _pair_twins(material, material.results.get(cell["id"], ())) for cell in material.cells}
    rows: list[tuple[Value, ...]] = []
    for label, cell in material.labelled():
        if pairs := list(twins[cell["id"]].values()):
            figures = [compute_figures(material, cell, [pair[side] for pair in pairs], [_RIGHT])[0] for side in (0, 1)]
            rows.append((label, len(pairs), *figures, paired_change(material, pairs, _RIGHT)))
    if not rows:
        return []
    losses = {id: {name: second.model_copy(update={"scores": {
        _CHANGE: (second.scores[_RIGHT] or 0) - (first.scores[_RIGHT] or 0)}}) for name, (first, second) in own.items()}
              for id, own in twins.items()}
    variants = group_replicates(material.cells, losses)
    called = dict(zip((one.first["id"] for one in variants), label_groups(variants), strict=True))
    couples = [(first, second) for _, first, second in select_pairs(variants)[0]]
    made = compare_groups(_CHANGE, couples, material.clusters, material.scoring, material.seed)
    tested = [((f"{called[first.first['id']]} → {called[second.first['id']]}",), comparison)
              for (first, second), comparison in zip(couples, made, strict=True) if comparison is not None]
    views = [View("twins", "Literal against paraphrased questions", ("cell", "pairs", *_WORDINGS, _CHANGE),
                  tuple(rows), main=4, signed=(_CHANGE,))]
    return views + [difference_view("twins:compared", "Change from literal to paraphrased questions, between cells",
                                    ("what changes",), tested)] * bool(tested)


def _pair_twins(material: AnalysisInput, results: Sequence[Result]) -> Mapping[str, tuple[Result, Result]]:
    """Return the results of literal and paraphrased twins with a score, by pair and world."""
    found: dict[str, dict[str, Result]] = defaultdict(dict)
    for one in results:
        for pair, wording in zip(material.tags(one, "pair"), material.tags(one, "wording"), strict=False):
            if one.scores.get(_RIGHT) is not None:
                found[":".join((pair, *material.tags(one, "world")))][wording] = one
    return {pair: (own["literal"], own["paraphrased"]) for pair, own in found.items() if own.keys() >= set(_WORDINGS)}
