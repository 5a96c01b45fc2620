"""Operations over frames: which can be asked, what each rests on, and what it comes to, by exact arithmetic.

Numbers are those written, brackets a minus and units as they stand; a tie and an empty cell end an item with that
reason.
"""
from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from statistics import median_low
from typing import Literal, get_args

from ragbed.experiments.guests.construct.stages import Dropped
from ragbed.experiments.guests.construct.typed_tables import SENTENCE, VALUE, Field, TypedTable

Operation = Literal["look-up", "arg-max", "arg-min", "sum", "difference", "ratio", "before", "after", "count", "join"]
OPERATIONS: tuple[Operation, ...] = get_args(Operation)
_SCALES = re.compile(r"thousand|million|billion|trillion|[십백천만억조]", re.IGNORECASE)
Place = tuple[int, str, str]  # a value that an operation rests on: number of the frame, field, entity


@dataclass(frozen=True, slots=True)
class Computation:
    """A question before it is worded."""

    operation: Operation
    fields: tuple[str, ...]  # of a join, one of each frame; of a count, those of the two constraints
    entities: tuple[str, ...] = ()  # that it names, in order; none where it is over all
    where: tuple[str, ...] = ()  # of a count, what the first field equals and what the second is above, as written


ComputeFunction = Callable[[Computation, Sequence[TypedTable]], tuple[str, ...]]


def compute(plan: Computation, frames: Sequence[TypedTable]) -> tuple[str, ...]:
    """Return the accepted answers, the key first. Raises Dropped where there is none: a tie, an empty cell."""
    return _OPERATIONS[plan.operation](plan, frames)


def find_basis(plan: Computation, frames: Sequence[TypedTable]) -> list[Place]:
    """Return the values that an answer rests on: change none of them, and it stays."""
    if plan.operation == "join":
        return [(place, plan.fields[place], one) for place,
                entities in enumerate((frames[0].entities, shared_entities(frames)))
                for one in entities]
    return [(0, name, one) for name in plan.fields for one in plan.entities or frames[0].entities]


def shared_entities(frames: Sequence[TypedTable]) -> list[str]:
    """Return the entities that two frames have in common."""
    return [one for one in frames[0].entities if one in frames[1].entities]


def _look_up(frame: TypedTable, name: str, entity: str) -> tuple[str, ...]:
    value = frame.at(name, entity)
    return _accepted_forms(value.text, value.number, frame.fields[name], frame.scale)


def _accepted_forms(text: str, number: Decimal | None, field: Field, scale: str) -> tuple[str, ...]:
    """A value as written, and of a number its other forms: without its unit, with a minus for brackets, with the scale
    that the header says."""
    if number is None:
        return (text,)
    bare = f"{number:,}" if "," in text else f"{number}"
    own = (text.removesuffix("원"),) if _SCALES.search(text) else (bare,)
    forms = (text, *own, *([f"{bare} {scale}"] if scale and field.is_summable and not field.unit[1] else []))
    return tuple(dict.fromkeys(forms))


def _format_number(number: Decimal, field: Field) -> str:
    """A number in the manner of a field: its unit, its thousands, as many decimals as any value has."""
    places = max((0, *(-int(one.number.as_tuple().exponent) for one in field.values if one.number is not None)))
    digits = f"{abs(number):{',' if any(',' in value.text for value in field.values) else ''}.{places}f}"
    before, after = field.unit
    return f"{'-' if number < 0 else ''}{before}{digits}{after if after in ('', '%') else f' {after}'}"


def _number(frame: TypedTable, name: str, entity: str) -> Decimal:
    if (number := frame.at(name, entity).number) is None:
        raise Dropped("a cell that is no number")
    return number


def _extreme(frame: TypedTable, name: str, highest: bool) -> str:
    numbers = {entity: _number(frame, name, entity) for entity in frame.entities}
    best = (max if highest else min)(numbers.values())
    found = [entity for entity, number in numbers.items() if number == best]
    if len(found) > 1:
        raise Dropped("a tie")
    return found[0]


def _arithmetic(combine: Callable[[list[Decimal]], Decimal]) -> ComputeFunction:
    def compute(plan: Computation, frames: Sequence[TypedTable]) -> tuple[str, ...]:
        frame, name = frames[0], plan.fields[0]
        number = combine([_number(frame, name, entity) for entity in plan.entities])
        return _accepted_forms(_format_number(number, frame.fields[name]), number, frame.fields[name], frame.scale)
    return compute


