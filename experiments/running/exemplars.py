"""Worked examples for prompts, checked against the questions of a benchmark."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from documents.errors import SettingsError
from documents.types import Chunk
from experiments.benchmarks.fields import with_references
from experiments.question import Benchmark, Question
from strategies.reading import fold
from strategies.settings.exemplars import read_exemplars as read_file
from strategies.types import Exemplar


def read_exemplars(path: Path | None) -> tuple[Exemplar, ...]:
    """The examples of a run's file; none where it names none. Errors as those of the strategies' own examples."""
    return () if path is None else read_file(path)


def check_exemplars(exemplars: tuple[Exemplar, ...], benchmark: Benchmark, where: str = "exemplars") -> None:
    """Make sure that no example tells a question's answer.

    Args:
        where: what settings have them from, for the message.

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
                raise SettingsError(f"{where}: example {place} asks the question {question.id} of {benchmark.name}, "
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
