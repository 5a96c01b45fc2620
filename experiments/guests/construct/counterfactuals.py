"""Make the worlds of an item: a program edits its documents wherever the edited value occurs.

In `edited`, a value that decides the answer changes, and so does the answer. In `removed`, the values that decide it
are missing. In `unrelated`, another value changes, and the answer stays the same."""
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
_MAX_DRAWS = 80  # new values to try before giving up
_YEAR = re.compile(r"(?<!\d)(?:1[5-9]|20)\d\d(?!\d)")


@dataclass(frozen=True, slots=True)
class DocumentEdit:
    """A span of a document's `plain` rendering, and its new text."""

    document: str
    start: int
    end: int
    new: str


@dataclass(frozen=True, slots=True)
class World:
    """A world: its accepted answers (none if the correct reply is a refusal), and the edits that make it from the
    original.
    """

    answers: tuple[str, ...]
    edits: tuple[DocumentEdit, ...] = ()


def make_worlds(plan: Computation, tables: Sequence[TypedTable], documents: Mapping[str, Document],
                rng: random.Random) -> dict[str, World]:
    """Return the worlds of a question by name, the original first. Raises Dropped: it has no answer, or no edit works.
    """
    answers, basis = compute(plan, tables), find_basis(plan, tables)
    every = [(number, name, entity) for number, table in enumerate(tables) for name in table.fields
             for entity in table.entities]
    known = {_digits(_value(tables, place)) for place in basis}
    others = [place for place in every if place not in basis and _digits(_value(tables, place)) not in known]
    return {"original": World(answers),
            "edited": _find_world(plan, tables, documents, _draw_changes(basis, tables, rng), answers, moved=True),
            "removed": World((), _all_edits([(place, GONE) for place in basis], tables, documents)),
            "unrelated": _find_world(plan, tables, documents, _draw_changes(others, tables, rng), answers, moved=False)}


def _find_world(plan: Computation, tables: Sequence[TypedTable], documents: Mapping[str, Document],
                changes: Iterator[tuple[Place, str]], answers: tuple[str, ...], moved: bool) -> World:
    why = "no edit changes the answer" if moved else "nothing else to edit"
    for change in changes:
        try:
            edits = _all_edits([change], tables, documents)
        except Dropped as dropped:
            why = str(dropped)
            continue
        found = compute_answers(plan, tables, edits)
        if found and (found[0] != answers[0]) == moved:
            return World(found, edits)
    raise Dropped(why)


def compute_answers(plan: Computation, tables: Sequence[TypedTable], edits: Sequence[DocumentEdit]) -> tuple[str, ...]:
    """Return the answers over the documents of a world; empty if there is none."""
    try:
        return compute(plan, [apply_to_table(table, edits) for table in tables])
    except Dropped:
        return ()


def _value(tables: Sequence[TypedTable], place: Place) -> Value:
    number, name, entity = place
    return tables[number].fields[name].values[tables[number].entities.index(entity)]


def _digits(value: Value) -> str:
    """Return the part of a value that all its mentions share; for a number, its digits."""
    found = NUMBER.fullmatch(value.text.strip()) if value.number is not None else None
    return found["digits"] if found else value.text


def _draw_changes(places: Sequence[Place], tables: Sequence[TypedTable],
                  rng: random.Random) -> Iterator[tuple[Place, str]]:
    """Yield places in random order, each with a new value."""
    full = [place for place in places if not _value(tables, place).empty]
    for _ in range(_MAX_DRAWS if full else 0):
        place = rng.choice(full)
        table, value = tables[place[0]], _value(tables, place)
        new = _draw_value(value, table.fields[place[1]], rng)
        taken = {_digits(one) for one in table.fields[place[1]].values}
        if new is not None and (value.number is None or _digits(replace(value, text=new)) not in taken):
            yield place, new


def _draw_value(value: Value, field: Field, rng: random.Random) -> str | None:
    """Return another value of the same type: a number of the field's magnitude, a date some years before or after one
    of the field's, or another row's text.
    """
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


def _all_edits(changes: Sequence[tuple[Place, str]], tables: Sequence[TypedTable],
               documents: Mapping[str, Document]) -> tuple[DocumentEdit, ...]:
    """Return the edits of values, and of every other mention of them in their documents."""
    changes = [(place, new) for place, new in changes if not _value(tables, place).empty]
    found: list[DocumentEdit] = []
    for edit in (*(_value_edit(place, new, tables) for place, new in changes),
                 *(edit for place, new in changes for edit in _mention_edits(place, new, tables, documents))):
        if not any(one.document == edit.document and one.start < edit.end and edit.start < one.end for one in found):
            found.append(edit)
    return tuple(found)


def _value_edit(place: Place, new: str, tables: Sequence[TypedTable]) -> DocumentEdit:
    table, value = tables[place[0]], _value(tables, place)
    if table.key == SENTENCE and new == GONE:
        return DocumentEdit(table.document, *table.spans[table.entities.index(place[2])], "")
    return DocumentEdit(table.document, value.start, value.end, new)


def _mention_edits(place: Place, new: str, tables: Sequence[TypedTable],
                   documents: Mapping[str, Document]) -> Iterator[DocumentEdit]:
    """Yield the edits of other mentions of a value. Raises Dropped: the value has too few digits to tell whether
    another sentence states it.
    """
    table, value = tables[place[0]], _value(tables, place)
    text, core, sentence = documents[table.document].plain, _digits(value), table.key == SENTENCE
    if value.number is None and value.date is None:
        return
    sure = is_distinctive(core) or (value.date is not None and value.date[1] > 0)
    other = new if new == GONE or value.number is None else _digits(replace(value, text=new))
    for found in re.finditer(rf"(?<![\w.,]){re.escape(core)}(?![\w]|[.,]\d)", text):
        if value.start <= found.start() < value.end or (not sentence and table.start <= found.start() < table.end):
            continue
        if sure:
            yield DocumentEdit(table.document, *found.span(), other)
            continue
        line = text[:found.start()].rpartition("\n")[2] + text[found.start():].partition("\n")[0]
        if not sentence and place[2].casefold() in line.casefold():
            raise Dropped("another sentence may state it, with too few digits to be sure")


def apply_to_passage(document: str, text: str, start: int, edits: Sequence[DocumentEdit]) -> str:
    """Return a passage, which begins at `start` of a document, after the edits of a world."""
    for edit in sorted(edits, key=lambda one: -one.start):
        if edit.document == document and start <= edit.start and edit.end <= start + len(text):
            text = f"{text[:edit.start - start]}{edit.new}{text[edit.end - start:]}"
    return text


def apply_to_table(table: TypedTable, edits: Sequence[DocumentEdit]) -> TypedTable:
    """Return a table after the edits of a world."""
    spans = dict(zip(table.entities, table.spans, strict=False))

    def read(entity: str, value: Value) -> str:
        start, end = spans.get(entity, (value.start, value.end))  # a quoted sentence must stay as it is
        other = any(edit.document == table.document and edit.start < end and start < edit.end
                    and (edit.start, edit.end) != (value.start, value.end) for edit in edits)
        return "" if other else apply_to_passage(table.document, value.text, value.start, edits)

    return table.replace_values(read)
