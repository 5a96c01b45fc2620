"""Operations over typed tables: draw a question, compute its answer exactly, and find the values that decide it.
Parentheses around a number mean that it is negative. Units are not converted. A tie or an empty cell drops the item."""
from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from statistics import median_low
from typing import Literal, get_args

from ragbed.experiments.guests.construct.stages import Dropped
from ragbed.experiments.guests.formats.typed_tables import (
    SENTENCE,
    VALUE,
    Field,
    TypedTable,
    Value,
    find_scale,
    is_deduction,
)

Operation = Literal["look-up", "arg-max", "arg-min", "sum", "difference", "ratio", "before", "after", "count", "join"]
OPERATIONS: tuple[Operation, ...] = get_args(Operation)
_SCALES = re.compile(r"thousand|million|billion|trillion|[십백천만억조]", re.IGNORECASE)
Place = tuple[int, str, str]  # a value that decides an answer: number of the table, field, entity


@dataclass(frozen=True, slots=True)
class Computation:
    """The computation that a question asks for.

    Attributes:
        fields: for a join, one per table; for a count, one per condition.
        entities: entities that the question names, in order; empty if it covers all.
        where: for a count, the value that the first field equals and the value that the second exceeds.
    """

    operation: Operation
    fields: tuple[str, ...]
    entities: tuple[str, ...] = ()
    where: tuple[str, ...] = ()


ComputeFunction = Callable[[Computation, Sequence[TypedTable]], tuple[str, ...]]


def compute(plan: Computation, tables: Sequence[TypedTable]) -> tuple[str, ...]:
    """Return the accepted answers, the key first. Raises Dropped if a tie or an empty cell leaves no answer."""
    return _OPERATIONS[plan.operation](plan, tables)


def find_basis(plan: Computation, tables: Sequence[TypedTable]) -> list[Place]:
    """Return the values that decide the answer. Unless one of them changes, the answer stays the same."""
    if plan.operation == "join":
        return [(place, plan.fields[place], one)
                for place, entities in enumerate((tables[0].entities, shared_entities(tables)))
                for one in entities]
    return [(0, name, one) for name in plan.fields for one in plan.entities or tables[0].entities]


def shared_entities(tables: Sequence[TypedTable]) -> list[str]:
    """Return the entities that both tables have."""
    return [one for one in tables[0].entities if one in tables[1].entities]


def _filled(table: TypedTable, name: str, entity: str) -> Value:
    if (value := table.at(name, entity)).empty:
        raise Dropped("an empty cell")
    return value


def _look_up(table: TypedTable, name: str, entity: str) -> tuple[str, ...]:
    value = _filled(table, name, entity)
    return _accepted_forms(value.text, value.number, table.fields[name], table.scale,
                           is_deduction(name) or is_deduction(entity))


def _accepted_forms(text: str, number: Decimal | None, field: Field, scale: str,
                    either_sign: bool = False) -> tuple[str, ...]:
    """Return a value as written. For a number, add it without its unit, with a minus for brackets, and with the
    header's scale. A loss in brackets may be given without a sign."""
    if number is None:
        return (text,)
    numbers = (number, abs(number)) if either_sign else (number,)
    bare = [f"{one:,}" if "," in text else f"{one}" for one in numbers]
    own = [text.removesuffix("원")] if _SCALES.search(text) else bare
    scale = find_scale(field.name) or scale
    scaled = scale and field.is_amount and not field.unit[1]
    return tuple(dict.fromkeys((text, *own, *(f"{one} {scale}" for one in bare if scaled))))


def _format_number(number: Decimal, field: Field) -> str:
    """Format a number like the field's values: with their unit, thousands separators and largest number of decimals."""
    places = max((0, *(-int(one.number.as_tuple().exponent) for one in field.values if one.number is not None)))
    digits = f"{abs(number):{',' if any(',' in value.text for value in field.values) else ''}.{places}f}"
    before, after = field.unit
    return f"{'-' if number < 0 else ''}{before}{digits}{after if after in ('', '%') else f' {after}'}"


def _read_number(table: TypedTable, name: str, entity: str) -> Decimal:
    if (number := _filled(table, name, entity).number) is None:
        raise Dropped("a cell is not a number")
    return number


def _find_extreme(table: TypedTable, name: str, highest: bool) -> str:
    numbers = {entity: _read_number(table, name, entity) for entity in table.entities}
    best = (max if highest else min)(numbers.values())
    found = [entity for entity, number in numbers.items() if number == best]
    if len(found) > 1:
        raise Dropped("a tie")
    return found[0]


def _arithmetic(combine: Callable[[list[Decimal]], Decimal]) -> ComputeFunction:
    def compute(plan: Computation, tables: Sequence[TypedTable]) -> tuple[str, ...]:
        table, name = tables[0], plan.fields[0]
        number = combine([_read_number(table, name, entity) for entity in plan.entities])
        return _accepted_forms(_format_number(number, table.fields[name]), number, table.fields[name], table.scale)
    return compute


