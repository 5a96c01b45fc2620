"""CReSt's two splits, and which files hold which."""
from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from documents.errors import BenchmarkError
from experiments.benchmarks.files import files_in

Split = Literal["non_refusal", "refusal"]
SPLITS: tuple[Split, ...] = ("non_refusal", "refusal")
_SUFFIXES = (".parquet", ".jsonl", ".json")
_SPLIT = re.compile(r"(non[_-]?)?refusal", re.IGNORECASE)


def files_of_splits(path: Path) -> dict[Split, list[Path]]:
    """The files of each split, in order of name: one file, or all below a folder.

    A file belongs to the split that its name, or the name of a folder below `path`, says.

    Raises:
        BenchmarkError: nothing is there, a file names no split, or a folder lacks a split.
    """
    if not path.exists():
        raise BenchmarkError(f"{path}: no such file or folder")
    if path.is_file():
        split = _split(path.name)
        if split is None or path.suffix not in _SUFFIXES:
            raise BenchmarkError(f"{path}: expected a .parquet or .jsonl file with refusal or non_refusal in its name")
        return {split: [path]}
    found: dict[Split, list[Path]] = {}
    for file in files_in(path, _SUFFIXES):
        split = _split(file.relative_to(path).as_posix())
        if split is not None:
            found.setdefault(split, []).append(file)
    missing = [split for split in SPLITS if split not in found]
    if missing:
        raise BenchmarkError(f"{path}: no .parquet or .jsonl file with {' nor '.join(missing)} in its name")
    return found


def _split(name: str) -> Split | None:
    """The last mention decides, so that a file's own name goes before its folder's."""
    mentions = list(_SPLIT.finditer(name))
    if not mentions:
        return None
    return "non_refusal" if mentions[-1][1] else "refusal"