def _ratio(plan: Computation, frames: Sequence[TypedTable]) -> tuple[str, ...]:
    above, below = (_number(frames[0], plan.fields[0], entity) for entity in plan.entities)
    if below <= 0 or above <= 0:
        raise Dropped("a ratio with nothing, or with less")
    return (f"{(above / below).quantize(Decimal('0.01'), ROUND_HALF_UP)}",)


def _first(plan: Computation, frames: Sequence[TypedTable], latest: bool) -> tuple[str, ...]:
    frame, name = frames[0], plan.fields[0]
    found = {entity: frame.at(name, entity) for entity in plan.entities}
    dates = [value.date for value in found.values()]
    if None in dates or len({tuple(map(bool, date)) for date in dates if date}) > 1:
        raise Dropped("dates that are not equally exact")
    ordered = sorted(found, key=lambda entity: found[entity].date or (0, 0, 0), reverse=latest)
    if len(set(dates)) < len(dates):
        raise Dropped("a tie")
    return (found[ordered[0]].text if frame.key == SENTENCE else ordered[0],)


def _count(plan: Computation, frames: Sequence[TypedTable]) -> tuple[str, ...]:
    frame, (name, measure), (text, above) = frames[0], plan.fields, plan.where
    met = sum((frame.at(name, entity).text == text) & (_number(frame, measure, entity) > Decimal(above))
              for entity in frame.entities)
    if not met:
        raise Dropped("no row meets both")
    return (str(met),)


def _join(plan: Computation, frames: Sequence[TypedTable]) -> tuple[str, ...]:
    entity = _extreme(frames[0], plan.fields[0], highest=True)
    if entity not in frames[1].entities:
        raise Dropped("the other table lacks the row")
    return _look_up(frames[1], plan.fields[1], entity)


_OPERATIONS: Mapping[Operation, ComputeFunction] = {
    "look-up": lambda plan, frames: _look_up(frames[0], plan.fields[0], plan.entities[0]),
    "arg-max": lambda plan, frames: (_extreme(frames[0], plan.fields[0], highest=True),),
    "arg-min": lambda plan, frames: (_extreme(frames[0], plan.fields[0], highest=False),),
    "sum": _arithmetic(lambda numbers: sum(numbers, Decimal(0))),
    "difference": _arithmetic(lambda numbers: numbers[0] - numbers[1]),
    "ratio": _ratio,
    "before": lambda plan, frames: _first(plan, frames, latest=False),
    "after": lambda plan, frames: _first(plan, frames, latest=True),
    "count": _count,
    "join": _join,
}


def draw_plan(operation: Operation, frames: Sequence[TypedTable], rng: random.Random) -> Computation | None:
    """Draw a question of an operation over a frame, or for a join over two; None where no field allows it."""
    frame = frames[0]
    if operation == "join":
        return _draw_join(frames, rng) if len(frames) > 1 and frame.is_comparable else None
    if frame.key == SENTENCE:
        return _draw_sentence_plan(operation, frame, rng)
    if operation != "look-up" and not frame.is_comparable:
        return None
    if operation == "count":
        names = frame.fields_where(lambda one: one.kind == "text" and bool(_repeated_texts(one)))
        measures = frame.fields_where(lambda one: one.is_measure)
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
    fields = frame.fields_where(suits)
    if not fields:
        return None
    name = rng.choice(fields).name
    size = {"look-up": 1, "arg-max": 0, "arg-min": 0, "sum": min(3, len(frame.entities))}.get(operation, 2)
    return Computation(operation, (name,), tuple(rng.sample(frame.entities, size)))


def _draw_sentence_plan(operation: Operation, frame: TypedTable, rng: random.Random) -> Computation | None:
    if operation == "look-up" and frame.entities:
        return Computation(operation, (VALUE,), (rng.choice(frame.entities),))
    dated = [entity for entity in frame.entities if frame.at(VALUE, entity).date]
    asked = operation in ("before", "after") and len(dated) > 1
    return Computation(operation, (VALUE,), tuple(rng.sample(dated, 2))) if asked else None


def _repeated_texts(one: Field) -> list[str]:
    """The texts that stand in several rows."""
    texts = [value.text for value in one.values if not value.empty]
    return sorted({text for text in texts if texts.count(text) > 1 and len(text) <= 40})


def _draw_join(frames: Sequence[TypedTable], rng: random.Random) -> Computation | None:
    """The entity that is highest by a field of the first, and its value of a field of the second."""
    first = frames[0].fields_where(lambda one: one.is_measure)
    second = frames[1].fields_where(lambda one: one.name not in frames[0].fields)
    return Computation("join", (rng.choice(first).name, rng.choice(second).name)) if first and second else None
