"""What to read: files, folders and globs become a sorted list of sources."""
from __future__ import annotations

import glob
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from documents.errors import DocumentError

SUFFIXES: dict[str, str] = {
    ".html": "html", ".htm": "html", ".xhtml": "html",
    ".pdf": "pdf",
    ".txt": "text", ".text": "text",
    ".md": "markdown", ".markdown": "markdown",
}
"""The parser of each file suffix (lower case)."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read.

    Attributes:
        path: where it is.
        relative: its path relative to what was given, with forward slashes and in NFC, so that ids do not
            depend on the machine; longer by parent folders where two given folders would collide.
        problem: why it will not be read, where that is known already; `read_documents` reports it.
    """

    path: Path
    relative: str
    problem: str | None = None


def find_sources(sources: Sequence[str | Path]) -> list[Source]:
    """The files that `sources` name, sorted by their relative path.

    A folder is searched recursively, without hidden entries and unknown suffixes. A link inside a folder is
    followed to a file below that folder only; other links are listed with their problem. A file that is
    named itself is always listed.

    Raises:
        DocumentError: a path does not exist, or a glob matches nothing.
    """
    found: dict[str, Source] = {}
    for given in sources:
        for source in _expand(given):
            found.setdefault(os.path.abspath(source.path), source)
    return sorted(_without_collisions(found.values()), key=lambda source: source.relative)


def _expand(given: str | Path) -> Iterator[Source]:
    path = Path(given).expanduser()
    if path.is_dir():
        yield from _folder(path)
    elif path.exists() or path.is_symlink():
        yield _named(path, path.name)
    elif glob.has_magic(str(path)):
        yield from _glob(path)
    else:
        raise DocumentError(str(given), "no such file or folder")


def _glob(pattern: Path) -> Iterator[Source]:
    matches = sorted(glob.glob(str(pattern), recursive=True))
    if not matches:
        raise DocumentError(str(pattern), "matches no file")
    fixed = list(pattern.parts[: _first_magic(pattern)])
    base = Path(*fixed) if fixed else Path()
    for match in map(Path, matches):
        if match.is_dir():
            continue
        yield _named(match, str(match.relative_to(base)))


def _first_magic(pattern: Path) -> int:
    return next(index for index, part in enumerate(pattern.parts) if glob.has_magic(part))


def _named(path: Path, relative: str) -> Source:
    if not path.exists():
        return Source(path, _portable(relative), "a link to a file that does not exist")
    if not path.is_file():
        return Source(path, _portable(relative), "not a regular file")
    return Source(path, _portable(relative), _unknown(path))


def _unknown(path: Path) -> str | None:
    if path.suffix.lower() in SUFFIXES:
        return None
    return f"unknown type {path.suffix or 'without a suffix'}; known are {', '.join(SUFFIXES)}"


def _folder(root: Path) -> Iterator[Source]:
    inside = os.path.realpath(root)
    for folder, names, files in os.walk(root, onerror=_unreadable):
        names[:] = sorted(name for name in names if not name.startswith("."))
        for name in [*names, *sorted(files)]:
            path = Path(folder, name)
            relative = _portable(str(path.relative_to(root)))
            if path.is_symlink():
                yield from _link(path, relative, inside)
            elif name in files and _wanted(path):
                yield Source(path, relative)


def _unreadable(error: OSError) -> None:
    raise DocumentError(str(error.filename), f"cannot be read: {error.strerror}")


def _wanted(path: Path) -> bool:
    return not path.name.startswith(".") and path.suffix.lower() in SUFFIXES and path.is_file()


def _link(path: Path, relative: str, inside: str) -> Iterator[Source]:
    if path.name.startswith("."):
        return
    target = os.path.realpath(path)
    if os.path.isdir(target):
        yield Source(path, relative, "a link to a folder, which is not followed")
    elif path.suffix.lower() not in SUFFIXES:
        return
    elif not os.path.exists(target):
        yield Source(path, relative, "a link to a file that does not exist")
    elif os.path.commonpath([target, inside]) != inside:
        yield Source(path, relative, "a link that leads outside the folder, which is not followed")
    elif _wanted(path):
        yield Source(path, relative)


def _portable(relative: str) -> str:
    shown = os.fsencode(relative).decode("utf-8", "backslashreplace")
    return unicodedata.normalize("NFC", re.sub(r"\\", "/", shown) if os.sep == "\\" else shown)


def _without_collisions(sources: Iterable[Source]) -> list[Source]:
    """Relative paths are made distinct by as many parent folders as it takes."""
    result = list(sources)
    for extra in range(1, 256):
        counts = Counter(source.relative for source in result)
        if max(counts.values(), default=0) < 2:
            break
        result = [source if counts[source.relative] < 2 else _longer(source, extra) for source in result]
    return result


def _longer(source: Source, extra: int) -> Source:
    parts = Path(os.path.abspath(source.path)).parts
    have = source.relative.count("/") + 1
    return replace(source, relative=_portable("/".join(parts[-(have + 1):]).lstrip("/")))
