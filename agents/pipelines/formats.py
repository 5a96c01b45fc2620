"""Answers in the files of other tools: each row becomes what a pipeline returns."""
from __future__ import annotations

import ast
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from ragbed.documents.errors import BenchmarkError, MissingExtra
from ragbed.documents.paths import expand_path
from ragbed.documents.rows import Row, read_csv, read_json, read_rows

PredictionFormat = Literal["jsonl", "trec_rag", "inspect", "ragas", "ragchecker"]
_MOST_BYTES = 1 << 30  # of a file, unpacked
_LONGEST_LIST = 1 << 22  # characters of a list in a CSV file


@dataclass(frozen=True, slots=True)
class Prediction:
    """An answer of another tool; `came` is what it returned, in the fields that pipelines have by default."""

    place: str  # file and line, as errors say it
    id: str | None  # the question's; None where the format has none
    question: str  # its text; empty where the row does not say it
    came: Mapping[str, Any]
    run: str = ""  # which of the file's runs it is of
    repeat: int = 0  # from 0
    failure: str = ""  # why there is no answer, where the tool says it


def read_predictions(format: PredictionFormat, path: Path) -> Iterator[Prediction]:
    """Yield the answers of a file. Raises BenchmarkError, in one line with file and line, where it cannot be read or a
    row does not fit; and MissingExtra where the package that reads the format is not installed."""
    file = expand_path(path)
    if file.is_file():
        _check_size(file, file.stat().st_size)
    return _inspect(file) if format == "inspect" else map(_READERS[format], _ROWS.get(format, read_rows)(file))


def _check_size(file: Path, size: int) -> None:
    if size > _MOST_BYTES:
        raise BenchmarkError(f"{file}: larger than {_MOST_BYTES >> 20} MB; give a part of it")


def _made(row: Row, id: str | None, question: str, came: Mapping[str, Any], run: str = "",
          failure: str = "") -> Prediction:
    return Prediction(f"{row.file}, line {row.line}", id, question, came, run, 0, failure)


def _line(row: Row) -> Prediction:
    """Any JSON Lines; settings of the pipeline say where answer, contexts and citations stand."""
    id, question = row.stated_id(), row.optional("question")
    if id is None and not question.strip():
        row.fail("id", "the id of a question, or its text in `question`", None)
    return _made(row, id, question, row.fields, run=row.optional("run"), failure=row.optional("failure"))


def _trec_rag(row: Row) -> Prediction:
    """TREC RAG, 2024 and 2025 (trec-rag.github.io): sentences that cite places in `references`, from 0, or ids. As in
    RAGTIME and other tracks (github.com/hltcoe/rag-run-validator), run and topic may stand in `metadata`, and the
    sentences are called `responses` and cite ids with scores."""
    about = row.part("metadata", row.fields["metadata"]).fields if "metadata" in row.fields else {}
    row = Row(row.file, row.line, {**about, **row.fields})
    listed = row.fields.get("references")
    if not isinstance(listed, list | None):
        row.fail("references", "a list of ids", listed)
    documents = [str(one) for one in listed or ()]
    texts = [_cited(sentence, documents, listed is None)
             for sentence in row.parts("answer" if "answer" in row.fields else "responses")]
    return _made(row, row.id("topic_id", "narrative_id", "request_id"),
                 row.optional("topic") or row.optional("narrative"),
                 {"answer": "\n".join(texts) or None, "contexts": [{"document": name} for name in documents]},
                 run=row.optional("run_id"))


def _cited(sentence: Row, documents: list[str], grows: bool) -> str:
    """A sentence on a line of its own, with the places that it cites, from 1; what is cited and is no reference has the
    place after the last. Without references, `grows`, they are what is cited."""
    cited, places = sentence.fields.get("citations") or [], dict[int, None]()
    for one in cited if isinstance(cited, list | dict) else [cited]:
        if not (isinstance(one, str) or (type(one) is int and one >= 0)):
            sentence.fail("citations", "a list of places in the references, from 0, or of ids", cited)
        if grows and isinstance(one, str) and one not in documents:
            documents.append(one)
        at = documents.index(one) if one in documents else one if isinstance(one, int) else len(documents)
        places[min(at, len(documents)) + 1] = None
    text = " ".join(sentence.text("text").split())
    return f"{text} [{', '.join(map(str, places))}]" if places else text


