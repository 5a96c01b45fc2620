"""Question: what a benchmark asks, with its gold. Nothing above `experiments` ever sees one."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from documents.types import Chunk, Document, Format


@dataclass(frozen=True, slots=True)
class Gold:
    """Where evidence for the answer stands, as finely as the benchmark says.

    With `chunk` it is that chunk; with `start` and `end` a span of the document in `format`; with
    `page` a page (from 1); else the whole document.

    Attributes:
        document: a document id, or a source path relative to what was indexed.
    """

    document: str
    chunk: str | None = None
    format: Format | None = None
    start: int | None = None
    end: int | None = None
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a benchmark.

    Attributes:
        answers: accepted gold answers; the first is shown in tables.
        gold_repeats: gold labels that the record states more than once; only as-published scoring counts them.
        given: the benchmark's own chunks, in its order; gold ones are named by `gold`.
        tags: name to values, such as `{"language": ("en",)}`.
    """

    id: str
    text: str
    answers: tuple[str, ...]
    answerable: bool
    gold: tuple[Gold, ...] = ()
    gold_repeats: int = 0
    given: tuple[Chunk, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    sub_questions: tuple[str, ...] = ()
    sub_answers: tuple[str, ...] = ()
    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Questions and what they are asked over.

    Attributes:
        documents: by id, the documents of the questions' `given` chunks.
        corpus: folder of pages to index for the condition `retrieved`; None where there is none.
    """

    name: str
    questions: tuple[Question, ...]
    documents: Mapping[str, Document] = field(default_factory=dict)
    corpus: str | None = None

    @property
    def gives_chunks(self) -> bool:
        """Whether every question brings its own chunks."""
        return all(question.given for question in self.questions)
