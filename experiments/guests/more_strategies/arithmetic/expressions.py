"""Evaluate expressions, and programs of lines `name = expression`.

Numbers are fractions, so that 0.1 + 0.2 is 0.3. In addition to Python's `+ - * / // % **`, comparisons and calls, an
expression may use forms that people write: `1,234.5`, `$5`, `12%`, `12% of 50`, `3.2 million`, `×`, `÷`, `^`, the
date `2024-02-29`, and a source such as `[2]` after a number, which is skipped.
"""
from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from typing import Literal, TypeVar

from ragbed.experiments.guests.more_strategies.arithmetic.functions import (
    Unworkable,
    Value,
    bounded,
    called,
    day,
    is_shown_whole,
    number_of,
    power,
    shown_value,
)

_Part = TypeVar("_Part")
Kind = Literal["date", "number", "name", "sign", "end"]

_MAX_LENGTH, _MAX_DEPTH = 1_000, 40  # characters, and expressions within expressions
_MAX_DIGITS, _MAX_POWER_OF_TEN = 60, 300
_MAX_DAYS = 4_000_000  # more than lie between any two dates
_TOKEN = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2}(?![\w.]))"
    r"|(?P<number>(?:(?:[0-9]{1,3}(?:,[0-9]{3})++(?![0-9])|[0-9][0-9_]*+)(?:\.[0-9]*+)?|\.[0-9]++)"
    r"(?:[eE][+-]?[0-9]++)?(?!\w))"
    r"|(?P<name>[^\W\d]\w*+)|(?P<sign>\*\*|//|<=|>=|==|!=|[-+*/%()<>,\[\]])")
_SPACE = re.compile(r"[\s$€£¥₩]*+")
_AS_WRITTEN = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "^": "**", "≤": "<=", "≥": ">=",
                             "≠": "!="})
