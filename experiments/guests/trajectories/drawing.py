"""Draw trajectories: a line for each call, and two side by side, with the call at which they part."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Any

from rich.cells import cell_len, set_cell_size

from ragbed.experiments.formatting import plural, visible
from ragbed.experiments.guests.trajectories.trajectory import Call, read_trajectory
from ragbed.experiments.record import Result

_FEW = 4  # up to this many passages are listed
_LONGEST = 300  # characters of a call's arguments, and of a failure
_PART = "here they part"


@dataclass(frozen=True, slots=True)
class Line:
    """A call, or the end of the trajectory, which has no `tool`.

    Attributes:
        text: the arguments, or how the trajectory ended.
        brought: the passages that the call found, gold ones with `*`.
        count: the same in a few characters.
        gold: gold items found so far, if this call added one, such as `1 of 2`.
        tokens: tokens of all model calls so far.
    """

    tool: str
    text: str
    brought: str
    count: str
    gold: str
    tokens: int


def trajectory_lines(result: Result) -> list[Line]:
    """Return the lines of an answer's trajectory; none if it called nothing."""
    made, seen = read_trajectory(result), frozenset[int]()
    if not made.calls:
        return []
    golden = {passage.number for passage in result.evidence if passage.holds}
    lines = []
    for call in made.calls:
        added = bool(call.gold - seen)
        seen |= call.gold
        lines.append(Line(visible(call.tool[:_LONGEST]), _line(call.arguments), *_brought(call, golden),
                          f"{len(seen)} of {result.gold_total}" if added else "", call.tokens))
    cited = " ".join(_numbered(number, golden) for number in result.cited)
    lines.append(Line("", f"{result.outcome}, ended by {made.ended}", f"cites {cited}" if cited else "cites nothing",
                      cited or "-", f"{len(made.cited)} of {result.gold_total}" if made.cited else "", made.tokens))
    return lines


def lines_as_json(result: Result) -> list[dict[str, Any]]:
    """Return the lines of an answer's trajectory for the report and for JSON."""
    return [asdict(line) for line in trajectory_lines(result)]


def draw(result: Result, width: int) -> list[str]:
    """Return the lines of a trajectory for a terminal of this width; none if it has a single call."""
    lines = trajectory_lines(result)[:None if len(read_trajectory(result).calls) > 1 else 0]
    brought = min(max((cell_len(line.brought) for line in lines), default=0), width // 3)
    text = width - brought - 28
    rows = [("", "call", "brought", "gold", "tokens so far"), *(
        (str(number) if line.tool else "", f"{line.tool} {line.text}".strip(), line.brought, line.gold,
         f"{line.tokens:,}") for number, line in enumerate(lines, 1))] if lines else []
    return [f"{number:>3} {_fit(call, text)} {_fit(found, brought)} {_fit(gold, 8)} {tokens:>13}".rstrip()
            for number, call, found, gold, tokens in rows]


def draw_two(cells: Sequence[tuple[str, Result]], width: int) -> list[str]:
    """Return two labelled trajectories side by side for a terminal of this width."""
    half = (width - 3) // 2
    sides = [trajectory_lines(result) for _, result in cells]
    parts = parting(sides)
    rows = [" | ".join(_fit(label, half) for label, _ in cells)]
    for place, pair in enumerate(zip_longest(*sides)):
        if place == parts:
            rows.append(f" {_PART} ".center(width, "-"))
        rows.append(" | ".join(_compact(place + 1, line, half) if line else " " * half for line in pair))
    return [row.rstrip() for row in rows]


def parting(sides: Sequence[Sequence[Line]]) -> int:
    """Return the position of the first call that is not the same in all trajectories."""
    calls = [[(line.tool, line.text) for line in lines if line.tool] for lines in sides]
    return next((place for place, row in enumerate(zip_longest(*calls)) if len({*row}) > 1), -1)


def _compact(number: int, line: Line, width: int) -> str:
    tokens = f"{line.tokens / 1000:.1f}k" if line.tokens >= 1000 else str(line.tokens)
    text = f"{number if line.tool else '':>2} {line.tool} {line.text}" if line.tool else f"   {line.text}"
    return f"{_fit(text, width - 20)} {_fit(line.count, 7)} {line.gold.replace(' of ', '/'):>4} {tokens:>6}"


def _brought(call: Call, golden: set[int]) -> tuple[str, str]:
    if call.failure:
        return f"failed: {_line(call.failure)}", "failed"
    if not call.found:
        return ("nothing", "0") if call.empty else ("text", "text")
    gold = [_numbered(number, golden) for number in call.found if number in golden]
    count = " ".join([str(len(call.found)), *gold])
    if len(call.found) <= _FEW:
        return " ".join(_numbered(number, golden) for number in call.found), count
    return f"{plural(len(call.found), 'passage')}{', ' if gold else ''}{' '.join(gold)}", count


def _numbered(number: int, golden: set[int]) -> str:
    return f"[{number}{'*' if number in golden else ''}]"


def _line(text: str) -> str:
    return visible(" ".join(text[:_LONGEST].split())) + ("…" if len(text) > _LONGEST else "")


def _fit(text: str, width: int) -> str:
    return set_cell_size(text, width) if cell_len(text) <= width else f"{set_cell_size(text, width - 1)}…"
