"""Read the files of one split, and separate records of two kinds."""
from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from ragbed.documents.errors import BenchmarkError
from ragbed.documents.rows import Row
from ragbed.experiments.benchmarks.base import RecordFiles, files_below, last_matches
from ragbed.experiments.benchmarks.hub import fetch_files

Split = Literal["train", "dev", "test"]
_SPLIT = re.compile(r"(?<![a-z])(train|dev|validation|valid|val|test)(?![a-z])")


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


def split_by_field(rows: Iterable[Row], field: str) -> tuple[list[Row], list[Row]]:
    """Return two lists: the records without the field, and the records with it."""
    parts: tuple[list[Row], list[Row]] = ([], [])
    for row in rows:
        parts[field in row.fields].append(row)
    return parts
