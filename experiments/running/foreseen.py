"""What is known of a run before its first call: the chunks that questions will be shown, what a judge will be asked,
and the smallest difference that the run can detect.
"""
from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

from ragbed.agents.scripted import numbered_questions
from ragbed.documents.chunkers import CrestSizes, Sections
from ragbed.documents.types import Chunk, Format
from ragbed.experiments.cells import Cell
from ragbed.experiments.judges import Graded
from ragbed.experiments.metrics import Scored, score
from ragbed.experiments.question import Benchmark, Question, Rubric, distinct
from ragbed.experiments.running.bounds import Use
from ragbed.experiments.running.budget import prompt_tokens
from ragbed.experiments.running.crossing import has_index
from ragbed.experiments.running.open_resources import index_folder
from ragbed.experiments.running.plan import Plan
from ragbed.experiments.running.resources import Resources
from ragbed.experiments.settings import RunSettings
from ragbed.experiments.settings.retrievers import RetrieverFactor
from ragbed.experiments.statistics import Clusters, assumed, planned
from ragbed.experiments.statistics.testing import worth_planned
from ragbed.strategies.types import Reply

_FILLER = "The records of the town say who built the bridge, and when it was opened to the public. "
_OF_INDEX = 200  # chunks of an index that stand for all
_WHOLE = 10  # typical chunks that a document has, where nothing is known of it


class Foreseen:
    """The chunks that searches will return, or chunks of their size.

    Placed chunks are those that the run will place. In the place of what a search will find stand as many chunks of
    those that are searched, and in the place of an index that is not built, chunks of the size that its chunker makes.
    """

    def __init__(self, plan: Plan, resources: Resources) -> None:
        self._settings, self._resources = plan.settings, resources
        self._finders = plan.finders
        self._some: dict[tuple[str | None, str | None], list[Chunk]] = {}
        self.guessed = False

    def chunks(self, cell: Cell, question: Question, k: int | None = None, turn: int = 0) -> Sequence[Chunk]:
        """Return what a search for `k` chunks finds under the cell's condition. Where that is not known, each turn, of
        several draws, has other chunks while there are any."""
        if cell.retriever is None:
            return self._resources.placed(cell, question).chunks
        retriever = self._finders[cell.finder or ""].retriever
        opened = cell.format is None or self._open(retriever, cell.format)
        if cell.searched:
            count = (k or retriever.k) + cell.change.negatives
            if not opened:
                return [_filled(_size(retriever), f"{question.id}:{count * turn + place}") for place in range(count)]
            chunks = self._searched(cell, question, retriever)
            return Random(question.id).sample(chunks, min(len(chunks), count * (turn + 1)))[-count:]
        if opened:
            return self._resources.placed(cell, question).chunks
        sizes = self._sizes(cell, question, retriever)
        return [_filled(size, f"{question.id}:{place}") for place, size in enumerate(sizes)]

    def _searched(self, cell: Cell, question: Question, retriever: RetrieverFactor) -> Sequence[Chunk]:
        if has_index(retriever, self._resources.benchmark):
            return self._some.get((cell.finder, cell.format), ())
        return self._everything if retriever.over == "all" else self._resources.own(question)

    @cached_property
    def _everything(self) -> Sequence[Chunk]:
        return self._resources.benchmark.searchable

    def _open(self, retriever: RetrieverFactor, format: Format) -> bool:
        """Open the index, if there is one, for its chunks alone."""
        key, folder = (retriever.name, format), index_folder(self._settings, retriever, format)
        if key not in self._resources.indexes and (retriever.index is not None or folder.exists()):
            index = self._resources.indexes[key] = self._resources.index(folder)
            step = max(1, len(index.chunks) // _OF_INDEX)
            self._some[key] = [index.chunks[row] for row in range(0, len(index.chunks), step)]
        self.guessed |= key not in self._resources.indexes
        return key in self._resources.indexes

    def _sizes(self, cell: Cell, question: Question, retriever: RetrieverFactor) -> list[int]:
        """Characters of what a condition will show out of an index: of a whole document, the bytes of its file."""
        gold = distinct(question.gold)
        if cell.condition != "full":
            return [_size(retriever)] * len(gold)
        corpus = Path(self._resources.benchmark.corpus or ".")
        files = [corpus / name for name in dict.fromkeys(item.document for item in gold)]
        return [file.stat().st_size if file.is_file() else _WHOLE * _size(retriever) for file in files]


def _size(retriever: RetrieverFactor) -> int:
    chunker = retriever.build.chunker
    if isinstance(chunker, CrestSizes):
        return (chunker.smallest + chunker.largest) // 2
    return chunker.target if isinstance(chunker, Sections) else chunker.size


def _filled(size: int, id: str) -> Chunk:
    text = (_FILLER * (size // len(_FILLER) + 1))[:size]
    return Chunk(id, "not known yet", "plain", 0, size, text)


def judged(settings: RunSettings, rubric: Rubric | None, question: Question, answerable: bool) -> Use:
    """Return the most that the judge uses of one question, answerable under the cell's condition or not: the reply is
    as long as it may be, and the judge's own cannot be read."""
    due = question.steps if rubric == "steps" else answerable and question.answers
    if rubric is None or not due:
        return Use()
    said = numbered_questions(settings.limits.max_tokens)
    graded = Graded(rubric, question.text, question.answers, said, said, tuple(step.text for step in question.steps),
                    settings.scoring, reasoned=True)
    judging, use = settings.judge.judge(graded), Use()
    sent: Reply | None = None
    while True:
        try:
            call = next(judging) if sent is None else judging.send(sent)
        except StopIteration:
            return use
        use += Use(1, prompt_tokens(call), call.max_tokens or 0)
        sent = Reply("What of it?")


def detectable(benchmark: Benchmark, cells: Sequence[Cell], clusters: Clusters, pairs: int) -> dict[str, Any]:
    """Return the smallest difference in the main metric that the questions, in the clusters of the run's tests, detect:
    of one pair of cells, and of all pairs that the run's summary will compare."""
    metric = benchmark.scheme.columns[0].split(" / ")[0]
    ways = sorted({(cell.rules, cell.ranked) for cell in cells})
    asked = [question for question in benchmark.questions if any(score(
        Scored("answered", question.answerable, answers=question.answers, options=question.options,
               gold_total=len(question.gold), rules=rules, searched=searched),
        groups=benchmark.scheme.groups).get(metric) is not None for rules, searched in ways)]
    found: dict[str, Counter[bool]] = defaultdict(Counter)  # the answerable and unanswerable ones of each cluster
    for question in asked:
        found[clusters.of[question.id]][question.answerable] += 1
    sizes = [(one[True], one[False]) for one in found.values()]
    counts = sum(first for first, _ in sizes), sum(second for _, second in sizes)
    return {"metric": metric, "pairs": pairs, "questions": len(asked), "clusters": len(sizes),
            "worth": worth_planned(metric, sizes) if sizes else 0.0,
            "assumed": assumed(metric, len(sizes) < len(asked)),
            "of_one_pair": planned(metric, *counts, clusters=sizes),
            "of_all_pairs": planned(metric, *counts, comparisons=max(1, pairs), clusters=sizes)}
