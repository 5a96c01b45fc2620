"""Edit an item's documents into versions with other answers (worlds), wherever the edited value occurs.

In `edited`, a value that decides the answer changes, and so does the answer. In `removed`, the values that decide it
are missing. In `unrelated`, another value changes, and the answer stays the same."""
from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from ragbed.documents.types import Document
from ragbed.experiments.guests.construct.operations import Computation, Place, compute, find_basis
from ragbed.experiments.guests.construct.stages import Dropped
from ragbed.experiments.guests.formats.typed_tables import (
    GONE,
    NUMBER,
    SENTENCE,
    Field,
    TypedTable,
    Value,
    find_sums,
    is_distinctive,
    is_in_name,
)

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
    """A version of the documents: the edits that make it, and its accepted answers. Without answers, a refusal is
    correct.
    """

    answers: tuple[str, ...]
    edits: tuple[DocumentEdit, ...] = ()


def make_worlds(plan: Computation, tables: Sequence[TypedTable], documents: Mapping[str, Document],
                rng: random.Random) -> dict[str, World]:
    """Return the worlds of a question by name, original first. Raises Dropped if it has no answer, or no edit works.
    """
    answers, basis = compute(plan, tables), find_basis(plan, tables)
    if tables[0].key == SENTENCE and any(_value(tables, place).text in entity for place in basis
                                         for entity in plan.entities):
        raise Dropped("the question states a value that it asks for")
    every = [(number, name, entity) for number, table in enumerate(tables) for name in table.fields
             for entity in table.entities]
    known = {_digits(_value(tables, place)) for place in basis}
    others = [place for place in every if place not in basis and _digits(_value(tables, place)) not in known]
    return {"original": World(answers),
            "edited": _find_world(plan, tables, documents, _draw_changes(basis, tables, rng), answers, moved=True),
            "removed": World((), _remove(plan, basis, answers, tables, documents)),
            "unrelated": _find_world(plan, tables, documents, _draw_changes(others, tables, rng), answers, moved=False)}


def _find_world(plan: Computation, tables: Sequence[TypedTable], documents: Mapping[str, Document],
                changes: Iterator[tuple[Place, str]], answers: tuple[str, ...], moved: bool) -> World:
    why = "no edit changes the answer" if moved else "no other value to edit"
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
    return tables[place[0]].at(*place[1:])


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
    """Return another value of the same type: a number of similar size, a date a few years away, or another row's text.
    """
    if value.date is not None:
        year = rng.choice([one.date[0] for one in field.values if one.date]) + rng.choice((-1, 1)) * rng.randint(1, 6)
        return _YEAR.sub(str(year), value.text, count=1)
    if value.number is not None and (found := NUMBER.search(value.text)):
        sizes = [abs(one.number) for one in (field.values if field.kind == "number" else [value]) if one.number]
        places = len(found["digits"].partition(".")[2])
        drawn = (rng.choice(sizes) if sizes else Decimal(1)) * rng.randint(40, 190) / 100
        comma = "," if any("," in one.text for one in (value, *field.values)) else ""
        digits = f"{drawn:{comma}.{places}f}"
        return f"{value.text[:found.start('digits')]}{digits}{value.text[found.end('digits'):]}"
    texts = sorted({one.text for one in field.values if not one.empty} - {value.text})
    return rng.choice(texts) if texts else None


def _all_edits(changes: Sequence[tuple[Place, str]], tables: Sequence[TypedTable], documents: Mapping[str, Document],
               more: Iterable[DocumentEdit] = ()) -> tuple[DocumentEdit, ...]:
    """Return the edits of values, of every other mention of them in their documents, and `more` edits."""
    changes = [(place, new) for place, new in changes if not _value(tables, place).empty]
    found: list[DocumentEdit] = []
    for edit in (*(_value_edit(place, new, tables) for place, new in changes),
                 *(edit for place, new in changes for edit in _mention_edits(
                     _value(tables, place), place[1:], new, tables[place[0]], documents)), *more):
        if not any(one.document == edit.document and one.start < edit.end and edit.start < one.end for one in found):
            found.append(edit)
    return tuple(found)


