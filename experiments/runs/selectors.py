"""Finding a question and cells of a run by what a person writes of them."""
from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from documents.errors import RunError
from experiments.cells import FACTORS, PART, called, labels
from experiments.runs.finished import Finished
from experiments.runs.manifest import manifest_of
from experiments.runs.store import RunFolder

_NEAREST = 3


def question_named(ids: Sequence[str], name: str) -> int:
    """Return the place, from 0, of the question with this id, else number (1 or `#1`), else unique beginning of an id.

    Raises:
        RunError: there is none, or several begin so; it names the nearest.
    """
    if name in ids:
        return ids.index(name)
    if numbered := re.fullmatch(r"(#?)(\d{1,9})", name):
        if 1 <= int(numbered[2]) <= len(ids):
            return int(numbered[2]) - 1
        if numbered[1]:
            raise RunError(f"no question {name}: the run has {len(ids)}, from 1 to {len(ids)}")
    found = [place for place, id in enumerate(ids) if name and id.startswith(name)]
    if len(found) == 1:
        return found[0]
    if found:
        raise RunError(f"{len(found)} questions begin with {name!r}, such as {_listed([ids[one] for one in found])}; "
                       "give more of the id, or a number as in 1")
    near = get_close_matches(name, ids, _NEAREST, cutoff=0.3)
    such = f"the nearest: {_listed(near)}" if near else f"the first: {_listed(ids)}"
    raise RunError(f"no question {name!r} among the {len(ids)} of the run; {such}; or give a number, from 1 to "
                   f"{len(ids)}")


def _listed(ids: Sequence[str]) -> str:
    return ", ".join(ids[:_NEAREST])


def cells_in(folder: RunFolder) -> Sequence[Mapping[str, Any]]:
    """Return the id and factors of each cell of a run, in the run's order.

    Raises:
        RunError: the summary or the manifest is damaged.
    """
    return Finished.of(folder).rows if (folder.path / "summary.json").is_file() else manifest_of(folder.path).cells


def cells_named(cells: Sequence[Mapping[str, Any]], name: str | None) -> dict[str, str]:
    """Return what the cells that a name fits are called, by id, in the run's order; all without a name.

    Raises:
        RunError: there is none.
    """
    known = dict(zip(labels(cells), cells, strict=True))
    found = known if name is None else fitting(known, name)
    if not found:
        raise no_cell(str(name), known)
    return {known[label]["id"]: label for label in found}


def fitting(known: Mapping[str, Mapping[str, Any]], name: str) -> list[str]:
    """Of cells by label, the labels of those that a name fits: a label or id, else parts of a label and values of
    factors, such as `direct · given`, all of which a cell has."""
    parts = {part.strip() for part in name.split(PART.strip())}
    return ([label for label, row in known.items() if name in (label, row["id"])]
            or [label for label, row in known.items() if parts <= {*label.split(PART), *_values(row)}])


def _values(row: Mapping[str, Any]) -> Iterator[str]:
    return (called(row, [factor]) for factor in FACTORS if row.get(factor) is not None)


def no_cell(name: str, known: Iterable[str]) -> RunError:
    """Return that no cell of those labels has the name."""
    return RunError(f"no cell {name!r}; there are: {', '.join(known)}")
