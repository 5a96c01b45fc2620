"""Detective novels with questions of our own, whose clues and answers are found in the text by what is quoted there."""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from documents.errors import BenchmarkError
from documents.parse import parse_document
from documents.rows import read_json, read_text
from experiments.benchmarks.base import files_in

_QUESTIONS = Path(__file__).with_name("novel_questions.json")
_START = re.compile(r"\*\*\* ?START OF (?:THE|THIS) PROJECT GUTENBERG EBOOK.*?\*\*\*", re.DOTALL)
_END = re.compile(r"\*\*\* ?END OF (?:THE|THIS) PROJECT GUTENBERG EBOOK")
_NOT_THE_NOVEL = re.compile(r"End of (?:the )?Project Gutenberg|Produced by ")
_FOLDED = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "—": "--"})
_PAGES = (".xhtml", ".html", ".htm")


@dataclass(frozen=True, slots=True)
class Told:
    """A novel with its questions.

    Attributes:
        stem: the name of its text file: number, title and author.
        paragraphs: one string each, the first is number 1.
        questions: as DetectiveQA's records have them.
    """

    number: int
    stem: str
    paragraphs: tuple[str, ...]
    questions: tuple[dict[str, Any], ...]


def read_novel(path: Path, before: Sequence[str] = ()) -> Told:
    """The novel of a Gutenberg text file, with the questions that there are for it.

    Args:
        before: paragraphs of other novels, which come first.

    Raises:
        BenchmarkError: it is no such file, there are no questions for it, or a quotation does not stand in it once.
    """
    text = read_text(path)
    known = read_json(_QUESTIONS)
    title = next((novel for novel in known if novel["title"].lower() in text[:5000].lower()), None)
    if title is None:
        raise BenchmarkError(f"{path}: there are questions for {' and '.join(novel['title'] for novel in known)} alone")
    own = _between_the_marks(path, text)
    if title["begins"] not in own:
        raise BenchmarkError(f"{path}: another edition: it has no paragraph {title['begins']!r}")
    own = own[own.index(title["begins"]):]
    return Told(title["number"], f"{title['number']}-{title['title']}-{title['author']}", (*before, *own),
                tuple(_question(path, own, question, len(before)) for question in title["questions"]))


def paragraphs_of(path: Path) -> list[str]:
    """The paragraphs of a Gutenberg text file, an HTML page, or a folder of pages in order of name.

    Raises:
        BenchmarkError: it is none of these.
    """
    if path.is_dir():
        return [paragraph for file in files_in(path, (".txt", *_PAGES)) for paragraph in paragraphs_of(file)]
    if path.suffix not in _PAGES:
        return _between_the_marks(path, read_text(path))
    try:
        return _split(parse_document(path.read_bytes(), path.name).text("plain"))
    except OSError as error:
        raise BenchmarkError(f"{path}: {error.strerror}") from error


def _between_the_marks(path: Path, text: str) -> list[str]:
    """The paragraphs without Project Gutenberg's header and licence."""
    start, end = _START.search(text), _END.search(text)
    if start is None or end is None:
        raise BenchmarkError(f"{path}: expected a text file of Project Gutenberg, with its START and END marks")
    return [paragraph for paragraph in _split(text[start.end():end.start()]) if not _NOT_THE_NOVEL.match(paragraph)]


def _split(text: str) -> list[str]:
    return [" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", text) if paragraph.strip()]


def _question(path: Path, paragraphs: Sequence[str], question: Mapping[str, Any], shift: int) -> dict[str, Any]:
    """The question as a record has it; its paragraphs are counted from 1, after those that come first."""
    told = _place(path, paragraphs, question["told"])
    clues = [-1 if step["quote"] is None else _place(path, paragraphs, step["quote"]) + shift
             for step in question["steps"]]
    return {"question": question["question"], "options": question["options"], "answer": question["answer"],
            "reasoning": [step["step"] for step in question["steps"]], "clue_position": clues,
            "answer_position": told + shift, "distraction": {}}


def _place(path: Path, paragraphs: Sequence[str], quote: str) -> int:
    wanted = _folded(quote)
    found = [number for number, text in enumerate(paragraphs, start=1) if wanted in _folded(text)]
    if len(found) != 1:
        raise BenchmarkError(f"{path}: expected one paragraph with {quote!r}, found {len(found)}; "
                             "this may be another edition")
    return found[0]


def _folded(text: str) -> str:
    """Without the differences between editions: straight quotation marks and dashes, no emphasis, small letters."""
    return text.translate(_FOLDED).replace("_", "").lower()
