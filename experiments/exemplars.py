"""Worked examples for prompts: JSON Lines, one example a line.

Only `question` and `answer` must be there. One line:

    {"question": "Which mill opened first?", "documents": ["The north mill opened in 1871.", "The south mill ..."],
     "reasoning": "The years are 1871 and 1880; the first is the north mill's.", "answer": "The north mill [1]"}
"""
from __future__ import annotations

from collections import defaultdict
from dataclasses import fields
from pathlib import Path

from documents.errors import BenchmarkError, SettingsError
from documents.types import digest
from experiments.benchmarks.rows import Row, read_rows
from experiments.question import Benchmark, Question
from strategies.reading import fold
from strategies.types import Exemplar

_FIELDS = tuple(field.name for field in fields(Exemplar))


def read_exemplars(path: Path | None) -> tuple[Exemplar, ...]:
    """The examples of the file, in its order; none where there is no file to read.

    Raises:
        SettingsError: the file cannot be read, is empty, or a line does not fit: file, line, field, expected.
    """
    if path is None:
        return ()
    try:
        found = tuple(map(_exemplar, read_rows(path.expanduser())))
    except BenchmarkError as error:
        raise SettingsError(f"exemplars: {error}") from error
    if not found:
        raise SettingsError(f"exemplars: {path}: no example in it")
    return found


def check_exemplars(exemplars: tuple[Exemplar, ...], benchmark: Benchmark) -> None:
    """Make sure that no example tells a question's answer.

    Raises:
        SettingsError: an example is one of the benchmark's questions. One of the same words over other documents is
            another question.
    """
    if not exemplars:
        return
    asked: dict[str, list[Question]] = defaultdict(list)
    for question in benchmark.questions:
        asked[fold(question.text)].append(question)
    for place, exemplar in enumerate(exemplars, start=1):
        for question in asked.get(fold(exemplar.question), ()):
            if _shares_documents(exemplar, question):
                raise SettingsError(f"exemplars: example {place} is the question {question.id} of {benchmark.name}, "
                                    "and would tell its answer; take another example")


def _shares_documents(exemplar: Exemplar, question: Question) -> bool:
    """Whether the example is asked over documents of the question's; where either has none, it may be."""
    own = {fold(chunk.content) for chunk in question.chunks}
    return not own or not exemplar.documents or not own.isdisjoint(map(fold, exemplar.documents))


def exemplars_hash(exemplars: tuple[Exemplar, ...]) -> str | None:
    """A hash of what the examples say; None where there are none."""
    return digest(*(repr(exemplar) for exemplar in exemplars)) if exemplars else None


def _exemplar(row: Row) -> Exemplar:
    for name in row.fields:
        if name not in _FIELDS:
            row.fail(name, f"one of the fields {', '.join(_FIELDS)}", name)
    for name in ("question", "answer"):
        if not row.text(name).strip():
            row.fail(name, "text", row.text(name))
    documents = row.texts("documents") if row.fields.get("documents") is not None else ()
    return Exemplar(row.text("question"), row.text("answer"), documents, row.optional("reasoning"))
