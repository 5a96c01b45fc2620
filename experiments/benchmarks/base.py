"""Base classes of benchmarks: a description, files, and the selection of questions by filter, sample and limit."""
from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, zip_longest
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from ragbed.documents.errors import BenchmarkError, did_you_mean
from ragbed.documents.rows import Row, convert_records, read_rows, skip_bad_records
from ragbed.documents.types import Document, digest
from ragbed.experiments.benchmarks.hub import fetch_files
from ragbed.experiments.question import ANSWERS, Benchmark, Question, Scheme

_SHOWN = 12  # values in a message
QUESTION_FILES = (".csv", ".tsv", ".xlsx", ".xlsm", ".parquet", ".jsonl", ".ndjson", ".json", ".yaml", ".yml")
"""Suffixes of files that can hold your own questions."""


@dataclass(frozen=True, slots=True)
class About:
    """The description of a benchmark.

    Attributes:
        paper: title, authors and year, with its address.
        licence: licence of the data.
        size: number and kind of the questions.
        get: where to get the files, and which of them to give as `path`.
        settings: settings in the paper that differ from ragbed's defaults.
        as_published: settings of the benchmark that as-published scoring implies.
    """

    paper: str
    licence: str
    size: str
    get: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    as_published: Mapping[str, Any] = field(default_factory=dict)