def _remove(plan: Computation, basis: Sequence[Place], answers: Sequence[str], tables: Sequence[TypedTable],
            documents: Mapping[str, Document]) -> tuple[DocumentEdit, ...]:
    """Return the edits that remove the values of the basis, the answer if the program computed it, and every other
    value as long as a removed one follows from it."""
    def more() -> Iterator[DocumentEdit]:
        for number, table in enumerate(tables):
            names = {value.start: row[0].text for row in table.rows for value in row}
            for value in _telling_values(table, [place for place in basis if place[0] == number], tables):
                yield DocumentEdit(table.document, value.start, value.end, GONE)
                yield from _mention_edits(replace(value, number=Decimal(0)), (names[value.start],), GONE, table,
                                          documents)
        if plan.operation in ("sum", "difference"):
            stated = replace(Value(answers[0], 0, 0), number=Decimal(0))
            yield from _mention_edits(stated, plan.fields, GONE, tables[0], documents)

    return _all_edits([(place, GONE) for place in basis], tables, documents, more())


def _telling_values(table: TypedTable, basis: Sequence[Place], tables: Sequence[TypedTable]) -> Iterator[Value]:
    """Yield the cells that tell a removed value: shares and averages of the same entities, and cells of totals until no
    removed cell follows from the others."""
    gone = {_value(tables, place).start for place in basis}
    rates = [rate for entity in dict.fromkeys(place[2] for place in basis) for name, field in table.fields.items()
             if field.kind == "number" and not field.is_amount and not (rate := table.at(name, entity)).empty]
    groups = find_sums(table)
    while value := rates.pop() if rates else next((left[-1] for group in groups if len(left := [
            one for one in group if one.start not in gone]) == len(group) - 1), None):
        if value.start not in gone:
            gone.add(value.start)
            yield value


def _value_edit(place: Place, new: str, tables: Sequence[TypedTable]) -> DocumentEdit:
    table, value = tables[place[0]], _value(tables, place)
    if table.key == SENTENCE and new == GONE:
        return DocumentEdit(table.document, *table.spans[table.entities.index(place[2])], "")
    return DocumentEdit(table.document, value.start, value.end, new)


def _mention_edits(value: Value, names: Sequence[str], new: str, table: TypedTable,
                   documents: Mapping[str, Document]) -> Iterator[DocumentEdit]:
    """Yield the edits of other mentions of a value. Raises Dropped if it has too few digits to tell whether another
    sentence or table, in a line with one of the names, states it, or if a mention may be part of a name.
    """
    text, core, sentence = documents[table.document].plain, _digits(value), table.key == SENTENCE
    if value.number is None and value.date is None:
        return
    sure = is_distinctive(core) or (value.date is not None and value.date[1] > 0)
    other = new if new == GONE or value.number is None else _digits(replace(value, text=new))
    for found in re.finditer(rf"(?<![\w.,]){re.escape(core)}(?![\w]|[.,]\d)", text):
        if value.start <= found.start() < value.end or (not sentence and table.start <= found.start() < table.end):
            continue
        if value.number is not None and is_in_name(text, *found.span()):
            if sure:
                raise Dropped("a name may contain the same number")
        elif sure:
            yield DocumentEdit(table.document, *found.span(), other)
        else:
            line = (text[:found.start()].rpartition("\n")[2] + text[found.start():].partition("\n")[0]).casefold()
            if not sentence and any(name.casefold() in line for name in names):
                raise Dropped("the value has too few digits to tell whether another sentence states it")


def apply_to_passage(document: str, text: str, start: int, edits: Sequence[DocumentEdit]) -> str:
    """Apply the edits of a world to a passage that begins at offset `start` of a document."""
    for edit in sorted(edits, key=lambda one: -one.start):
        if edit.document == document and start <= edit.start and edit.end <= start + len(text):
            text = f"{text[:edit.start - start]}{edit.new}{text[edit.end - start:]}"
    return text


def apply_to_table(table: TypedTable, edits: Sequence[DocumentEdit]) -> TypedTable:
    """Apply the edits of a world to a table."""
    spans = dict(zip(table.entities, table.spans, strict=False))

    def read(entity: str, value: Value) -> str:
        start, end = spans.get(entity, (value.start, value.end))  # a quoted sentence must stay as it is
        other = any(edit.document == table.document and edit.start < end and start < edit.end
                    and (edit.start, edit.end) != (value.start, value.end) for edit in edits)
        return "" if other else apply_to_passage(table.document, value.text, value.start, edits)

    return table.replace_values(read)
