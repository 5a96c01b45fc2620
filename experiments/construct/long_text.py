"""Reading a long text with a writer of a small context: section by section, the notes merged until they fit."""
from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Generator, Sequence
from functools import lru_cache
from re import compile as pattern
from typing import Any, TypeVar

from pydantic import BaseModel, Field

from documents.types import Chunk, Document
from experiments.construct.asking import WRITER, structured, together
from experiments.construct.item import Dropped, Playing, quoted

CALLS = 240
"""The most calls that the notes of a text take."""
_SECTIONS, _ROUNDS = CALLS // 4, 6
_FEWEST = 10  # paragraphs of a text whose clues and conclusion stand apart
_BLOCK, _LINE = pattern(r"\S(?:.*\n(?!\s*\n))*.*\S|\S"), pattern(r"\S.*")
Clue = tuple[int, str]
"""The number of a paragraph, from 1, and words of it."""
Noted = tuple[str, list[Clue]]
Part = TypeVar("Part")


class Notes(BaseModel):
    """A writer's notes of a section: clues are copied word for word."""

    summary: str
    clues: list[str] = Field(max_length=8)


class Merged(BaseModel):
    """The notes of several sections in one, with the numbers of the clues that stay."""

    summary: str
    clues: list[int] = Field(max_length=40)


@lru_cache(maxsize=64)
def paragraphs(document: Document) -> tuple[Chunk, ...]:
    """Return the paragraphs of a text, between blank lines; its lines, where it has no ten of these."""
    blocks, lines = (tuple(Chunk.of(document, "plain", *found.span()) for found in form.finditer(document.plain))
                     for form in (_BLOCK, _LINE))
    return blocks if len(blocks) >= _FEWEST else lines


def paragraph_at(document: Document, at: int) -> int:
    """Return the number, from 1, of the paragraph that holds an offset."""
    return bisect_right(paragraphs(document), at, key=lambda one: one.start)


def sections(document: Document, size: int) -> list[list[Chunk]]:
    """Return the paragraphs of a text in sections of at most so many characters; a longer paragraph is one alone.

    Raises:
        Dropped: the text is too short to have clues and a conclusion apart, or has too many sections.
    """
    texts = paragraphs(document)
    if len(texts) < _FEWEST:
        raise Dropped(f"it has fewer than {_FEWEST} paragraphs")
    made = _packed(texts, size, lambda one: one.end - one.start)
    if len(made) > _SECTIONS:
        raise Dropped(f"it has more than {_SECTIONS} sections; a larger options.section makes fewer")
    return made


def noted(document: Document, size: int) -> Playing:
    """Have a writer summarise each section and copy its clues, and merge the notes until they are half a section long.

    Returns:
        the summary, the clues in the order of the text, and how many sections were read, as in `34 of 35`; one of which
        no reply fits is left out.

    Raises:
        Dropped: as `sections`; or no section could be read, or the notes stay too long.
    """
    parts = sections(document, size)
    came = yield from together([_section(document, part) for part in parts])
    notes = [one for one in came if one is not None]
    told = f"{len(notes)} of {len(parts)}"
    for _ in range(_ROUNDS):
        if sum(map(_length, notes)) <= size // 2:
            break
        notes = yield from together([_merged(group) for group in _packed(notes, size, _length)])
    if not notes:
        raise Dropped("no section of it could be read")
    if sum(map(_length, notes)) > size // 2:
        raise Dropped("the notes of its sections stay too long; a larger options.section may hold them")
    return "\n".join(summary for summary, _ in notes), sorted({clue for _, some in notes for clue in some}), told


def text_of(section: Sequence[Chunk]) -> str:
    """Return the paragraphs of a section as prompts show them."""
    return "\n\n".join(paragraph.content for paragraph in section)


def _packed(parts: Sequence[Part], size: int, length: Callable[[Part], int]) -> list[list[Part]]:
    groups: list[list[Part]] = []
    for part in parts:
        if groups and sum(map(length, groups[-1])) + length(part) <= size:
            groups[-1].append(part)
        else:
            groups.append([part])
    return groups


def _section(document: Document, section: Sequence[Chunk]) -> Generator[Any, Any, Noted | None]:
    try:
        notes, _ = yield from structured(WRITER, "notes", Notes, "detectiveqa_notes", {"part": text_of(section)})
    except Dropped:
        return None
    stand = [quoted(clue, document, "plain", section[0].start, section[-1].end) for clue in notes.clues]
    return notes.summary, [(paragraph_at(document, one.start), one.text) for one in stand if one.end]


def _merged(group: Sequence[Noted]) -> Generator[Any, Any, Noted]:
    clues = [clue for _, some in group for clue in some]
    shown = "\n".join(f"[{number}] {' '.join(words.split())}" for number, (_, words) in enumerate(clues, 1))
    merged, _ = yield from structured(WRITER, "merge", Merged, "detectiveqa_merge", {
        "summaries": "\n".join(summary for summary, _ in group), "clues": shown or "(none)"})
    stay = [number for number in dict.fromkeys(merged.clues) if 0 < number <= len(clues)][:(len(clues) + 1) // 2]
    return merged.summary, [clues[number - 1] for number in sorted(stay)]


def _length(notes: Noted) -> int:
    return len(notes[0]) + sum(len(words) for _, words in notes[1])
