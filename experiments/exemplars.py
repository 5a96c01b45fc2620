"""Worked examples for prompts: JSON Lines, one example a line.

Only `question` and `answer` must be there. One line:

    {"question": "Which mill opened first?", "documents": ["The north mill opened in 1871.", "The south mill ..."],
     "reasoning": "The years are 1871 and 1880; the first is the north mill's.", "answer": "The north mill [1]"}
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path

from documents.errors import BenchmarkError, SettingsError
from documents.places import local
from documents.rows import Row, read_rows
from documents.types import Chunk, digest
from experiments.benchmarks.chained import with_references
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
        found = tuple(map(_exemplar, read_rows(local(path))))
    except BenchmarkError as error:
        raise SettingsError(f"exemplars: {error}") from error
    if not found:
        raise SettingsError(f"exemplars: {path}: no example in it")
    return found


def check_exemplars(exemplars: tuple[Exemplar, ...], benchmark: Benchmark) -> None:
    """Make sure that no example tells a question's answer.

    Raises:
        SettingsError: an example asks one of the benchmark's questions or sub-questions, in whatever case and
            punctuation; or it holds the words of one, and asks them over a document of that question's.
    """
    told = [_folded(exemplar.question) for exemplar in exemplars]
    for question in benchmark.questions if exemplars else ():
        asked = {_folded(text) for text in _asked(question)}
        for place, (exemplar, words) in enumerate(zip(exemplars, told, strict=True), start=1):
            if words in asked or (any(_holds(words, text) for text in asked)
                                  and _shares_documents(exemplar, [*question.chunks, *benchmark.shared])):
                raise SettingsError(f"exemplars: example {place} asks the question {question.id} of {benchmark.name}, "
                                    "or a part of it, and would tell its answer; take another example")


def _asked(question: Question) -> Iterator[str]:
    """The question and its sub-questions, these also with the answers that they refer to."""
    yield question.text
    for text in question.sub_questions:
        yield from {text, with_references(text, question.sub_answers)}


def _shares_documents(exemplar: Exemplar, chunks: Iterable[Chunk]) -> bool:
    """Whether a document of the example is one of the chunks, or a part of one, or the other way round."""
    contents = [_folded(chunk.content) for chunk in chunks]
    return any(_holds(content, shown) or _holds(shown, content)
               for shown in map(_folded, exemplar.documents) for content in contents)


def _holds(text: str, words: str) -> bool:
    return bool(words.strip()) and f" {words} " in f" {text} "


def _folded(text: str) -> str:
    """Folded words; the text itself where it has none."""
    return fold(text) or text.strip()


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
