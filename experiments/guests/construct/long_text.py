"""Reading a long text with a writer of a small context: section by section, the notes merged until they fit."""
from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from functools import lru_cache
from re import compile as pattern
from typing import Any

from pydantic import BaseModel, Field

from ragbed.documents.types import Document
from ragbed.experiments.guests.construct.llm import WRITER, structured, together
from ragbed.experiments.guests.construct.stages import Dropped, Playing, numbered
from ragbed.experiments.guests.review.items import Evidence

CALLS = 240
"""The most calls that the notes of a text take."""
_SECTIONS, _ROUNDS = CALLS // 4, 6
_FEWEST = 10  # paragraphs of a text whose clues and conclusion stand apart
_BLOCK, _LINE = pattern(r"\S(?:.*\n(?!\s*\n))*.*\S|\S"), pattern(r"\S.*")
Paragraphs = Mapping[int, Evidence]
"""Paragraphs of a text by their numbers, which begin with 1."""
Noted = tuple[str, Paragraphs]


class Notes(BaseModel):
    """A writer's notes: a summary, and the numbers of the paragraphs that are clues."""

    summary: str
    clues: list[int] = Field(max_length=40)


@lru_cache(maxsize=64)
def paragraphs(document: Document) -> Paragraphs:
    """Return the paragraphs of a text, between blank lines; its lines, where it has no ten of these."""
    blocks, lines = ({number: Evidence(document.id, "plain", *found.span(), found[0])
                      for number, found in enumerate(form.finditer(document.plain), 1)} for form in (_BLOCK, _LINE))
    return blocks if len(blocks) >= _FEWEST else lines


def sections(document: Document, size: int) -> list[Paragraphs]:
    """Return the paragraphs of a text in sections of at most so many characters; a longer paragraph is one alone.

    Raises:
        Dropped: the text is too short to have clues and a conclusion apart, or has too many sections.
    """
    texts = paragraphs(document)
    if len(texts) < _FEWEST:
        raise Dropped(f"it has fewer than {_FEWEST} paragraphs")
    made = [_joined(group)[1] for group in _packed([("", {number: one}) for number, one in texts.items()], size)]
    if len(made) > _SECTIONS:
        raise Dropped(f"it has more than {_SECTIONS} sections; a larger options.section makes fewer")
    return made


def noted(document: Document, size: int) -> Playing:
    """Have a writer sum up each section and name its clues, and merge the notes until they are half a section long.

    Returns:
        the summary, the clues, and how many sections were read, as in `34 of 35`; one of which no reply fits is left
        out.

    Raises:
        Dropped: as `sections`; or no section could be read, or the notes stay too long.
    """
    parts = sections(document, size)
    came = yield from together([_section(part) for part in parts])
    notes = [one for one in came if one is not None]
    if not notes:
        raise Dropped("no section of it could be read")
    told = f"{len(notes)} of {len(parts)}"
    for _ in range(_ROUNDS):
        if sum(map(_length, notes)) <= size // 2:
            return *_joined(notes), told
        notes = yield from together([_merged(group) for group in _packed(notes, size)])
    raise Dropped("the notes of its sections stay too long; a larger options.section may hold them")


def _packed(notes: Sequence[Noted], size: int) -> list[list[Noted]]:
    groups: list[list[Noted]] = []
    for one in notes:
        if groups and sum(map(_length, groups[-1])) + _length(one) <= size:
            groups[-1].append(one)
        else:
            groups.append([one])
    return groups


def _section(part: Paragraphs) -> Generator[Any, Any, Noted | None]:
    try:
        return (yield from _notes("notes", {"part": numbered(part)}, part, 8))
    except Dropped:
        return None


def _merged(group: Sequence[Noted]) -> Generator[Any, Any, Noted]:
    summaries, clues = _joined(group)
    return (yield from _notes("merge", {"summaries": summaries, "clues": numbered(clues) or "(none)"}, clues,
                              (len(clues) + 1) // 2))


def _notes(name: str, given: Mapping[str, str], shown: Paragraphs, most: int) -> Generator[Any, Any, Noted]:
    """Ask for a summary and at most so many clues; a number that was not shown is none."""
    notes, _ = yield from structured(WRITER, name, Notes, f"detectiveqa_{name}", given, most=max(shown, default=None))
    clues = [number for number in dict.fromkeys(notes.clues) if number in shown][:most]
    return notes.summary, {number: shown[number] for number in sorted(clues)}


def _joined(notes: Sequence[Noted]) -> Noted:
    clues = {number: one for _, some in notes for number, one in some.items()}
    return "\n".join(summary for summary, _ in notes), clues


def _length(notes: Noted) -> int:
    return len(notes[0]) + sum(len(one.text) for one in notes[1].values())