_MAGNITUDES = {"hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_COMPARISONS: Mapping[str, Callable[[Value, Value], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne}
_FACTORS: Mapping[str, Callable[[Fraction, Fraction], Fraction]] = {
    "*": operator.mul, "of": operator.mul, "/": operator.truediv, "//": lambda a, b: Fraction(a // b),
    "%": operator.mod}


@dataclass(frozen=True, slots=True)
class _Token:
    kind: Kind
    text: str
    spaced: bool = False

    @property
    def begins_operand(self) -> bool:
        return self.text == "(" or (self.kind in ("number", "date", "name") and self.text != "of")


_END = _Token("end", "its end")


def evaluate(text: str, names: Mapping[str, Value]) -> Value:
    """Evaluate an expression that may use the given names. The value is a number, a date or a truth value.

    Raises:
        Unworkable: it is not an expression, or exceeds a limit: 1,000 characters, 40 nested parentheses, an exponent of
            1,000, or numbers of about 600 digits.
    """
    if len(text) > _MAX_LENGTH:
        raise Unworkable(f"an expression has at most {_MAX_LENGTH} characters")
    reader = _Reader(_tokens(text.translate(_AS_WRITTEN)), names)
    value = reader.expression()
    if reader.next.kind != "end":
        raise Unworkable(f"{reader.next.text[:30]} is out of place")
    return value


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    place = 0
    while True:
        start = _SPACE.match(text, place).end()  # type: ignore[union-attr]  # it always matches
        if start == len(text):
            return [*tokens, _END]
        found = _TOKEN.match(text, start)
        if found is None:
            raise Unworkable(f"{text[start:start + 10]!r} cannot be read")
        tokens.append(_Token(found.lastgroup, found.group(), start > place))  # type: ignore[arg-type]
        place = found.end()


class _Reader:
    """A recursive-descent parser. Each method evaluates the part of the expression that begins with the next token."""

    def __init__(self, tokens: list[_Token], names: Mapping[str, Value]) -> None:
        self._tokens, self._names = tokens, names
        self._place = self._depth = self._calls = 0

    @property
    def next(self) -> _Token:
        return self._tokens[self._place]

    def expression(self) -> Value:
        left = self._sum()
        sign = self._take(*_COMPARISONS)
        if not sign:
            return left
        right = self._sum()
        if type(left) is not type(right):
            raise Unworkable("only numbers are compared with numbers, and dates with dates")
        return _COMPARISONS[sign](left, right)

    def _sum(self) -> Value:
        total = self._product()
        while sign := self._take("+", "-"):
            total = _added(total, self._product(), sign)
        return total

    def _product(self) -> Value:
        total = self._signed()
        while sign := self._take(*_FACTORS):
            left, right = number_of(total), number_of(self._signed())
            if not right and sign not in ("*", "of"):
                raise Unworkable("division by zero")
            total = bounded(_FACTORS[sign](left, right))
        return total

    def _signed(self) -> Value:
        sign = self._take("-", "+")
        if sign:
            value = number_of(self._deeper(self._signed))
            return -value if sign == "-" else value
        base = self._operand()
        if not self._take("**"):
            return base
        return bounded(power(number_of(base), number_of(self._deeper(self._signed))))

    def _operand(self) -> Value:
        value = self._plain()
        if self.next.text == "[":
            while self.next.kind == "number" or self.next.text in ("[", ",", "-"):
                self._place += 1
            self._close("]")
        if self.next.text != "%":
            return value
        after = self._tokens[self._place + 1]
        if after.begins_operand or (self.next.spaced and after.text in ("-", "+")):  # `7 % 3` and `7 % -3`
            return value
        self._place += 1
        return number_of(value) / 100

    def _plain(self) -> Value:
        token, self._place = self.next, min(self._place + 1, len(self._tokens) - 1)
        if token.kind == "number":
            return self._number(token.text)
        if token.kind == "date":
            return day(*map(int, token.text.split("-")))
        if token.text == "(":
            value = self._deeper(self.expression)
            self._close(")")
            return value
        if token.kind != "name":
            raise Unworkable(f"a number was expected, not {token.text}")
        if self._take("("):
            self._calls += 1
            values: list[Value] = []
            if not self._take(")"):
                self._deeper(lambda: self._values(values))
                self._close(")")
            self._calls -= 1
            return called(token.text, values)
        if token.text not in self._names:
            raise Unworkable(f"{token.text[:30]} has no value yet")
        return self._names[token.text]

    def _number(self, text: str) -> Fraction:
        if "," in text and self._calls:
            raise Unworkable(f"{text[:30]} in a list can be read in two ways; write it without commas")
        digits, _, exponent = re.sub("[,_]", "", text).lower().partition("e")
        if len(digits) > _MAX_DIGITS or abs(int(exponent or 0)) > _MAX_POWER_OF_TEN:
            raise Unworkable(f"a number is written with at most {_MAX_DIGITS} digits")
        number = Fraction(digits) * Fraction(10)**int(exponent or 0)
        magnitude = self.next.text.lower().removesuffix("s") if self.next.kind == "name" else ""
        if magnitude not in _MAGNITUDES:
            return number
        self._place += 1
        return number * _MAGNITUDES[magnitude]

    def _values(self, values: list[Value]) -> None:
        while True:
            if self._take("["):
                self._deeper(lambda: self._values(values))
                self._close("]")
            else:
                values.append(self.expression())
            if not self._take(","):
                return

    def _take(self, *texts: str) -> str:
        token = self.next
        if token.kind in ("end", "number", "date") or token.text not in texts:
            return ""
        self._place += 1
        return token.text

    def _close(self, text: str) -> None:
        if not self._take(text):
            raise Unworkable(f"{text} was expected, not {self.next.text[:30]}")

    def _deeper(self, work: Callable[[], _Part]) -> _Part:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise Unworkable(f"an expression goes at most {_MAX_DEPTH} deep")
        value = work()
        self._depth -= 1
        return value


def _added(left: Value, right: Value, sign: str) -> Value:
    """Add or subtract. Two dates give the days between them; a date and a number of days give a date."""
    if isinstance(left, date) and isinstance(right, date) and sign == "-":
        return Fraction((left - right).days)
    if not isinstance(left, date):
        one, other = number_of(left), number_of(right)
        return bounded(one + other if sign == "+" else one - other)
    days = number_of(right)
    if days.denominator != 1 or abs(days) > _MAX_DAYS:
        raise Unworkable("a date is moved by a whole number of days")
    try:
        return left + timedelta(days=days.numerator if sign == "+" else -days.numerator)
    except OverflowError:
        raise Unworkable("there is no such date") from None


_MAX_LINES, _MAX_LINE, _MAX_REPLY = 40, 1_200, 50_000  # lines; characters
_MAX_SHOWN = 200  # characters of an expression
_EQUALS = re.compile(r"(?<![<>=!])=(?!=)|≈")
_LIST_MARK = re.compile(r"(?:[-*•>]|\(?\d{1,2}[.)])\s")
_NAME = re.compile(r"[^\W\d]\w{0,59}(?: \w{1,60}){0,9}")


@dataclass(frozen=True, slots=True)
class ProgramLine:
    """One evaluated line of a program."""

    name: str
    expression: str
    value: Value | None = None  # None if it cannot be evaluated
    error: str = ""  # why it cannot; empty otherwise

    def __str__(self) -> str:
        """Format the line with its value, as in `growth = (120 - 100) / 100 = 0.2`, or its error; `≈`: rounded."""
        said = f"{self.name} = {self.expression[:_MAX_SHOWN]}"
        if self.value is None:
            return f"{said}: {self.error}"
        came = shown_value(self.value)
        return said if came == self.expression else f"{said} {'=' if is_shown_whole(self.value) else '≈'} {came}"


def run(text: str) -> tuple[ProgramLine, ...]:
    """Evaluate the program in a reply: its first 40 lines `name = expression`. Each may use the names of earlier lines.

    List marks, code marks and comments after `#` are allowed. A result that the model wrote after a second `=` or `≈`
    is dropped. Other lines are ignored.
    """
    names: dict[str, Value] = {}
    lines: list[ProgramLine] = []
    for line in text[:_MAX_REPLY].splitlines():
        left, *rest = _EQUALS.split(line[:_MAX_LINE].partition("#")[0], maxsplit=2)
        bare = left.strip(" \t`*")
        bare = bare[mark.end():].strip(" \t`*") if (mark := _LIST_MARK.match(bare)) else bare
        if not rest or not _NAME.fullmatch(bare):
            continue
        name = bare.replace(" ", "_")
        expression = rest[0].strip(" \t`;").removesuffix("**").removesuffix(".").rstrip()
        try:
            names[name] = evaluate(expression, names)
        except Unworkable as error:
            names.pop(name, None)
            lines.append(ProgramLine(name, expression, error=str(error)))
        else:
            lines.append(ProgramLine(name, expression, names[name]))
        if len(lines) == _MAX_LINES:
            break
    return tuple(lines)
