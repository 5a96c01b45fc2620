"""DetectiveQA's novels: one text file each, of numbered paragraphs, found by the number in its name."""
from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from documents.errors import BenchmarkError
from documents.rows import read_json, read_text
from documents.types import Chunk, Document, digest
from experiments.benchmarks.base import files_in

TITLES = ("titles.json", "titles.csv")
_BRACKETED = re.compile(r"\s*\[(\d{1,9})\]\s*")
_PLAIN = re.compile(r"\s*(\d{1,9})(?:[.:、)]\s*|\s+)")
_LANGUAGE = re.compile(r"(?<![a-z])(en|english|zh|cn|chinese)(?![a-z])", re.IGNORECASE)
_CJK = re.compile(r"[\u3400-\u9fff]")


@dataclass(frozen=True)
class Novel:
    """A novel without its paragraph numbers, one paragraph a line.

    Attributes:
        paragraphs: by number, in order; blank ones are none.
        about: title and author; empty where they are not known.
    """

    document: Document
    paragraphs: dict[int, Chunk]
    about: str
    _before: dict[int, tuple[tuple[Chunk, ...], Chunk]] = field(default_factory=dict)

    @cached_property
    def last(self) -> int:
        return max(self.paragraphs)

    def before(self, number: int) -> tuple[tuple[Chunk, ...], Chunk] | None:
        """Return the paragraphs before that one, and all of them as one chunk; None where there is none."""
        if number not in self._before:
            shown = tuple(chunk for at, chunk in self.paragraphs.items() if at < number)
            if not shown:
                return None
            self._before[number] = shown, Chunk.of(self.document, "plain", 0, shown[-1].end)
        return self._before[number]


class Shelf:
    """The novels below a folder, each read once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, list[Path]] = {}
        for file in files_in(folder, (".txt",)):
            self._files.setdefault(key(file.stem), []).append(file)
        self._read: dict[Path, Novel] = {}
        self._titles: dict[Path, dict[str, str]] = {}

    def novel(self, id: str, language: str) -> Novel:
        """Return the novel of that id in that language.

        Raises:
            BenchmarkError: there is no such file, or more than one; or it does not have a numbered paragraph a line.
        """
        known = [(language_named(file.relative_to(self._folder).as_posix()), file)
                 for file in self._files.get(key(id), [])]
        found = [file for named, file in known if named == language] or [file for named, file in known if not named]
        if len(found) != 1:
            names = " and ".join(file.name for file in found) or "none"
            raise BenchmarkError(f"{self._folder}: expected one .txt file of novel {id} in {language}, named after its "
                                 f"number, such as '{id}-Title-Author.txt'; found {names}")
        if found[0] not in self._read:
            self._read[found[0]] = self._opened(found[0], key(id))
        return self._read[found[0]]

    def _opened(self, file: Path, id: str) -> Novel:
        name = file.relative_to(self._folder).as_posix()
        numbers, texts = zip(*_paragraphs(file), strict=True)
        document = Document(digest("novel", name, *texts)[:16], name, file.stem, "", "\n".join(texts))
        chunks, at = {}, 0
        for number, text in zip(numbers, texts, strict=True):
            if text:
                chunks[number] = Chunk.of(document, "plain", at, at + len(text))
            at += len(text) + 1
        about = self._table(file.parent).get(id) or self._table(self._folder).get(id) or _named(file.stem)
        return Novel(document, chunks, about)

    def _table(self, folder: Path) -> dict[str, str]:
        if folder not in self._titles:
            self._titles[folder] = {key(id): about for file in TITLES if (folder / file).is_file()
                                    for id, about in _titles(folder / file)}
        return self._titles[folder]


def key(name: str) -> str:
    """Return the first number in a file name or an id, else what stands before the first dash."""
    number = re.search(r"\d+", name)
    return number[0].lstrip("0") or "0" if number else name.split("-")[0].strip()


def language_named(path: str) -> str | None:
    """Return `en` or `zh`, as the path has it last; None where it has neither."""
    named = _LANGUAGE.findall(path.replace("_", " "))
    return None if not named else "en" if named[-1].lower() in ("en", "english") else "zh"


def language_of(text: str) -> str:
    """Return `zh` where a tenth of the text or more is in Chinese characters, else `en`."""
    return "zh" if len(_CJK.findall(text)) * 10 >= max(len(text), 1) else "en"


def _paragraphs(file: Path) -> Iterator[tuple[int, str]]:
    """Number and text of each paragraph; a line without the next number goes on with the paragraph before it."""
    number, lines, form = 0, [""], None
    for at, line in enumerate(read_text(file).split("\n"), start=1):
        if form is None and line.strip():
            form = next((known for known in (_BRACKETED, _PLAIN) if known.match(line)), None)
            if form is None:
                raise BenchmarkError(f"{file}, line {at}: expected a paragraph number, such as [1], found "
                                     f"{line.strip()[:40]!r}")
            start = form.match(line)
        else:
            start = form.match(line) if form else None
            if start and int(start[1]) != number + 1 and (form is _PLAIN or int(start[1]) <= number):
                start = None
        if start is None:
            lines.append(line.strip())
            continue
        if number or any(lines):
            yield number, " ".join(filter(None, lines))
        number, lines = int(start[1]), [line[start.end():].strip()]
    if form is None:
        raise BenchmarkError(f"{file}: no paragraph in it")
    yield number, " ".join(filter(None, lines))


def _titles(file: Path) -> Iterator[tuple[str, str]]:
    """Id and description of each novel of a table: `{"117": {"title": …, "author": …}}`, or the same in columns."""
    if file.suffix == ".json":
        content = read_json(file)
        rows = [{"novel_id": id, **row} for id, row in content.items() if isinstance(row, dict)
                ] if isinstance(content, dict) else []
    else:
        try:
            with file.open(encoding="utf-8-sig", newline="") as stream:
                rows = list(csv.DictReader(stream))
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise BenchmarkError(f"{file}: cannot be read as CSV in UTF-8: {error}") from error
    for row in rows:
        if not isinstance(row.get("novel_id"), str) or not isinstance(row.get("title"), str):
            raise BenchmarkError(f"{file}: expected novel_id, title and author of each novel, found {row}")
        yield row["novel_id"], _about(row["title"], row.get("author") or "")


def _named(stem: str) -> str:
    """Title and author from a name such as `117-Title-Author`; empty where it has no title."""
    parts = [part.strip() for part in stem.split(" - " if " - " in stem else "-")]
    if not re.search(r"\d", parts[0]) or len(parts) < 2:
        return ""
    *title, author = parts[1:] if len(parts) > 2 else [*parts[1:], ""]
    return _about("-".join(title), author)


def _about(title: str, author: str) -> str:
    return f"{title} by {author}" if author else title
