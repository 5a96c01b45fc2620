"""DetectiveQA's novels: one text file each, with numbered paragraphs, found by the number in its name."""
from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from ragbed.documents.errors import BenchmarkError
from ragbed.documents.rows import Row, read_csv, read_json, read_text
from ragbed.documents.types import Chunk, Document, digest
from ragbed.experiments.benchmarks.base import files_in

TITLES = ("titles.json", "titles.csv")
_BRACKETED = re.compile(r"\s*\[(\d{1,9})\]\s*")
_PLAIN = re.compile(r"\s*(\d{1,9})(?:[.:、)]\s*|\s+)")
_LANGUAGE = re.compile(r"(?<![a-z])(en|english|zh|cn|chinese)(?![a-z])", re.IGNORECASE)
_CJK = re.compile(r"[\u3400-\u9fff]")


class Novel:
    """A novel without its paragraph numbers, one paragraph a line.

    Attributes:
        paragraphs: by number, in order, without blank ones.
        last: the number of the last paragraph.
        title, author: empty if they are unknown.
    """

    def __init__(self, name: str, paragraphs: Iterable[tuple[int, str]], about: str) -> None:
        numbers, texts = zip(*paragraphs, strict=True)
        self.document = Document(digest("novel", name, *texts)[:16], name, Path(name).stem, "", "\n".join(texts))
        self.about, self.paragraphs, at = about, dict[int, Chunk](), 0
        for number, text in zip(numbers, texts, strict=True):
            if text:
                self.paragraphs[number] = Chunk.of(self.document, "plain", at, at + len(text))
            at += len(text) + 1
        self.last = max(self.paragraphs)
        self.before = cache(self._before)

    def _before(self, number: int) -> tuple[tuple[Chunk, ...], Chunk]:
        shown = tuple(chunk for at, chunk in self.paragraphs.items() if at < number)
        return shown, Chunk.of(self.document, "plain", 0, shown[-1].end if shown else 0)


class Shelf:
    """The novels below a folder, each read once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, list[Path]] = defaultdict(list)
        for file in files_in(folder, (".txt",)):
            self._files[key(file.stem)].append(file)
        self._opened = cache(self._open)
        self._titles = cache(_titles)

    def novel(self, id: str, language: str) -> Novel:
        """Return the novel with that id in that language. Raises BenchmarkError if there is no such file or more than
        one, or if it does not have one numbered paragraph a line."""
        known = [(language_named(file.relative_to(self._folder).as_posix()), file) for file in self._files[key(id)]]
        found = [file for named, file in known if named == language] or [file for named, file in known if not named]
        if len(found) != 1:
            names = " and ".join(file.name for file in found) or "none"
            raise BenchmarkError(f"{self._folder}: expected one .txt file of novel {id} in {language}, named after its "
                                 f"number, such as '{id}-Title-Author.txt'; found {names}")
        return self._opened(found[0])

    def _open(self, file: Path) -> Novel:
        titles = self._titles(self._folder) | self._titles(file.parent)
        about = titles.get(key(file.stem)) or _named(file.stem)
        return Novel(file.relative_to(self._folder).as_posix(), _paragraphs(file), about)


def key(name: str) -> str:
    """Return the first number in a file name or an id, else the text before the first dash."""
    number = re.search(r"\d+", name)
    return number[0].lstrip("0") or "0" if number else name.split("-")[0].strip()


def language_named(path: str) -> str | None:
    """Return `en` or `zh`, whichever the path has last; None if it has neither."""
    named = _LANGUAGE.findall(path.replace("_", " "))
    return None if not named else "en" if named[-1].lower() in ("en", "english") else "zh"


def language_of(text: str) -> str:
    """Return `zh` if at least a tenth of the text is Chinese characters, else `en`."""
    return "zh" if len(_CJK.findall(text)) * 10 >= max(len(text), 1) else "en"


def _paragraphs(file: Path) -> Iterator[tuple[int, str]]:
    """Return number and text of each paragraph; a line without the next number continues the paragraph before it."""
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


def _titles(folder: Path) -> dict[str, str]:
    """Return the description of each novel by id from a folder's table: `{"117": {"title": …, "author": …}}`, or
    columns."""
    table, columns = (folder / name for name in TITLES)
    rows: list[Row] = []
    if table.is_file():
        whole = Row(table, 1, {"titles": read_json(table)})
        for id, row in whole.part("titles", whole.fields["titles"]).fields.items():
            rows.append(whole.part(id, {**whole.part(id, row).fields, "novel_id": id}))
    if columns.is_file():
        rows += read_csv(columns)
    return {key(row.text("novel_id")): _about(row.text("title"), row.optional("author")) for row in rows}


def _named(stem: str) -> str:
    """Return title and author from a name such as `117-Title-Author`; empty if it has no title."""
    parts = [part.strip() for part in stem.split(" - " if " - " in stem else "-")]
    if not re.search(r"\d", parts[0]) or len(parts) < 2:
        return ""
    *title, author = parts[1:] if len(parts) > 2 else [*parts[1:], ""]
    return _about("-".join(title), author)


def _about(title: str, author: str) -> str:
    return f"{title} by {author}" if author else title
