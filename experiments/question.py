"""Questions with their gold, and how a benchmark scores answers. Strategies see tasks without gold instead."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, zip_longest
from operator import not_
from typing import Annotated, Literal, get_args

from pydantic import Field

from ragbed.documents.types import Chunk, Document, Format
from ragbed.strategies.types import Turn

# Rubrics of judges. grades: Correct, Partially Correct or Wrong. points: 0 to 10. steps: which reference steps the
# reasoning contains.
Rubric = Literal["grades", "points", "steps"]
# The metric whose score of 1 means that an answer is right, by metric group. The first group of a scheme decides.
_RIGHT: Mapping[str, str] = {"choice": "accuracy", "answers": "unified", "points": "graded_em", "overlap": "em"}


@dataclass(frozen=True, slots=True)
class Scheme:
    """What a benchmark measures.

    Attributes:
        groups: names of the metric groups that are computed (`experiments.metrics.scoring.GROUPS`).
        rubric: how a judge grades answers; None if no judge is needed.
        columns: metrics of a run's table; ` / ` joins metrics that share a column.
        views: names of the breakdowns of a finished run.
        itself_ignored: whether metrics ignore a document with the id of the query, as in BEIR's evaluation.
        published: names of the paper's tables to show with a run's figures (`guests/datasets/published_tables.py`).
        unit: what intervals and tests resample (`experiments.statistics.units`): `question`, `document`, or a tag.
    """

    groups: tuple[str, ...]
    rubric: Rubric | None
    columns: tuple[str, ...]
    views: tuple[str, ...] = ()
    published: tuple[str, ...] = ()
    itself_ignored: bool = False
    unit: str = "question"

    @property
    def headline(self) -> str:
        """Return the first metric, by which cells are ranked and compared."""
        return self.metrics[0]

    @property
    def metrics(self) -> tuple[str, ...]:
        """Return the metrics of all columns, as a flat tuple."""
        return tuple(name for column in self.columns for name in column.split(" / "))

    @property
    def correctness_metrics(self) -> tuple[str, ...]:
        """Return the metrics whose score of 1 means that an answer is right. A benchmark may mix questions with and
        without options, so the first metric that applies to a question decides."""
        known = tuple(metric for group, metric in _RIGHT.items() if group in self.groups)
        return known[:2 if "choice" in self.groups else 1]


RANKED = Scheme(groups=("ranking",), rubric=None, columns=("ndcg@10", "recall@10", "recall@100", "mrr", "map"))
SPANS = Scheme(groups=("spans", "ranking"), rubric=None, columns=("char_recall@5", "char_precision@5", "char_iou@5"))
ANSWERS = Scheme(groups=("answers", "overlap", "form"), rubric="grades",
                 columns=("right", "correct / partial / wrong", "refusal_accuracy", "citation_f1"))


@dataclass(frozen=True, slots=True)
class Gold:
    """The position of evidence for the answer: a `chunk`, a span from `start` to `end` in `format`, or a `page` (from
    1). If none of these is set, the whole document is evidence.

    Attributes:
        document: a document id, or a source path relative to the indexed folder.
        relevance: the judged grade, above 0. It is stored only if it is not 1.
        quotes: words of the document that hold the answer.
    """

    document: str
    chunk: str | None = None
    format: Format | None = None
    start: int | None = None
    end: int | None = None
    page: int | None = None
    relevance: Annotated[int, Field(exclude_if=lambda grade: grade == 1)] = 1
    quotes: Annotated[tuple[str, ...], Field(exclude_if=not_)] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a reference reasoning.

    Attributes:
        depth: position in the whole document, from 0 to 1, of the paragraph that states the step; None if the step is
            an inference or its position is unknown.
    """

    text: str
    depth: float | None = None


Bucket = Literal["easy", "medium", "hard"]