def files_in(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    """List the files with these suffixes anywhere below a folder, sorted by name and without hidden files."""
    return sorted(file for file in folder.rglob("*") if file.suffix in suffixes and file.is_file()
                  and not any(part.startswith(".") for part in file.relative_to(folder).parts))


def files_below(path: Path, suffixes: tuple[str, ...] = (".parquet", ".jsonl", ".json")) -> list[Path]:
    """List the file itself, or the files with these suffixes below a folder. Raises BenchmarkError if there is none."""
    if path.is_file():
        return [path]
    found = files_in(path, suffixes)
    if not found:
        raise BenchmarkError(f"{path}: " + (f"no {', '.join(suffixes)} file in it" if path.is_dir()
                                            else "no such file or folder"))
    return found


class Selection(BaseModel):
    """The settings of a benchmark. They select its questions in this order:

    Attributes:
        filter: values by tag, or by `id`. A question is kept if it has, of every tag, one of the values. `tag` means
            any tag.
        sample: number of questions to draw at random with `seed`; they keep the benchmark's order.
        limit: number of questions to keep, from the first.
        seed: seed of `sample` and of all other random choices of the benchmark.
        skip_bad: skip invalid records and name them in the run's notes, instead of rejecting the file.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    about: ClassVar[About]
    scheme: ClassVar[Scheme] = ANSWERS
    if TYPE_CHECKING:
        kind: str  # each benchmark declares it as a Literal with a default

    limit: int | None = Field(default=None, gt=0)
    sample: int | None = Field(default=None, gt=0)
    seed: int = 0
    filter: dict[str, str | list[str]] = Field(default_factory=dict)
    skip_bad: bool = False

    def load(self) -> Benchmark:
        """Load the selected questions. Raises BenchmarkError if a file or record is invalid, or two ids are equal."""
        with skip_bad_records(self.skip_bad) as skipped:
            whole = self.whole()
        return self.select(replace(whole, skipped=tuple(skipped)))

    def whole(self) -> Benchmark:
        """Return the benchmark with all its questions; see `load`."""
        raise NotImplementedError

    def scheme_of(self, questions: Collection[Question]) -> Scheme:
        """Return how answers to these questions are scored."""
        return self.scheme

    @classmethod
    def run_as(cls, fields: Mapping[str, Any], run: Mapping[str, Any] = MappingProxyType({})) -> Mapping[str, Any]:
        """Return the settings of the paper's runs. `fields` are settings of this benchmark, and `run` those of the run;
        both may be invalid."""
        return cls.about.settings

    def select(self, benchmark: Benchmark) -> Benchmark:
        """Return the benchmark with only the selected questions, their documents and their scheme. Raises
        BenchmarkError if no question is left."""
        chosen = list(benchmark.questions)
        for tag, values in self.filter.items():
            chosen = self._filtered(chosen, benchmark, tag, [values] if isinstance(values, str) else values)
        if not chosen:
            raise BenchmarkError(f"{benchmark.name}: no question in it" + (
                f" that fits: {benchmark.skipped[0]}" if benchmark.skipped else ""))
        if self.sample is not None and self.sample < len(chosen):
            ranked = sorted(chosen, key=lambda question: digest(str(self.seed), question.id))
            kept = {question.id for question in ranked[:self.sample]}
            chosen = [question for question in chosen if question.id in kept]
        chosen = chosen[:self.limit]
        brought = {chunk.document for question in chosen for chunk in question.chunks}
        brought.update(chunk.document for chunk in benchmark.shared)
        documents = {id: document for id, document in benchmark.documents.items() if id in brought}
        return replace(benchmark, questions=tuple(chosen), documents=documents, scheme=self.scheme_of(chosen))

    def _filtered(self, chosen: list[Question], benchmark: Benchmark, tag: str, values: list[str]) -> list[Question]:
        """Return the questions with one of the values. Raises BenchmarkError if a value occurs in none."""
        every = {one.id: _values(one, tag) for one in benchmark.questions}
        known = dict.fromkeys(value for some in every.values() for value in some)
        tags = sorted({name for one in benchmark.questions for name in one.tags})
        for value in values:
            if value not in known:
                near = did_you_mean(value, known) if known else did_you_mean(tag, ["id", *tags])
                shown = f"{tag}: {', '.join(sorted(known)[:_SHOWN])}" if known else f"tags: {', '.join(tags) or 'none'}"
                raise BenchmarkError(f"{benchmark.name}: no question has {tag}={value}; {near}there are: {shown}")
        found = [one for one in chosen if any(value in every[one.id] for value in values)]
        if not found:
            raise BenchmarkError(f"{benchmark.name}: no question has {tag}={' or '.join(values)} and also the other "
                                 "values of the filter; leave one out")
        return found


def _values(question: Question, tag: str) -> Collection[str]:
    if tag == "id":
        return (question.id,)
    return set(chain.from_iterable(question.tags.values())) if tag == "tag" else question.tags.get(tag, ())


Loaded = tuple[Question, Iterable[Document]]
T = TypeVar("T")


class RecordFiles(Selection):
    """A benchmark that reads each question from a record in its files.

    Attributes:
        path: a file, a folder, or `hub:OWNER/NAME`, with an optional `@REVISION`.
    """

    path: str

    def whole(self) -> Benchmark:
        """Return the benchmark with all its questions."""
        return Benchmark(str(type(self).model_fields["kind"].default), *collect_questions(self.loaded()))

    def files(self) -> list[Path]:
        """List the files to read, in order."""
        return files_below(fetch_files(self.path))

    def rows(self) -> Iterator[Row]:
        """Yield the records, in order."""
        return chain.from_iterable(map(read_rows, self.files()))

    def loaded(self) -> Iterable[Loaded]:
        """Yield each record's question and documents, in order."""
        return convert_records(self.question, self.rows())

    def question(self, row: Row) -> Loaded:
        """Return the question of one record, and the documents of its chunks. Raises BenchmarkError with file, line,
        field and what was expected if the record does not fit."""
        raise NotImplementedError


def interleave(lists: Iterable[Iterable[T]]) -> Iterator[T]:
    """Yield the first item of each list, then the second of each, and so on."""
    return (item for turn in zip_longest(*lists) for item in turn if item is not None)


def collect_questions(loaded: Iterable[Loaded]) -> tuple[tuple[Question, ...], dict[str, Document]]:
    """Return all questions, and their documents by id. Raises BenchmarkError if two questions have the same id."""
    questions: dict[str, Question] = {}
    documents: dict[str, Document] = {}
    for question, brought in loaded:
        if question.id in questions:
            raise BenchmarkError(f"two questions have the id {question.id}; make the ids unique, or give the path of "
                                 "one file if the folder contains the questions twice")
        questions[question.id] = question
        documents.update((document.id, document) for document in brought)
    return tuple(questions.values()), documents
