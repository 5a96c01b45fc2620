"""A program as a model writes it: lines `name = expression`, worked out one after the other."""
from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from strategies.arithmetic.expressions import evaluate
from strategies.arithmetic.functions import Unworkable, Value, is_shown_whole, shown_value

_MOST_LINES, _LONGEST_LINE, _LONGEST_REPLY = 40, 1_200, 50_000  # lines; characters
_SHOWN = 200  # characters of an expression
_EQUALS = re.compile(r"(?<![<>=!])=(?!=)|≈")
_MARK = re.compile(r"(?:[-*•>]|\(?\d{1,2}[.)])\s")
_NAME = re.compile(r"[^\W\d]\w{0,59}(?: \w{1,60}){0,9}")


@dataclass(frozen=True, slots=True)
class ProgramLine:
    """One line of a program.

    Attributes:
        value: None where it cannot be worked out.
        error: why it cannot; empty where it can.
    """

    name: str
    expression: str
    value: Value | None = None
    error: str = ""

    def __str__(self) -> str:
        """The line with what it comes to: `growth = (120 - 100) / 100 = 0.2`; after `≈` where that is rounded; or with
        its error."""
        said = f"{self.name} = {self.expression[:_SHOWN]}"
        if self.value is None:
            return f"{said}: {self.error}"
        came = shown_value(self.value)
        return said if came == self.expression else f"{said} {'=' if is_shown_whole(self.value) else '≈'} {came}"


def run(text: str) -> tuple[ProgramLine, ...]:
    """The program of a reply, its first 40 lines, each worked out with the names of those before it.

    Read are lines `name = expression`, with or without a list mark, code marks and a comment after `#`; what such a
    line itself says to come to, after a second `=` or `≈`, is dropped. Every other line is no part of the program.
    """
    names: dict[str, Value] = {}
    lines = []
    for name, expression in _assignments(text):
        try:
            names[name] = evaluate(expression, names)
        except Unworkable as error:
            names.pop(name, None)
            lines.append(ProgramLine(name, expression, error=str(error)))
        else:
            lines.append(ProgramLine(name, expression, names[name]))
        if len(lines) == _MOST_LINES:
            break
    return tuple(lines)


def _assignments(text: str) -> Iterator[tuple[str, str]]:
    for line in text[:_LONGEST_REPLY].splitlines():
        name, *rest = _EQUALS.split(line[:_LONGEST_LINE].partition("#")[0], maxsplit=2)
        bare = name.strip(" \t`*")
        bare = bare[mark.end():].strip(" \t`*") if (mark := _MARK.match(bare)) else bare
        if rest and _NAME.fullmatch(bare):
            yield bare.replace(" ", "_"), rest[0].strip(" \t`;").removesuffix("**").removesuffix(".").rstrip()
