"""Items to review: from a constructed set, a file of questions, or a benchmark."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from ragbed.documents.errors import SettingsError
from ragbed.documents.paths import expand_path
from ragbed.documents.rows import read_rows
from ragbed.documents.sources import find_sources
from ragbed.documents.types import Chunk, Document, Format, digest
from ragbed.documents.workers import read_documents
from ragbed.experiments.benchmarks import BENCHMARKS
from ragbed.experiments.question import Gold, Question
from ragbed.experiments.settings.validation import explain

if TYPE_CHECKING:
    from ragbed.retrieval.index import Index

ITEMS, DOCUMENTS, QUESTIONS = "items.jsonl", "documents.jsonl", "questions.jsonl"
"""Files of a constructed set: every item with its outcome, the documents of kept items, and the questions."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A span of a document that supports an item, with its exact text. Offsets count code points."""

    document: str
    format: Format
    start: int
    end: int
    text: str


def overlaps(chunk: Chunk, one: Evidence) -> bool:
    """Return whether a chunk has a part of the evidence, in the same rendering."""
    return (chunk.document, chunk.format) == (one.document, one.format) and (
        chunk.start < one.end and one.start < chunk.end)


@dataclass(frozen=True, slots=True)
class Item:
    """A question to review, with its evidence and its sources.

    Attributes:
        answers: accepted answers, the key first; with options, the text of the correct option.
        evidence: spans that support the answer.
        chunks: the chunks that the question comes with.
        documents: documents made for this item only, such as edited ones.
        made: JSON that its kind stores. Solvers see `about` even closed-book. `candidates` are passages that may be
            evidence, in the form of a question's `gold_documents`; a reviewer chooses.
        measured: rates from 0 to 1, such as `solved`.
    """

    id: str
    question: str = ""
    answers: tuple[str, ...] = ()
    answerable: bool = True
    evidence: tuple[Evidence, ...] = ()
    chunks: tuple[Chunk, ...] = ()
    documents: tuple[Document, ...] = ()
    options: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    made: Mapping[str, Any] = field(default_factory=dict)
    measured: Mapping[str, float] = field(default_factory=dict)

    @property
    def document(self) -> str:
        """Id of the item's source document: the one its kind sets, or else that of its first evidence or chunk; may be
        empty."""
        spans: tuple[Evidence | Chunk, ...] = (*self.evidence, *self.chunks)
        return str(self.made.get("document") or (spans[0].document if spans else ""))


def question_line(item: Item, documents: Mapping[str, Document]) -> dict[str, Any]:
    """Return an item as a line of a questions file, with gold as spans of documents by source. `documents` are the
    documents that all items share, by id."""
    own = {document.id: document for document in item.documents}
    gold = []
    for one in item.evidence if item.answerable else ():
        document = own.get(one.document) or documents.get(one.document)
        if document is not None:
            pages = document.pages_of(one.format, one.start, one.end)
            gold.append({"document": document.source, **({"page": pages[0]} if pages else {}), "format": one.format,
                         "start": one.start, "end": one.end})
    return {"id": item.id, "question": item.question, **({"answers": list(item.answers)} if item.answerable else {
        "answerable": False}), **({"options": list(item.options)} if item.options else {}), "gold_documents": gold,
            "tags": dict(item.tags)}


_ITEM, _DOCUMENT = TypeAdapter(Item), TypeAdapter(Document)
FILE = "review.sqlite"


@dataclass(frozen=True)
class ReviewSet:
    """Items to review, in random order by seed, so that a reviewer who stops early has reviewed a random sample.

    Attributes:
        items: by id, in the order shown.
        documents: by id and by source.
        file: file that stores the reviews.
        folder: folder of a constructed set.
    """

    name: str
    items: Mapping[str, Item]
    documents: Mapping[str, Document]
    file: Path
    folder: Path | None = None


def open_set(target: str, seed: int = 0, index: Path | None = None) -> ReviewSet:
    """Read the folder of a set, a JSON Lines file of questions, or `KIND:PATH`. Questions may refer to gold in an
    index. Raises UserError if the target is something else, cannot be read, or has no items."""
    kind, colon, path = target.partition(":")
    folder = expand_path(target)
    opened = None
    if index is not None:
        from ragbed.retrieval.index import Index

        opened = Index.open(index)
    documents = index_documents(opened.documents() if opened else ())
    if (folder / ITEMS).is_file():
        items = [row.part("item", row.fields.get("item")).parse_as(_ITEM) for row in read_rows(folder / ITEMS)
                 if not row.fields.get("lost")]
        file = folder / FILE
        documents |= index_documents(row.parse_as(_DOCUMENT) for row in read_rows(folder / DOCUMENTS))
    elif folder.is_file():
        items, file = _read_benchmark({"kind": "jsonl", "path": target}, documents, opened), _review_path(folder)
        items = [replace(item, made={**item.made, "candidates": [
                {"document": one} if isinstance(one, str) else one for one in row.fields.get("candidates") or ()]})
                 for item, row in zip(items, read_rows(folder), strict=True)]
    elif kind in BENCHMARKS:
        items = _read_benchmark({"kind": kind, **({"path": path} if colon else {})}, documents, opened)
        file = _review_path(expand_path(path)) if colon and not path.startswith("hub:") else Path(f"{kind}.{FILE}")
    else:
        raise SettingsError(f"{target}: expected the folder of a set that `ragbed construct` wrote, a file of "
                            "questions in JSON Lines, or KIND:PATH with a kind from `ragbed list benchmarks`")
    ordered = sorted(items, key=lambda item: digest(str(seed), item.id))
    if not ordered:
        raise SettingsError(f"{target}: contains no item to review")
    return ReviewSet(folder.name if folder.exists() else target, {item.id: item for item in ordered}, documents, file,
                     folder if folder.is_dir() else None)


