"""Draw trajectories: a line for each call, and two side by side, with the call at which they part."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from rich.cells import cell_len, set_cell_size

from ragbed.documents.errors import RunError
from ragbed.experiments.formatting import plural, visible
from ragbed.experiments.guests.trajectories.trajectory import Call, read_trajectory
from ragbed.experiments.record import Result
from ragbed.experiments.runs.finished import cells_in, find_cells, find_question
from ragbed.experiments.runs.store import RunFolder
from ragbed.experiments.terminal.display import console, print_json, print_text, say

_FEW = 4  # up to this many passages are listed
_LONGEST = 300  # characters of a call's arguments, and of a failure
_PART = "here they part"
_ENDS = {"turns": ", out of turns", "tokens": ", out of tokens", "context": ", context full"}


@dataclass(frozen=True, slots=True)
class Line:
    """A call, or the end of the trajectory, which has no `tool`.

    Attributes:
        text: the arguments, or how the trajectory ended.
        brought: the passages that the call found, gold ones with `*`.
        count: the same in a few characters: the number of passages, and those with gold.
        gold: gold items found so far, if this call added one, such as `1 of 2`.
        tokens: tokens of all model calls so far.
    """

    tool: str
    text: str
    brought: str
    count: str
    gold: str
    tokens: int


_HEADER = Line("", "call", "brought", "", "gold", 0)


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
    ended = "" if result.failure else _ENDS.get(made.ended, "")
    lines.append(Line("", f"{result.outcome}{ended}", f"cites {cited or 'nothing'}", cited or "-",
                      f"{len(made.cited)} of {result.gold_total}" if made.cited else "", made.tokens))
    return lines


def lines_as_json(result: Result) -> list[dict[str, Any]]:
    """Return the lines of an answer's trajectory for the report and for JSON."""
    return [asdict(line) for line in trajectory_lines(result)]


def draw(result: Result, width: int) -> list[str]:
    """Return the lines of a trajectory for a terminal of this width; none if it has a single call."""
    lines = trajectory_lines(result)
    return ["", *_columns([_HEADER, *lines], width)] if len(lines) > 2 else []


def draw_two(cells: Sequence[tuple[str, Result]], width: int) -> list[str]:
    """Return two labelled trajectories side by side for a terminal of this width."""
    half = (width - 3) // 2
    sides = [trajectory_lines(result) for _, result in cells]
    parts = parting(sides)
    rows = [" | ".join(_fit(label, half) for label, _ in cells)]
    columns = [[_fit(line, half) for line in _columns(lines, half, short=True)] for lines in sides]
    for place, pair in enumerate(zip_longest(*columns, fillvalue=" " * half)):
        if place == parts:
            rows.append(f" {_PART} ".center(width, "-"))
        rows.append(" | ".join(pair))
    return [row.rstrip() for row in rows]


def show_two(path: Path, name: str, cell: str | None, against: str, json: bool) -> None:
    """Print the trajectories of two cells for a question, side by side. `cell` is by default the run's first. Raises
    RunError if a name does not mean one cell, or a cell has no answer yet."""
    with closing(RunFolder.existing(path)) as folder:
        ids, rows = folder.question_ids(), cells_in(folder)
        id = ids[find_question(ids, name)]
        cells = dict([*_one_cell(rows, rows[0]["id"] if cell is None else cell), *_one_cell(rows, against)])
        if len(cells) < 2:
            raise RunError(f"--against {against!r} is the cell itself; name another cell, or add --cell")
        records = {one.result.cell: one.result for one in folder.records_of(id)}
        question = folder.questions([id])[id].text
    if missing := [label for key, label in cells.items() if key not in records]:
        raise RunError(f"{path}: {missing[0]} has not answered {id} yet; continue the run, or name another cell")
    found = [(label, records[key]) for key, label in cells.items()]
    if json:
        sides = [trajectory_lines(result) for _, result in found]
        print_json({"question": id, "parting": parting(sides), "cells": [
            {"name": label, "trajectory": [asdict(line) for line in lines]}
            for (label, _), lines in zip(found, sides, strict=True)]})
        return
    print_text(f"{id}: {question}")
    say("")
    for line in draw_two(found, console().width):
        say(line)


def _one_cell(rows: Sequence[Mapping[str, Any]], name: str) -> Iterable[tuple[str, str]]:
    found = find_cells(rows, name)
    if len(found) > 1:
        raise RunError(f"{name!r} matches {len(found)} cells; name one of: {', '.join(found.values())}")
    return found.items()


def parting(sides: Sequence[Sequence[Line]]) -> int | None:
    """Return the position, from 0, of the first call that is not the same in all trajectories; None if all are."""
    calls = [[(line.tool, line.text) for line in lines if line.tool] for lines in sides]
    return next((place for place, row in enumerate(zip_longest(*calls)) if len({*row}) > 1), None)


def _columns(lines: Sequence[Line], width: int, short: bool = False) -> list[str]:
    """Return each line in this width: number, call, passages, gold and tokens."""
    calls = [f"{line.tool} {line.text}".strip() for line in lines]
    brought = [line.count if short else line.brought for line in lines]
    gold = [line.gold.replace(" of ", "/") if short else line.gold for line in lines]
    tokens = ["tokens so far" if line is _HEADER else f"{line.tokens:,}" for line in lines]
    found, golden, spent = (max(map(cell_len, column), default=0) for column in (brought, gold, tokens))
    found = min(found, width // 3)
    room = min(max(map(cell_len, calls), default=0), width - found - golden - spent - 7)
    numbers = [str(place) if line.tool else "" for place, line in enumerate(lines, 1 - (lines[:1] == [_HEADER]))]
    return [f"{number:>3} {_fit(call, room)} {_fit(one, found)} {two:<{golden}} {three:>{spent}}"
            for number, call, one, two, three in zip(numbers, calls, brought, gold, tokens, strict=True)]


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