@dataclass(frozen=True, slots=True)
class FoundBy:
    """A chunk found by one miner.

    Attributes:
        miner: name, such as `dense` or `bm25`.
        rank: from 1, among the chunks that the miner found for the question.
        score: the miner's score; higher is more similar. Scales differ between miners.
    """

    miner: str
    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Mined:
    """How a negative was mined.

    Attributes:
        miner: the miner that the negative counts for. Miners take turns, so each negative counts for one miner, even if
            others found it too.
        found: every miner that found it, in the order of the settings.
        hardness: cosine similarity of negative and question, from 0 to 1. Negative cosines become 0.
        bucket: hardness compared with the question's other mined negatives: the easiest, middle or hardest third.
            Thirds are per question, so a hard negative of one question may be less similar than an easy negative of
            another.
    """

    miner: str
    found: tuple[FoundBy, ...]
    hardness: float
    bucket: Bucket

    @property
    def sorts(self) -> tuple[str, str]:
        """Return the bucket and the miner of this negative. Either can be SORT in `negatives@N:SORT`."""
        return self.bucket, self.miner


Goal = Literal["payload", "citation", "refusal"]


@dataclass(frozen=True, slots=True)
class Attack:
    """What an attack in a question's documents tries to achieve.

    Attributes:
        goal: what the attack wants: words or a citation in the answer, or a refusal.
        payload: the words or the citation number that the attack asks for; empty for a refusal.
        there: whether the documents contain the attack. If not, the question is its clean twin.
    """

    goal: Goal
    payload: str
    there: bool


WorldName = Literal["original", "edited", "removed", "unrelated"]
WORLDS: tuple[WorldName, ...] = get_args(WorldName)


