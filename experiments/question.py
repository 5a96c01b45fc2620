"""What a benchmark asks, with its gold, and how answers are scored. Nothing outside `experiments` sees a question."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, zip_longest
from operator import not_
from typing import Annotated, Literal, get_args

from pydantic import Field

from ragbed.documents.types import Chunk, Document, Format
from ragbed.strategies.types import Turn

# grades: Correct, Partially Correct, Wrong. points: 0 to 10. steps: which reference steps the reasoning holds.
Rubric = Literal["grades", "points", "steps"]
# By metric group, the metric whose score of 1 means that the answer is right; the first group there has the say.
_RIGHT: Mapping[str, str] = {"choice": "accuracy", "answers": "unified", "points": "graded_em", "overlap": "em"}


@dataclass(frozen=True, slots=True)
class Scheme:
    """What a benchmark measures.

    Attributes:
        groups: the metric groups that are computed, by name (`experiments.metrics.scoring.GROUPS`).
        rubric: what a judge is asked; None where none is.
        columns: the metrics of a run's table, in order; ` / ` joins those that share a column.
        views: the breakdowns of a finished run, by name (`experiments.views.VIEWS`).
        itself_ignored: whether a document with the id of a query is that query, and counts neither as found nor as
            missed, as BEIR's evaluation has it.
        published: the tables of the paper that stand beside a run's own, by name (`experiments.analysis.published`).
    """

    groups: tuple[str, ...]
    rubric: Rubric | None
    columns: tuple[str, ...]
    views: tuple[str, ...] = ()
    published: tuple[str, ...] = ()
    itself_ignored: bool = False

    @property
    def metrics(self) -> tuple[str, ...]:
        """Return the metrics of the columns, each by itself."""
        return tuple(name for column in self.columns for name in column.split(" / "))

    @property
    def right(self) -> str | None:
        """Return the metric whose score of 1 means that an answer is right; None where no answer is scored."""
        return next(iter(self.correctness_metrics), None)

    @property
    def correctness_metrics(self) -> tuple[str, ...]:
        """Return the metrics that say so, of which the first that applies to a question counts: of one's own questions
        some may have options and others none."""
        known = tuple(metric for group, metric in _RIGHT.items() if group in self.groups)
        return known[:2 if "choice" in self.groups else 1]


RANKED = Scheme(groups=("ranking",), rubric=None, columns=("ndcg@10", "recall@10", "recall@100", "mrr", "map"))
SPANS = Scheme(groups=("spans", "ranking"), rubric=None, columns=("char_recall@5", "char_precision@5", "char_iou@5"))
ANSWERS = Scheme(groups=("answers", "overlap", "form"), rubric="grades",
                 columns=("unified", "correct / partial / wrong", "refusal_accuracy", "citation_f1"))


@dataclass(frozen=True, slots=True)
class Gold:
    """Where evidence for the answer stands, as finely as the benchmark says.

    With `chunk` it is that chunk; with `start` and `end` a span of the document in `format`; with
    `page` a page (from 1); else the whole document.

    Attributes:
        document: a document id, or a source path relative to what was indexed.
        relevance: the judged grade, above 0; stored where it is not 1.
    """

    document: str
    chunk: str | None = None
    format: Format | None = None
    start: int | None = None
    end: int | None = None
    page: int | None = None
    relevance: Annotated[int, Field(exclude_if=lambda grade: grade == 1)] = 1


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a reference reasoning.

    Attributes:
        depth: share of the characters of what `full` shows that stand before the paragraph that states the step, 0 to
            1; None where the step is an inference, or its place is not known or not shown.
    """

    text: str
    depth: float | None = None


Bucket = Literal["easy", "medium", "hard"]


@dataclass(frozen=True, slots=True)
class FoundBy:
    """One miner's find of a chunk."""

    miner: str  # its name, such as `dense` or `bm25`
    rank: int  # from 1, among what the miner found for the question
    score: float  # higher is nearer; its scale is the miner's


@dataclass(frozen=True, slots=True)
class Mined:
    """How a negative was mined.

    Attributes:
        miner: the one whose turn took it, which is its sort: each negative has one. What an earlier one took is none of
            a later one's, though that found it too.
        found: by each miner that found it, in the order in which the miners were given; for information.
        hardness: how near it is to the question, from 0 to 1: the cosine of their vectors; 0 where that is negative.
        bucket: the third of the question's own mined negatives that it belongs to by hardness, so that a question has
            as many hard ones as easy ones. It is no level: one question's hard ones may be farther from it than another
            one's easy ones are.
    """

    miner: str
    found: tuple[FoundBy, ...]
    hardness: float
    bucket: Bucket

    @property
    def sorts(self) -> tuple[str, str]:
        """Return what `negatives@N:SORT` may call it."""
        return self.bucket, self.miner


Goal = Literal["payload", "citation", "refusal"]


@dataclass(frozen=True, slots=True)
class Attack:
    """What an attack in a question's documents would have the answer be.

    Attributes:
        goal: words that it holds, a number that it cites, or a refusal.
        payload: the words or the number; empty of a refusal.
        there: whether the attack is among the documents; else this is the question's clean twin.
    """

    goal: Goal
    payload: str
    there: bool


WorldName = Literal["original", "edited", "removed", "unrelated"]
WORLDS: tuple[WorldName, ...] = get_args(WorldName)


