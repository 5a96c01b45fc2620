"""The worlds of an item: edits that a program applies to its documents, wherever the edited value stands.

Edited: a value that the answer rests on is another one, and the answer with it. Removed: the values that it rests on
are gone. Unrelated: a value that it does not rest on is another one.
"""
from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from ragbed.documents.types import Document
from ragbed.experiments.guests.construct.operations import Computation, Place, compute, find_basis
from ragbed.experiments.guests.construct.stages import Dropped
from ragbed.experiments.guests.construct.typed_tables import NUMBER, SENTENCE, Field, TypedTable, Value, is_distinctive

GONE = "—"
_DRAWN = 80  # other values that are tried before an item is given up
_YEAR = re.compile(r"(?<!\d)(?:1[5-9]|20)\d\d(?!\d)")


@dataclass(frozen=True, slots=True)
class DocumentEdit:
    """A span of a document's `plain` rendering, and what stands there in another world."""

    document: str
    start: int
    end: int
    new: str


@dataclass(frozen=True, slots=True)
class World:
    """What an edit makes of the question."""

    answers: tuple[str, ...]  # accepted ones; none where the right reply is a refusal
    edits: tuple[DocumentEdit, ...] = ()  # that lead there from the original


def make_worlds(plan: Computation, frames: Sequence[TypedTable], documents: Mapping[str, Document],
              rng: random.Random) -> dict[str, World]:
    """Return the worlds of a question by name, the original first. Raises Dropped where it has no answer, or no edit is
    found."""
    answers, basis = compute(plan, frames), find_basis(plan, frames)
    every = [(number, name, entity) for number, frame in enumerate(frames) for name in frame.fields
             for entity in frame.entities]
    said = {_digits(_value(frames, place)) for place in basis}
    others = [place for place in every if place not in basis and _digits(_value(frames, place)) not in said]
    return {"original": World(answers),
            "edited": _find_world(plan, frames, documents, _draw_changes(basis, frames, rng), answers, moved=True),
            "removed": World((), _all_edits([(place, GONE) for place in basis], frames, documents)),
            "unrelated": _find_world(plan, frames, documents, _draw_changes(others, frames, rng), answers, moved=False)}


def _find_world(plan: Computation, frames: Sequence[TypedTable], documents: Mapping[str, Document],
           changes: Iterator[tuple[Place, str]], answers: tuple[str, ...], moved: bool) -> World:
    why = "no edit moves the answer" if moved else "nothing else to edit"
    for change in changes:
        try:
            edits = _all_edits([change], frames, documents)
        except Dropped as dropped:
            why = str(dropped)
            continue
        found = compute_answers(plan, frames, edits)
        if found and (found[0] != answers[0]) == moved:
            return World(found, edits)
    raise Dropped(why)


def compute_answers(plan: Computation, frames: Sequence[TypedTable], edits: Sequence[DocumentEdit]) -> tuple[str, ...]:
    """Return what a question comes to over documents as a world has them; nothing where it has no answer there."""
    try:
        return compute(plan, [apply_to_table(frame, edits) for frame in frames])
    except Dropped:
        return ()


def _value(frames: Sequence[TypedTable], place: Place) -> Value:
    number, name, entity = place
    return frames[number].fields[name].values[frames[number].entities.index(entity)]


def _digits(value: Value) -> str:
    """What of a value is the same wherever it is said again: the digits of a number."""
    found = NUMBER.fullmatch(value.text.strip()) if value.number is not None else None
    return found["digits"] if found else value.text


def _draw_changes(places: Sequence[Place], frames: Sequence[TypedTable],
                  rng: random.Random) -> Iterator[tuple[Place, str]]:
    """Places with another value for each, in random order."""
    full = [place for place in places if not _value(frames, place).empty]
    for _ in range(_DRAWN if full else 0):
        place = rng.choice(full)
        frame, value = frames[place[0]], _value(frames, place)
        new = _draw_value(value, frame.fields[place[1]], rng)
        taken = {_digits(one) for one in frame.fields[place[1]].values}
        if new is not None and (value.number is None or _digits(replace(value, text=new)) not in taken):
            yield place, new


