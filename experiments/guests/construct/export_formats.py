"""Write the question files of other tools. A chunk with a piece of the evidence is gold, in either rendering of the
document. An unanswerable item has no gold passage, and its answer is the refusal.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from ragbed.documents.types import Chunk, Document
from ragbed.experiments.guests.construct.filters import holds_evidence
from ragbed.experiments.guests.construct.stages import Library
from ragbed.experiments.guests.review.items import Item
from ragbed.experiments.runs.store import write_lines, write_text
from ragbed.strategies.reading import REFUSAL

Export = Literal["beir", "ragas", "autorag", "yourbench"]
_UNKNOWN_TIME = datetime(1970, 1, 1)  # AutoRAG requires a time; the current one would change the bytes
_MAX_DIFFICULTY = 10  # maximum of YourBench's scale, which begins at 1


@dataclass(frozen=True, slots=True)
class ExportedItem:
    """An item as other tools see it; `gold` lists the chunks that contain each piece of evidence."""

    item: Item
    gold: tuple[tuple[Chunk, ...], ...]

    @property
    def answers(self) -> list[str]:
        """Accepted answers, or the refusal for an unanswerable item."""
        return list(dict.fromkeys(self.item.answers)) if self.item.answerable else [REFUSAL]

    @property
    def chunks(self) -> list[Chunk]:
        """The first chunk of each piece of evidence, without repeats."""
        return list({group[0].id: group[0] for group in self.gold if group}.values())


@dataclass(frozen=True, slots=True)
class ExportedSet:
    """Items and the chunks to search. `writer` is the model that wrote the questions; empty if a program did."""

    kind: str
    writer: str
    items: tuple[ExportedItem, ...]
    chunks: tuple[Chunk, ...]
    documents: Mapping[str, Document]


def collect_items(items: Sequence[Item], library: Library, kind: str, writer: str) -> ExportedSet:
    """Collect the items to export and their chunks, plus the whole index if it contains their evidence."""
    shared = any(one.document in library.documents for item in items for one in item.evidence)
    every = chain(library.chunks if shared else (), *(item.chunks for item in items))
    chunks = {chunk.id: chunk for chunk in every}
    own = {document.id: document for item in items for document in item.documents}
    by_document: dict[str, list[Chunk]] = {}
    for chunk in chunks.values():
        by_document.setdefault(chunk.document, []).append(chunk)

    def exported(item: Item) -> ExportedItem:
        groups = (tuple(chunk for chunk in by_document.get(one.document, ()) if holds_evidence(chunk, one))
                  for one in item.evidence)
        return ExportedItem(item, tuple(dict.fromkeys(filter(None, groups))) if item.answerable else ())

    return ExportedSet(kind, writer, tuple(map(exported, items)), tuple(chunks.values()), {**library.documents, **own})


def write_beir(made: ExportedSet, folder: Path) -> None:
    """Write BEIR's corpus.jsonl, queries.jsonl and qrels/test.tsv. A query without gold has no line in the qrels."""
    write_lines(folder / "corpus.jsonl", ({"_id": chunk.id, "title": made.documents[chunk.document].title,
                                           "text": chunk.content, "metadata": {}} for chunk in made.chunks))
    write_lines(folder / "queries.jsonl", ({"_id": one.item.id, "text": one.item.question, "metadata": {}}
                                           for one in made.items))
    judged = [f"{one.item.id}\t{id}\t1\n" for one in made.items
              for id in dict.fromkeys(chunk.id for group in one.gold for chunk in group)]
    (folder / "qrels").mkdir(exist_ok=True)
    write_text(folder / "qrels" / "test.tsv", "".join(["query-id\tcorpus-id\tscore\n", *judged]))


def write_ragas(made: ExportedSet, folder: Path) -> None:
    """Write testset.jsonl, which ragas reads as a Testset and as an EvaluationDataset of single turns."""
    write_lines(folder / "testset.jsonl", ({
        "user_input": one.item.question, "reference_contexts": [chunk.content for chunk in one.chunks],
        "reference": one.answers[0], "synthesizer_name": f"ragbed_{made.kind}"} for one in made.items))


