"""TREC RAG 2024 and 2025 (trec-rag.github.io): each sentence cites positions in `references`, from 0, or ids.

RAGTIME and other tracks (github.com/hltcoe/rag-run-validator) put run and topic into `metadata`, call the sentences
`responses`, and cite ids with scores. These files are read too.
"""
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ragbed.documents.rows import Row, read_rows
from ragbed.experiments.answer_files import Answer, AnswerFormat, Prediction
from ragbed.experiments.guests.answer_support.statements import split_statements
from ragbed.experiments.guests.pipelines.answer_files.conversion import line_writer, prediction
from ragbed.strategies.reading import find_citations, strip_citations


def _read(file: Path) -> Iterator[Prediction]:
    return map(_read_line, read_rows(file))


def _read_line(row: Row) -> Prediction:
    metadata = row.part("metadata", row.fields["metadata"]).fields if "metadata" in row.fields else {}
    row = Row(row.file, row.line, {**metadata, **row.fields})
    references = row.fields.get("references")
    if not isinstance(references, list | None):
        row.fail("references", "a list of ids", references)
    documents = [str(one) for one in references or ()]
    texts = [_read_sentence(sentence, documents, references is None)
             for sentence in row.parts("answer" if "answer" in row.fields else "responses")]
    return prediction(row, row.id("topic_id", "narrative_id", "request_id"),
                      row.optional("topic") or row.optional("narrative"),
                      {"answer": "\n".join(texts) or None, "contexts": [{"document": name} for name in documents]},
                      run=row.optional("run_id"))


def _read_sentence(sentence: Row, documents: list[str], grow: bool) -> str:
    """Return a sentence with its citations in brackets, as positions from 1. A citation of an unknown document becomes
    the position after the last, unless `grow` adds the document to the list."""
    cited, places = sentence.fields.get("citations") or [], dict[int, None]()
    for one in cited if isinstance(cited, list | dict) else [cited]:
        if not (isinstance(one, str) or (type(one) is int and one >= 0)):
            sentence.fail("citations", "a list of places in the references, from 0, or of ids", cited)
        if grow and isinstance(one, str) and one not in documents:
            documents.append(one)
        place = documents.index(one) if one in documents else one if isinstance(one, int) else len(documents)
        places[min(place, len(documents)) + 1] = None
    text = " ".join(sentence.text("text").split())
    return f"{text} [{', '.join(map(str, places))}]" if places else text


def _write_line(answer: Answer) -> Answer:
    """Return one row. The last sentence takes the citations that are not in the text."""
    sentences: list[dict[str, Any]] = [{"text": strip_citations(piece), "citations": [
        place - 1 for *_, places in find_citations(piece) for place in places if 0 < place <= len(answer["contexts"])]}
        for piece in split_statements(answer["answer"] or "")]
    known = {place for sentence in sentences for place in sentence["citations"]}
    for sentence in sentences[-1:]:
        sentence["citations"] += [place - 1 for place in answer["citations"] if place - 1 not in known]
    return {"run_id": answer["run"], "topic_id": answer["id"], "topic": answer["question"],
            "references": [context["document"] for context in answer["contexts"]],
            "response_length": sum(len(sentence["text"].split()) for sentence in sentences), "answer": sentences}


TREC_RAG = AnswerFormat(_read, line_writer(_write_line), several_runs=True)