def _ragas(row: Row) -> Prediction:
    """A sample of one turn of ragas (docs.ragas.io), as an EvaluationDataset's `to_jsonl` and `to_csv` write it."""
    if not isinstance(row.fields.get("user_input"), str):
        row.fail("user_input", "the text of one question: samples of several turns are not read", None)
    texts, ids = (row.fields.get(name) or [] for name in _LISTS)
    if not isinstance(texts, list) or not isinstance(ids, list) or (texts and ids and len(texts) != len(ids)):
        row.fail(_LISTS[1], f"a list, as long as that of {_LISTS[0]}", ids)
    contexts = [{"text": text, "document": str(id)}
                for text, id in zip(texts or [""] * len(ids), ids or [""] * len(texts), strict=True)]
    return _made(row, None, row.filled("user_input"), {"answer": row.fields.get("response"), "contexts": contexts})


_LISTS = ("retrieved_contexts", "retrieved_context_ids")


def _ragas_rows(file: Path) -> Iterator[Row]:
    """The rows; in a CSV file lists are written as Python's."""
    if file.suffix != ".csv":
        yield from read_rows(file)
        return
    for line in read_csv(file):
        row = Row(file, line.line, fields := {name: value for name, value in line.fields.items() if value != ""})
        for name in fields.keys() & set(_LISTS):
            try:
                fields[name] = ast.literal_eval(fields[name]) if len(fields[name]) <= _LONGEST_LIST else None
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                fields[name] = None
            if not isinstance(fields[name], list):
                row.fail(name, "a list", line.fields[name])
        yield row


def _ragchecker(row: Row) -> Prediction:
    """RAGChecker (github.com/amazon-science/RAGChecker)."""
    contexts = row.parts("retrieved_context") if row.fields.get("retrieved_context") else []
    return _made(row, row.id("query_id"), row.optional("query"),
                 {"answer": row.text("response") or None, "contexts": [one.fields for one in contexts]})


def _ragchecker_rows(file: Path) -> Iterator[Row]:
    """The rows of the one object that its input is, and its output."""
    content = read_json(file)
    for number, one in enumerate(Row(file, 1, content if isinstance(content, dict) else {}).parts("results"), start=1):
        yield Row(file, number, one.fields)


def _inspect(file: Path) -> Iterator[Prediction]:
    """Inspect (inspect.aisi.org.uk): the completion of each sample and epoch. What it read is what the dataset or a
    solver put under `contexts` of the sample's metadata; `citations` and `refused` likewise."""
    try:
        from ijson import JSONError
        from inspect_ai.log import read_eval_log
        from zstandard import ZstdError
    except ImportError as error:
        raise MissingExtra("inspect-ai", "inspect") from error
    packed = file.suffix == ".eval"
    try:
        if packed:
            _check_size(file, sum(one.file_size for one in zipfile.ZipFile(file).infolist()))
        log = read_eval_log(file.resolve(), resolve_attachments="core", format="eval" if packed else "json",
                            exclude_fields={"events", "messages", "store"})
    except (AttributeError, EOFError, LookupError, OSError, RuntimeError, TypeError, ValueError, struct.error,
            zipfile.BadZipFile, JSONError, ZstdError) as error:  # which damaged logs were seen to raise
        said = " ".join(str(error).split())[:200] or type(error).__name__
        raise BenchmarkError(f"{file}: cannot be read as an Inspect log: {said}") from error
    for sample in log.samples or ():
        asked = sample.input if isinstance(sample.input, str) else next(
            (one.text for one in reversed(sample.input) if one.role == "user"), "")
        came = {name: sample.metadata.get(name) for name in ("contexts", "citations", "refused")}
        came["answer"] = sample.output.completion or None
        if (usage := sample.model_usage.get(log.eval.model) or sample.output.usage) is not None:
            came |= {"prompt_tokens": usage.input_tokens + (usage.input_tokens_cache_read or 0) + (
                usage.input_tokens_cache_write or 0), "completion_tokens": usage.output_tokens,
                "price": usage.total_cost}
        yield Prediction(f"{file}, sample {sample.id}, epoch {sample.epoch}", str(sample.id), asked, came, "",
                         sample.epoch - 1, " ".join(sample.error.message.split())[:300] if sample.error else "")


_READERS: Mapping[PredictionFormat, Callable[[Row], Prediction]] = MappingProxyType({
    "jsonl": _line, "trec_rag": _trec_rag, "ragas": _ragas, "ragchecker": _ragchecker})
_ROWS: Mapping[PredictionFormat, Callable[[Path], Iterator[Row]]] = MappingProxyType({
    "ragas": _ragas_rows, "ragchecker": _ragchecker_rows})