@dataclass(frozen=True, slots=True)
class World:
    """An edit of a computed question's documents, of what its answer rests on or of something else; and the answer
    without it."""

    name: WorldName
    original: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a benchmark.

    Chunks stand where a condition takes them from; most benchmarks have `provided` alone.

    Attributes:
        answers: accepted gold answers; the first is shown in tables. Of a multiple-choice question, the label.
        gold_repeats: gold labels that the record states more than once; only as-published scoring counts them.
        provided: the benchmark's own chunks, in its order; gold ones are named by `gold`.
        pool: chunks that this question alone may be searched over, where they are others than `provided`.
        whole: what the condition `full` shows.
        negatives: the benchmark's own further ones, in the order in which `negatives@N` adds them, or `in_turns`.
        mined: by chunk id, in the order of their taking, how those in `provided` or `negatives` were mined that were.
        table: the table that the documents were made from, which the perturbation `table` shows in their place.
        options: label and text of each; only those of a multiple-choice question.
        sub_questions, sub_answers: by hops; `#1` stands for the answer to the first, which no sub-question holds.
        nuggets: facts that a good answer has, and whether each is vital to it, rather than okay.
        length: characters of `whole`, of a stored question, which is without its chunks.
        about: what a closed-book prompt may say of the documents, such as a novel's title and author.
        attack: of questions that try whether instructions in documents are followed.
        world: of questions that are asked over edited documents too.
        tags: name to values, such as `{"language": ("en",)}`.
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
    steps: tuple[Step, ...] = ()  # the reference reasoning
    length: int | None = None
    about: str = ""
    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # Left out where there is none, so that a question of any other benchmark is stored, and hashed, as ever.
    mined: Annotated[Mapping[str, Mined], Field(exclude_if=not_)] = field(default_factory=dict)
    nuggets: Annotated[Mapping[str, bool], Field(exclude_if=not_)] = field(default_factory=dict)
    turns: Annotated[tuple[Turn, ...], Field(exclude_if=not_)] = ()  # of its conversation, before it
    attack: Annotated[Attack | None, Field(exclude_if=not_)] = None
    world: Annotated[World | None, Field(exclude_if=not_)] = None
    irrelevant: Annotated[tuple[str, ...], Field(exclude_if=not_)] = ()  # documents that people judged to be of no use

    @property
    def in_context(self) -> str:
        """Return the question after the turns before it, as judges and people read it."""
        before = [f"Before: {turn.question}\nAnswer: {turn.answer}" for turn in self.turns]
        return "\n".join([*before, f"Now: {self.text}"]) if before else self.text

    @property
    def own(self) -> tuple[Chunk, ...]:
        """Return the chunks that this question may be searched over, its gold among them."""
        return self.pool or self.provided

    @property
    def chunks(self) -> Iterator[Chunk]:
        """Yield every chunk that the question brings; one that stands in two places comes twice."""
        return chain(self.provided, self.pool, self.whole, self.negatives, () if self.table is None else (self.table,))

    def in_turns(self, sort: str = "") -> list[str]:
        """Return the ids of its mined negatives of a sort, or of all, as doses draw them: one of each miner in turn,
        by the miner's own rank, so that every dose is mixed."""
        queues: dict[str, list[str]] = {}
        for id, one in self.mined.items():
            if not sort or sort in one.sorts:
                queues.setdefault(one.miner, []).append(id)
        return [id for turn in zip_longest(*queues.values()) for id in turn if id is not None]

    def without_chunks(self) -> Question:
        """Return the question as it is stored: its chunks are where they were shown."""
        length = sum(len(chunk.content) for chunk in self.whole) if self.whole else self.length
        return replace(self, provided=(), pool=(), whole=(), negatives=(), table=None, length=length)


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Questions and what they are asked over.

    Attributes:
        documents: by id, the documents of all chunks that the questions bring, and of `shared`.
        shared: chunks that all questions may be searched over, such as a BEIR corpus.
        corpus: folder of pages to index for the condition `retrieved`; None where there is none.
        scheme: how answers are scored and which figures are shown.
        skipped: what is amiss with each record that was left out, where that was asked for.
    """

    name: str
    questions: tuple[Question, ...]
    documents: Mapping[str, Document] = field(default_factory=dict)
    shared: tuple[Chunk, ...] = ()
    corpus: str | None = None
    scheme: Scheme = ANSWERS
    skipped: tuple[str, ...] = ()

    @property
    def gives_chunks(self) -> bool:
        """Tell whether any question brings chunks of its own, or all share some."""
        return bool(self.shared) or any(question.own for question in self.questions)

    @property
    def has_whole(self) -> bool:
        """Tell whether any question brings the whole of its document."""
        return any(question.whole for question in self.questions)

    @property
    def is_mined(self) -> bool:
        """Tell whether negatives were mined for its questions."""
        return any(question.mined for question in self.questions)

    @property
    def searchable(self) -> list[Chunk]:
        """List the chunks that questions may be searched over; one of several questions comes several times."""
        return [*chain.from_iterable(question.own for question in self.questions), *self.shared]

    @property
    def every_chunk(self) -> list[Chunk]:
        """List these, what stands beside a question's pool, and all further negatives: each once."""
        found = {chunk.id: chunk for question in self.questions
                 for chunk in (*question.provided, *question.pool, *question.negatives)}
        return list((found | {chunk.id: chunk for chunk in self.shared}).values())


def distinct(gold: Iterable[Gold]) -> tuple[Gold, ...]:
    """Return the gold items in order, each once."""
    return tuple(dict.fromkeys(gold))