def write_autorag(made: ExportedSet, folder: Path) -> None:
    """Write AutoRAG's qa.parquet and corpus.parquet. In `retrieval_gt`, each inner list has the passages for one piece
    of evidence; one of them is enough."""
    import pyarrow as pa
    from pyarrow.parquet import write_table

    text, texts = pa.string(), pa.list_(pa.string())
    asked = [{"qid": one.item.id, "query": one.item.question, "generation_gt": one.answers,
              "retrieval_gt": [[chunk.id for chunk in group] for group in one.gold] or [[]]} for one in made.items]
    write_table(pa.Table.from_pylist(asked, pa.schema([
        ("qid", text), ("query", text), ("retrieval_gt", pa.list_(texts)), ("generation_gt", texts)])),
                folder / "qa.parquet")
    of = [(chunk.document, chunk.format) for chunk in made.chunks]
    ids = [chunk.id for chunk in made.chunks]
    passages = [{"doc_id": chunk.id, "contents": chunk.content, "metadata": {
        "last_modified_datetime": _UNKNOWN_TIME,
        "prev_id": ids[at - 1] if at and of[at - 1] == of[at] else None,
        "next_id": ids[at + 1] if at + 1 < len(ids) and of[at + 1] == of[at] else None}}
                for at, chunk in enumerate(made.chunks)]
    metadata = pa.struct([("last_modified_datetime", pa.timestamp("us")), ("prev_id", text), ("next_id", text)])
    write_table(pa.Table.from_pylist(passages, pa.schema([("doc_id", text), ("contents", text),
                                                          ("metadata", metadata)])), folder / "corpus.parquet")


def write_yourbench(made: ExportedSet, folder: Path) -> None:
    """Write prepared_lighteval.jsonl, the rows that YourBench evaluates. The difficulty, from 1 to 10, grows with the
    share of solvers that were wrong despite the evidence. It is null without solvers."""
    write_lines(folder / "prepared_lighteval.jsonl", (_yourbench_row(one, made) for one in made.items))


def _yourbench_row(one: ExportedItem, made: ExportedSet) -> dict[str, Any]:
    item, answer = one.item, one.answers[0]
    chosen, solved = answer in item.options, item.measured.get("solved")
    choices = list(item.options) if chosen else [answer]
    documents = list(dict.fromkeys(chunk.document for chunk in one.chunks))
    texts = [made.documents[id].plain for id in documents]
    return {
        "question": item.question, "additional_instructions": "",
        "ground_truth_answer": chr(ord("A") + choices.index(answer)) if chosen else answer,
        "gold": [choices.index(answer)], "choices": choices,
        "question_mode": "multi-choice" if chosen else "open-ended",
        "question_category": item.tags.get("reasoning", item.tags.get("tier", "unknown")),
        "kind": "cross_document" if len(documents) > 1 else "multi_hop" if len(one.chunks) > 1 else "single_hop",
        "estimated_difficulty": None if solved is None else round(1 + (_MAX_DIFFICULTY - 1) * (1 - solved)),
        "question_generating_model": made.writer, "document_id": documents[0] if documents else "",
        "document_ids": documents, "chunk_ids": [chunk.id for chunk in one.chunks],
        "sources": [{"document_id": chunk.document, "chunk_id": chunk.id} for chunk in one.chunks],
        "citations": [each.text for each in item.evidence], "chunks": [chunk.content for chunk in one.chunks],
        "documents": texts, "document": "\n\n".join(texts), "document_summary": ""}


EXPORTS: Mapping[Export, Callable[[ExportedSet, Path], None]] = {
    "beir": write_beir, "ragas": write_ragas, "autorag": write_autorag, "yourbench": write_yourbench}


def write_exports(made: ExportedSet, names: Iterable[Export], out: Path) -> None:
    """Write each format into a folder named after it in `out`."""
    for name in dict.fromkeys(names):
        folder = out / name
        folder.mkdir(parents=True, exist_ok=True)
        EXPORTS[name](made, folder)