@dataclass(frozen=True, slots=True)
class World:
    """An edit of the documents of a computed question, and the answers without the edit."""

    name: WorldName
    original: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a benchmark.

    Each condition shows the chunks of one attribute. Most benchmarks fill only `provided`.

    Attributes:
        answers: accepted gold answers; tables show the first. For a multiple-choice question, the right option's label.
        gold_repeats: number of duplicate gold labels in the benchmark's record. Only as-published scoring counts them.
        provided: the benchmark's own chunks, in its order; `gold` says which are gold.
        pool: chunks that only this question searches, if they differ from `provided`.
        whole: chunks that the condition `full` shows.
        negatives: the benchmark's own chunks without gold, in the order in which `negatives@N` adds them. For mined
            ones see `interleave_mined`.
        mined: how chunks in `provided` or `negatives` were mined, by chunk id.
        table: the table from which the documents were generated; the perturbation `table` shows it instead of the
            documents.
        options: label and text of each option of a multiple-choice question.
        sub_questions, sub_answers: one per hop. `#1` in a sub-question means the answer to the first.
        steps: the reference reasoning.
        nuggets: facts that a good answer contains, and whether each is vital.
        length: number of characters of `whole`, which stored questions keep instead of the chunks.
        about: what a closed-book prompt may say about the documents, such as a novel's title and author.
        turns: earlier turns of the conversation.
        attack: set if the question tests whether models follow instructions in documents.
        world: set if the question is also asked with edited documents.
        irrelevant: documents that human assessors judged irrelevant.
        junk: documents that assessors gave a negative grade, such as spam, with the grade. Only `judged@k` counts them
            as judged.
        tags: values by name, such as `{"language": ("en",)}`.
    """

    id: str
    text: str
    answers: tuple[str, ...]
    answerable: bool
    gold: tuple[Gold, ...] = ()
    gold_repeats: int = 0
    provided: tuple[Chunk, ...] = ()
    pool: tuple[Chunk, ...] = ()
    whole: tuple[Chunk, ...] = ()
    negatives: tuple[Chunk, ...] = ()
    table: Chunk | None = None
    options: tuple[tuple[str, str], ...] = ()
    sub_questions: tuple[str, ...] = ()
    sub_answers: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    length: int | None = None
    about: str = ""
    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # If empty, these are not stored, so that the hashes of other questions stay the same.
    mined: Annotated[Mapping[str, Mined], Field(exclude_if=not_)] = field(default_factory=dict)
    nuggets: Annotated[Mapping[str, bool], Field(exclude_if=not_)] = field(default_factory=dict)
    turns: Annotated[tuple[Turn, ...], Field(exclude_if=not_)] = ()
    attack: Annotated[Attack | None, Field(exclude_if=not_)] = None
    world: Annotated[World | None, Field(exclude_if=not_)] = None
    irrelevant: Annotated[tuple[str, ...], Field(exclude_if=not_)] = ()
    junk: Annotated[Mapping[str, int], Field(exclude_if=not_)] = field(default_factory=dict)

    @property
    def in_context(self) -> str:
        """Return the question with its earlier turns, as shown to judges and people."""
        before = [f"Before: {turn.question}\nAnswer: {turn.answer}" for turn in self.turns]
        return "\n".join([*before, f"Now: {self.text}"]) if before else self.text

    @property
    def own(self) -> tuple[Chunk, ...]:
        """Return the chunks that this question searches, including its gold."""
        return self.pool or self.provided

    @property
    def chunks(self) -> Iterator[Chunk]:
        """Yield every chunk of the question. A chunk in two attributes is yielded twice."""
        return chain(self.provided, self.pool, self.whole, self.negatives, () if self.table is None else (self.table,))

    def interleave_mined(self, sort: str = "") -> list[str]:
        """Return the ids of mined negatives (of one sort), best first. Miners take turns, so any prefix mixes them."""
        queues: dict[str, list[str]] = {}
        for id, one in self.mined.items():
            if not sort or sort in one.sorts:
                queues.setdefault(one.miner, []).append(id)
        return [id for turn in zip_longest(*queues.values()) for id in turn if id is not None]

    def drop_chunks(self) -> Question:
        """Return the question in its stored form. Its chunks are removed, because they are stored with the evidence."""
        if next(self.chunks, None) is None:
            return self  # takes less memory than a copy
        length = sum(len(chunk.content) for chunk in self.whole) if self.whole else self.length
        return replace(self, provided=(), pool=(), whole=(), negatives=(), table=None, length=length)


@dataclass(frozen=True, slots=True)
class Benchmark:
    """The questions of a benchmark, and their documents.

    Attributes:
        documents: documents of all chunks, by id.
        shared: chunks that every question searches, such as a BEIR corpus.
        corpus: folder of pages to index for the condition `retrieved`, or None.
        scheme: how answers are scored and which figures are shown.
        skipped: the error of each skipped record.
        notes: notes to print before the run, such as what was understood of a file.
    """

    name: str
    questions: tuple[Question, ...]
    documents: Mapping[str, Document] = field(default_factory=dict)
    shared: tuple[Chunk, ...] = ()
    corpus: str | None = None
    scheme: Scheme = ANSWERS
    skipped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def gives_chunks(self) -> bool:
        """Return whether there are chunks that can be searched without an index."""
        return bool(self.shared) or any(question.own for question in self.questions)

    @property
    def has_whole(self) -> bool:
        """Return whether any question has its whole document."""
        return any(question.whole for question in self.questions)

    @property
    def is_mined(self) -> bool:
        """Return whether negatives were mined for the questions."""
        return any(question.mined for question in self.questions)

    @property
    def searchable(self) -> list[Chunk]:
        """Return the chunks that can be searched. A chunk of several questions is returned several times."""
        return [*chain.from_iterable(question.own for question in self.questions), *self.shared]

    @property
    def all_chunks(self) -> list[Chunk]:
        """Return every distinct chunk, except those in `whole` and `table`."""
        found = {chunk.id: chunk for question in self.questions
                 for chunk in (*question.provided, *question.pool, *question.negatives)}
        return list((found | {chunk.id: chunk for chunk in self.shared}).values())


def unique_gold(gold: Iterable[Gold]) -> tuple[Gold, ...]:
    """Return the gold items in order, without duplicates."""
    return tuple(dict.fromkeys(gold))
