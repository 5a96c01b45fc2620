"""The values of expressions, and the functions they may call."""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from statistics import median

Value = Fraction | bool | date

_MAX_BITS = 2_000  # per numerator or denominator: about 600 digits
_MAX_EXPONENT = 1_000
_MAX_PLACES, _SIGNIFICANT, _MAX_INTEGER = 12, 12, 30  # digits
_ROOTS = Context(prec=60)
_KEPT = Context(prec=50)  # digits of a root, so that 8**(1/3) is 2 although 1/3 is rounded


class Unworkable(ArithmeticError):
    """An expression cannot be evaluated. The message tells its author why."""


def number_of(value: Value) -> Fraction:
    """Return a value as a number. Raises Unworkable for a date or a comparison."""
    if isinstance(value, Fraction):
        return value
    raise Unworkable(f"{shown_value(value)} is no number")


def bounded(number: Fraction) -> Fraction:
    """Return the number. Raises Unworkable if it has more than about 600 digits."""
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > _MAX_BITS:
        raise Unworkable("the number gets too large")
    return number


def power(base: Fraction, exponent: Fraction) -> Fraction:
    """Return `base ** exponent`, exactly for whole exponents up to 1,000, and otherwise to 50 digits."""
    if abs(exponent) > _MAX_EXPONENT:
        raise Unworkable(f"an exponent is at most {_MAX_EXPONENT}")
    if base == 0 and exponent < 0:
        raise Unworkable("division by zero")
    if exponent.denominator == 1:
        bits = max(base.numerator.bit_length(), base.denominator.bit_length())
        if (bits - 1) * abs(exponent) > _MAX_BITS:
            raise Unworkable("the number gets too large")
        return Fraction(base**exponent.numerator)
    if base < 0:
        raise Unworkable("a negative number has no such root")
    root = _ROOTS.power(_decimal(base), _decimal(exponent)) if base else Decimal(0)
    if root.adjusted() > _MAX_BITS or root.adjusted() < -_MAX_BITS:
        raise Unworkable("the number gets too large")
    return Fraction(_KEPT.plus(root))


def _decimal(number: Fraction) -> Decimal:
    return _ROOTS.divide(Decimal(number.numerator), Decimal(number.denominator))


def shown_value(value: Value) -> str:
    """Format a value for a prompt: exactly if twelve decimal places suffice, otherwise to twelve significant digits."""
    if not isinstance(value, Fraction):
        return str(value).lower()
    scaled = value * 10**_MAX_PLACES
    if scaled.denominator == 1 and abs(value) < 10**_MAX_INTEGER:
        whole, places = divmod(abs(scaled.numerator), 10**_MAX_PLACES)
        decimals = f".{places:0{_MAX_PLACES}d}".rstrip("0").rstrip(".")
        return f"{'-' if value < 0 else ''}{whole}{decimals}"
    rounding = Context(prec=_SIGNIFICANT, rounding=ROUND_HALF_UP)
    return str(rounding.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize(rounding)).lower()


def is_shown_whole(value: Value) -> bool:
    """Return whether `shown_value` is exact."""
    return not isinstance(value, Fraction) or Fraction(shown_value(value)) == value


def _round(values: Sequence[Value]) -> Value:
    """Round to a number of places. Halves round away from zero, as in spreadsheets."""
    number, places = number_of(values[0]), number_of(values[1]) if len(values) > 1 else Fraction(0)
    if places.denominator != 1 or abs(places) > _MAX_INTEGER:
        raise Unworkable(f"round takes a whole number of places, at most {_MAX_INTEGER}")
    scale = Fraction(10)**places.numerator
    away = math.floor(abs(number) * scale + Fraction(1, 2)) / scale
    return away if number >= 0 else -away


def day(year: int, month: int, number: int) -> date:
    """Return a date. Raises Unworkable if it does not exist."""
    try:
        return date(year, month, number)
    except (ValueError, OverflowError):
        raise Unworkable(f"there is no date {year}-{month}-{number}") from None


def _years(values: Sequence[Value]) -> Value:
    """Count whole years from one date to another, as ages are counted; negative if the second is earlier."""
    first, last = map(_as_date, values)
    if last < first:
        return -number_of(_years((last, first)))
    return Fraction(last.year - first.year - ((last.month, last.day) < (first.month, first.day)))


def _as_date(value: Value) -> date:
    if isinstance(value, date):
        return value
    raise Unworkable(f"{shown_value(value)} is no date; dates are written 2024-02-29")


def _whole(value: Value) -> int:
    if (number := number_of(value)).denominator != 1:
        raise Unworkable(f"{shown_value(value)} is no whole number")
    return number.numerator


def _sum(values: Sequence[Value]) -> Fraction:
    total = Fraction(0)
    for value in values:
        total = bounded(total + number_of(value))
    return total


def _extreme(choose: Callable[..., Value]) -> Callable[[Sequence[Value]], Value]:
    def extreme(values: Sequence[Value]) -> Value:
        return choose(map(_as_date if isinstance(values[0], date) else number_of, values))

    return extreme


def _of_one(work: Callable[[Fraction], int | Fraction]) -> Callable[[Sequence[Value]], Value]:
    return lambda values: Fraction(work(number_of(values[0])))


_MANY = 1_000
FUNCTIONS: Mapping[str, tuple[int, int, Callable[[Sequence[Value]], Value]]] = {
    "min": (1, _MANY, _extreme(min)), "max": (1, _MANY, _extreme(max)), "sum": (0, _MANY, _sum),
    "mean": (1, _MANY, lambda values: _sum(values) / len(values)),
    "median": (1, _MANY, lambda values: median(map(number_of, values))),
    "count": (0, _MANY, lambda values: Fraction(len(values))),
    "abs": (1, 1, _of_one(abs)), "floor": (1, 1, _of_one(math.floor)), "ceil": (1, 1, _of_one(math.ceil)),
    "sqrt": (1, 1, _of_one(lambda number: power(number, Fraction(1, 2)))), "round": (1, 2, _round),
    "pow": (2, 2, lambda values: power(number_of(values[0]), number_of(values[1]))),
    "date": (3, 3, lambda values: day(*map(_whole, values))),
    "days": (2, 2, lambda values: Fraction((_as_date(values[1]) - _as_date(values[0])).days)), "years": (2, 2, _years)}
"""For each name: the minimum and maximum number of values, and the function."""
_ALSO = {"average": "mean", "avg": "mean", "len": "count", "total": "sum"}


def called(name: str, values: Sequence[Value]) -> Value:
    """Call a function. Raises Unworkable for an unknown name or a wrong number of values."""
    name = _ALSO.get(name, name)
    if name not in FUNCTIONS:
        raise Unworkable(f"there is no function {name:.30}; there are: {', '.join(FUNCTIONS)}")
    fewest, most, work = FUNCTIONS[name]
    if not fewest <= len(values) <= most:
        raise Unworkable(f"{name} takes {fewest if fewest == most else f'{fewest} or more'} values, not {len(values)}")
    made = work(values)
    return bounded(made) if isinstance(made, Fraction) else made