def _draw_value(value: Value, field: Field, rng: random.Random) -> str | None:
    """Another value in the form of this one: a number of the size of the field's numbers, a date some years from one of
    the field's, or a text that another row has."""
    if value.date is not None:
        year = rng.choice([one.date[0] for one in field.values if one.date]) + rng.choice((-1, 1)) * rng.randint(1, 6)
        return _YEAR.sub(str(year), value.text, count=1)
    if value.number is not None and (found := NUMBER.search(value.text)):
        sizes = [abs(one.number) for one in (field.values if field.kind == "number" else [value]) if one.number]
        places = len(found["digits"].partition(".")[2])
        drawn = (rng.choice(sizes) if sizes else Decimal(1)) * rng.randint(40, 190) / 100
        digits = f"{drawn:{',' if ',' in found['digits'] else ''}.{places}f}"
        return f"{value.text[:found.start('digits')]}{digits}{value.text[found.end('digits'):]}"
    texts = sorted({one.text for one in field.values if not one.empty} - {value.text})
    return rng.choice(texts) if texts else None


def _all_edits(changes: Sequence[tuple[Place, str]], frames: Sequence[TypedTable],
           documents: Mapping[str, Document]) -> tuple[DocumentEdit, ...]:
    """The edits of values, and of every place of their documents, outside of their frame, that says one again."""
    changes = [(place, new) for place, new in changes if not _value(frames, place).empty]
    found: list[DocumentEdit] = []
    for edit in (*(_value_edit(place, new, frames) for place, new in changes),
                 *(edit for place, new in changes for edit in _mention_edits(place, new, frames, documents))):
        if not any(one.document == edit.document and one.start < edit.end and edit.start < one.end for one in found):
            found.append(edit)
    return tuple(found)


def _value_edit(place: Place, new: str, frames: Sequence[TypedTable]) -> DocumentEdit:
    frame, value = frames[place[0]], _value(frames, place)
    if frame.key == SENTENCE and new == GONE:
        return DocumentEdit(frame.document, *frame.spans[frame.entities.index(place[2])], "")
    return DocumentEdit(frame.document, value.start, value.end, new)


def _mention_edits(place: Place, new: str, frames: Sequence[TypedTable],
           documents: Mapping[str, Document]) -> Iterator[DocumentEdit]:
    """Raises Dropped where a sentence may say it again in digits too few to be sure of."""
    frame, value = frames[place[0]], _value(frames, place)
    text, core, sentence = documents[frame.document].plain, _digits(value), frame.key == SENTENCE
    if value.number is None and value.date is None:
        return
    sure = is_distinctive(core) or (value.date is not None and value.date[1] > 0)
    other = new if new == GONE or value.number is None else _digits(replace(value, text=new))
    for found in re.finditer(rf"(?<![\w.,]){re.escape(core)}(?![\w]|[.,]\d)", text):
        if value.start <= found.start() < value.end or (not sentence and frame.start <= found.start() < frame.end):
            continue
        if sure:
            yield DocumentEdit(frame.document, *found.span(), other)
            continue
        line = text[:found.start()].rpartition("\n")[2] + text[found.start():].partition("\n")[0]
        if not sentence and place[2].casefold() in line.casefold():
            raise Dropped("another sentence may say it, in digits too few to be sure")


def apply_to_passage(document: str, text: str, start: int, edits: Sequence[DocumentEdit]) -> str:
    """Return a passage of a document, that begins at `start`, as a world has it."""
    for edit in sorted(edits, key=lambda one: -one.start):
        if edit.document == document and start <= edit.start and edit.end <= start + len(text):
            text = f"{text[:edit.start - start]}{edit.new}{text[edit.end - start:]}"
    return text


def apply_to_table(frame: TypedTable, edits: Sequence[DocumentEdit]) -> TypedTable:
    """Return a frame as a world's documents have it."""
    spans = dict(zip(frame.entities, frame.spans, strict=False))

    def read(entity: str, value: Value) -> str:
        start, end = spans.get(entity, (value.start, value.end))  # what a question quotes has to stay as it is
        other = any(edit.document == frame.document and edit.start < end and start < edit.end
                    and (edit.start, edit.end) != (value.start, value.end) for edit in edits)
        return "" if other else apply_to_passage(frame.document, value.text, value.start, edits)

    return frame.replace_values(read)
