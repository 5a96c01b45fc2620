"""Loading a benchmark of record files: which files are read, and their rows as questions with distinct ids."""
from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain, zip_longest
from pathlib import Path
from typing import Literal, TypeVar

from documents.errors import BenchmarkError
from documents.rows import Row, read_rows
from documents.types import Document
from experiments.benchmarks.files import files_below
from experiments.benchmarks.hub import fetched
from experiments.benchmarks.selection import Selection
from experiments.question import Benchmark, Question

Loaded = tuple[Question, Iterable[Document]]
T = TypeVar("T")
Split = Literal["train", "dev", "test"]
_SPLIT = re.compile(r"(?<![a-z])(train|dev|validation|valid|val|test)(?![a-z])", re.IGNORECASE)


class RecordFiles(Selection):
    """A benchmark whose questions are the records of files.

    Attributes:
        path: a file, a folder, or `hub:OWNER/NAME`, with `@REVISION` where one is wanted.
    """

    path: str

    def load(self) -> Benchmark:
        """The chosen questions.

        Raises:
            BenchmarkError: the files are not there, a record does not fit, or two have the same id.
        """
        questions, documents = gathered(self.loaded())
        return self.select(Benchmark(str(type(self).model_fields["kind"].default), questions, documents))

    def files(self) -> list[Path]:
        """The files that are read, in order."""
        return files_below(fetched(self.path))

    def rows(self) -> Iterator[Row]:
        """The records, in order."""
        return chain.from_iterable(map(read_rows, self.files()))

    def loaded(self) -> Iterable[Loaded]:
        """The questions in order, one for each record, with their documents.

        Raises:
            BenchmarkError: see `load`.
        """
        return map(self.question, self.rows())

    def question(self, row: Row) -> Loaded:
        """The question of one record, and the documents of its chunks.

        Raises:
            BenchmarkError: the record does not fit: file, line, field, expected.
        """
        raise NotImplementedError


class SplitFiles(RecordFiles):
    """A benchmark of record files that are named after their split.

    Attributes:
        split: which files of a folder are read; one file, or a folder whose files name no split, is read whole.
    """

    split: Split = "dev"

    def files(self) -> list[Path]:
        """The files of the split, in order of name."""
        return files_of_split(fetched(self.path), self.split)


def files_of_split(path: Path, split: Split) -> list[Path]:
    """The file itself, or the files below a folder whose path says the split (`validation` says `dev`); all of them
    where none says any.

    Raises:
        BenchmarkError: there is none.
    """
    files = files_below(path)
    if path.is_file():
        return files
    said = {file: _split(file.relative_to(path).as_posix()) for file in files}
    if not any(said.values()):
        return files
    found = [file for file in files if said[file] == split]
    if not found:
        there = sorted({name for name in said.values() if name})
        raise BenchmarkError(f"{path}: no file of the split {split}; set split to one of: {', '.join(there)}")
    return found


def alternating(lists: Iterable[Iterable[T]]) -> Iterator[T]:
    """The first of each, the second of each, and so on; one that has ended is passed over."""
    return (item for turn in zip_longest(*lists) for item in turn if item is not None)


def gathered(loaded: Iterable[Loaded]) -> tuple[tuple[Question, ...], dict[str, Document]]:
    """All questions, and their documents by id.

    Raises:
        BenchmarkError: two questions have the same id.
    """
    questions: dict[str, Question] = {}
    documents: dict[str, Document] = {}
    for question, brought in loaded:
        if question.id in questions:
            raise BenchmarkError(f"two questions have the id {question.id}; give the path of one file, not of a "
                                 "folder that holds a question twice")
        questions[question.id] = question
        documents.update((document.id, document) for document in brought)
    return tuple(questions.values()), documents


def _split(path: str) -> Split | None:
    """The last mention decides, so that a file's own name goes before its folder's."""
    mentions = _SPLIT.findall(path.lower())
    if not mentions:
        return None
    return "train" if mentions[-1] == "train" else "test" if mentions[-1] == "test" else "dev"
