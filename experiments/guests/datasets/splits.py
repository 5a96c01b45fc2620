"""Read the files of one split, pool the passages of all questions, and separate records of two kinds."""
from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from ragbed.documents.errors import BenchmarkError
from ragbed.documents.rows import Row
from ragbed.experiments.benchmarks.base import RecordFiles, files_below
from ragbed.experiments.benchmarks.hub import fetch_files
from ragbed.experiments.question import Benchmark

Split = Literal["train", "dev", "test"]
_SPLIT = re.compile(r"(?<![a-z])(train|dev|validation|valid|val|test)(?![a-z])")


def last_matches(path: Path, words: re.Pattern[str]) -> dict[Path, str]:
    """Return the last match of `words` in the path of each file, or an empty text without a match. So the name of a
    file takes precedence over that of its folder. Raises BenchmarkError if there is no file."""
    above = path.parent if path.is_file() else path
    return {file: ["", *words.findall(file.relative_to(above).as_posix().lower())][-1] for file in files_below(path)}


class SplitFiles(RecordFiles):
    """A benchmark whose record files are named after their split.

    Attributes:
        split: which files of a folder are read, by their path (`validation` counts as `dev`). A single file, or a
            folder whose files name no split, is read completely.
    """

    split: Split = "dev"

    def files(self) -> list[Path]:
        """List the files of the split by name. Raises BenchmarkError if there is none."""
        path = fetch_files(self.path)
        named = {file: word if word in ("train", "test") else "dev"
                 for file, word in last_matches(path, _SPLIT).items() if word}
        if path.is_file() or not named:
            return files_below(path)
        found = [file for file, split in named.items() if split == self.split]
        if not found:
            there = ", ".join(sorted(set(named.values())))
            raise BenchmarkError(f"{path}: no file for the split {self.split}; set split to one of: {there}")
        return found


class PooledFiles(SplitFiles):
    """A benchmark whose questions can search the passages of all questions, instead of only their own.

    Attributes:
        pooled: whether every question searches the passages of all questions in the files. This corpus stays the same
            if `limit`, `sample` or `filter` select fewer questions.
    """

    pooled: bool = False

    @classmethod
    def run_as(cls, fields: Mapping[str, Any], run: Mapping[str, Any] = MappingProxyType({})) -> Mapping[str, Any]:
        """Return the paper's settings. A pool has to be searched."""
        return {**cls.about.settings, **({"conditions": "retrieved"} if fields.get("pooled") else {})}

    def whole(self) -> Benchmark:
        """Return all questions. If pooled, their passages are shared. Raises BenchmarkError if the pool may hold an
        answer to a question that its own passages do not answer."""
        found = super().whole()
        if not self.pooled:
            return found
        if lacking := next((one.id for one in found.questions if not one.answerable), None):
            raise BenchmarkError(f"{self.path}: pooled needs answerable questions, because the passages of other "
                                 f"questions may answer {lacking}; give a file without such questions")
        return replace(found, questions=tuple(replace(one, provided=()) for one in found.questions),
                       shared=tuple(found.all_chunks))


def split_by_field(rows: Iterable[Row], field: str) -> tuple[list[Row], list[Row]]:
    """Return two lists: the records without the field, and the records with it."""
    parts: tuple[list[Row], list[Row]] = ([], [])
    for row in rows:
        parts[field in row.fields].append(row)
    return parts
