"""Which files a benchmark is read from."""
from __future__ import annotations

from pathlib import Path

from documents.errors import BenchmarkError


def files_in(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    """The files with these suffixes anywhere below a folder, in order of name; hidden ones are copies and notes of
    other programs, and left out."""
    return sorted(file for file in folder.rglob("*") if file.suffix in suffixes and file.is_file()
                  and not any(part.startswith(".") for part in file.relative_to(folder).parts))


def files_below(path: Path, suffixes: tuple[str, ...] = (".parquet", ".jsonl", ".json")) -> list[Path]:
    """The file itself, or the files with these suffixes anywhere below a folder, see `files_in`.

    Raises:
        BenchmarkError: there is none.
    """
    if path.is_file():
        return [path]
    found = files_in(path, suffixes)
    if not found:
        raise BenchmarkError(f"{path}: " + (f"no {', '.join(suffixes)} file in it" if path.is_dir()
                                            else "no such file or folder"))
    return found