def index_documents(documents: Iterable[Document]) -> dict[str, Document]:
    """Return documents by id and by source."""
    found = list(documents)
    return {one.source: one for one in found} | {one.id: one for one in found}


def _review_path(path: Path) -> Path:
    return path / FILE if path.is_dir() else path.with_name(f"{path.stem}.{FILE}")


def _read_benchmark(given: Mapping[str, Any], documents: dict[str, Document], index: Index | None) -> list[Item]:
    """Return the questions of a benchmark as items, and add its documents, or those of its corpus, to `documents`."""
    kind = BENCHMARKS[given["kind"]]
    try:
        benchmark = kind.model_validate(given).load()
    except ValidationError as error:
        raise SettingsError(f"{given['kind']}: {explain(error, kind)}") from error
    documents |= index_documents(benchmark.documents.values())
    if benchmark.corpus is not None:
        documents |= index_documents(one for one in read_documents(find_sources([benchmark.corpus]))
                                     if isinstance(one, Document))
    return [_make_item(question, documents, index) for question in benchmark.questions]


def _make_item(question: Question, documents: Mapping[str, Document], index: Index | None) -> Item:
    options = dict(question.options)
    answers = question.answers
    if options:  # drop the first answer, which is the key's label
        answers = tuple(options[label] for label in answers[:1])
    chunks = {chunk.id: chunk for chunk in question.chunks}
    gold = question.gold
    fields: dict[str, Any] = {
        "answers": () if question.answerable else answers,  # some files have them
        "sub_questions": question.sub_questions, "sub_answers": question.sub_answers,
        "steps": [step.text for step in question.steps], "turns": list(map(asdict, question.turns)),
        "gold_chunks": [one.chunk for one in gold if one.chunk and not one.document]}
    line = {**{name: value for name, value in fields.items() if value},
            "gold_documents": [_gold_line(one, documents) for one in gold if one.document]}
    evidence = tuple(_find_evidence(one, chunks, documents, index) for one in gold)
    tags = {name: list(values) for name, values in question.tags.items()}
    return Item(question.id, question.text, answers, question.answerable, evidence, question.provided,
                options=tuple(options.values()),
                made={"line": {**line, "tags": tags}, "gold": [
                    f"{one.document} {one.chunk} {one.page} {one.format} {one.start} {one.end}" for one in gold]},
                tags={name: ", ".join(values) for name, values in tags.items()})


def _gold_line(gold: Gold, documents: Mapping[str, Document]) -> dict[str, Any]:
    source = documents[gold.document].source if gold.document in documents else gold.document
    fields = {"page": gold.page, "format": gold.format, "start": gold.start, "end": gold.end}
    return {"document": source, **{name: value for name, value in fields.items() if value is not None}}


def _find_evidence(gold: Gold, chunks: Mapping[str, Chunk], documents: Mapping[str, Document],
                   index: Index | None) -> Evidence:
    """Return the span of a gold item; 0 to 0 if it is the whole document or its place is unknown."""
    chunk = chunks.get(gold.chunk or "")
    if chunk is None and gold.chunk and index is not None:
        with suppress(KeyError):
            chunk = index.chunk(gold.chunk)
    if chunk is not None:
        return Evidence(chunk.document, chunk.format, chunk.start, chunk.end, chunk.content[len(chunk.prefix):])
    document = documents.get(gold.document)
    name = gold.document or gold.chunk or ""
    if document is None:
        return Evidence(name, "plain", 0, 0, "")
    format, start, end = gold.format or ("plain" if document.plain else "html"), gold.start or 0, gold.end or 0
    if gold.page is not None:
        starts = {page.number: page.plain for page in document.pages}
        start = starts.get(gold.page, 0)
        end = starts.get(gold.page + 1, len(document.plain)) if gold.page in starts else 0
    return Evidence(document.id, format, start, end, document.text(format)[start:end])