def _ratio(plan: Computation, tables: Sequence[TypedTable]) -> tuple[str, ...]:
    above, below = (_read_number(tables[0], plan.fields[0], entity) for entity in plan.entities)
    if below <= 0 or above <= 0:
        raise Dropped("a ratio with zero or a negative number")
    return (f"{(above / below).quantize(Decimal('0.01'), ROUND_HALF_UP)}",)


def _order_dates(plan: Computation, tables: Sequence[TypedTable], latest: bool) -> tuple[str, ...]:
    table, name = tables[0], plan.fields[0]
    found = {entity: _filled(table, name, entity) for entity in plan.entities}
    dates = [value.date for value in found.values()]
    if None in dates or len({tuple(map(bool, date)) for date in dates if date}) > 1:
        raise Dropped("dates differ in precision")
    ordered = sorted(found, key=lambda entity: found[entity].date or (0, 0, 0), reverse=latest)
    if len(set(dates)) < len(dates):
        raise Dropped("a tie")
    return (found[ordered[0]].text if table.key == SENTENCE else ordered[0],)


def _count(plan: Computation, tables: Sequence[TypedTable]) -> tuple[str, ...]:
    table, (name, measure), (text, above) = tables[0], plan.fields, plan.where
    met = sum((_filled(table, name, entity).text == text) & (_read_number(table, measure, entity) > Decimal(above))
              for entity in table.entities)
    if not met:
        raise Dropped("no row meets both conditions")
    return (str(met),)


def _join(plan: Computation, tables: Sequence[TypedTable]) -> tuple[str, ...]:
    entity = _find_extreme(tables[0], plan.fields[0], highest=True)
    if entity not in tables[1].entities:
        raise Dropped("the other table does not have the row")
    return _look_up(tables[1], plan.fields[1], entity)


_OPERATIONS: Mapping[Operation, ComputeFunction] = {
    "look-up": lambda plan, tables: _look_up(tables[0], plan.fields[0], plan.entities[0]),
    "arg-max": lambda plan, tables: (_find_extreme(tables[0], plan.fields[0], highest=True),),
    "arg-min": lambda plan, tables: (_find_extreme(tables[0], plan.fields[0], highest=False),),
    "sum": _arithmetic(lambda numbers: sum(numbers, Decimal(0))),
    "difference": _arithmetic(lambda numbers: numbers[0] - numbers[1]),
    "ratio": _ratio,
    "before": lambda plan, tables: _order_dates(plan, tables, latest=False),
    "after": lambda plan, tables: _order_dates(plan, tables, latest=True),
    "count": _count,
    "join": _join,
}


def draw_plan(operation: Operation, tables: Sequence[TypedTable], rng: random.Random) -> Computation | None:
    """Draw a question for an operation over one table, or two for a join. Return None if no field suits it."""
    table = tables[0]
    if operation == "join":
        return _draw_join(tables, rng) if len(tables) > 1 and table.is_comparable else None
    if table.key == SENTENCE:
        return _draw_sentence_plan(operation, table, rng)
    if operation != "look-up" and not table.is_comparable:
        return None
    if operation == "count":
        names = table.fields_where(lambda one: one.kind == "text" and bool(_repeated_texts(one)))
        measures = table.fields_where(lambda one: one.is_measure)
        if not names or not measures:
            return None
        group, measure = rng.choice(names), rng.choice(measures)
        middle = median_low(value.number for value in measure.values if value.number is not None)
        return Computation(operation, (group.name, measure.name), (), (rng.choice(_repeated_texts(group)), str(middle)))
    suits: Callable[[Field], bool] = {
        "look-up": lambda one: all(len(value.text) <= 60 for value in one.values),
        "sum": lambda one: one.is_summable, "ratio": lambda one: one.is_summable,
        "before": lambda one: one.kind == "date", "after": lambda one: one.kind == "date"}.get(
            operation, lambda one: one.is_measure)
    fields = table.fields_where(suits)
    if not fields:
        return None
    name = rng.choice(fields).name
    size = {"look-up": 1, "arg-max": 0, "arg-min": 0, "sum": min(3, len(table.entities))}.get(operation, 2)
    return Computation(operation, (name,), tuple(rng.sample(table.entities, size)))


def _draw_sentence_plan(operation: Operation, table: TypedTable, rng: random.Random) -> Computation | None:
    if operation == "look-up" and table.entities:
        return Computation(operation, (VALUE,), (rng.choice(table.entities),))
    dated = [entity for entity in table.entities if table.at(VALUE, entity).date]
    asked = operation in ("before", "after") and len(dated) > 1
    return Computation(operation, (VALUE,), tuple(rng.sample(dated, 2))) if asked else None


def _repeated_texts(one: Field) -> list[str]:
    texts = [value.text for value in one.values if not value.empty]
    return sorted({text for text in texts if texts.count(text) > 1 and len(text) <= 40})


def _draw_join(tables: Sequence[TypedTable], rng: random.Random) -> Computation | None:
    """Draw a join: the entity with the highest value of a field in the first table, and its value in the second."""
    first = tables[0].fields_where(lambda one: one.is_measure)
    second = tables[1].fields_where(lambda one: one.name not in tables[0].fields)
    return Computation("join", (rng.choice(first).name, rng.choice(second).name)) if first and second else None
