"""Finding a question and cells of a run by what a person writes of them."""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from difflib import get_close_matches

from documents.errors import RunError, UserError
from experiments.cells import cells_of, labels
from experiments.settings_file import read_settings
from experiments.store import RunFolder

_NEAREST = 3
_PART = " · "


def question_named(ids: Sequence[str], name: str) -> int:
    """The place, from 0, of the question with this id, else number (`#1` is the first), else unique beginning of an id.

    Raises:
        RunError: there is none, or several begin so; it names the nearest.
    """
    if name in ids:
        return ids.index(name)
    if numbered := re.fullmatch(r"#(\d{1,9})", name):
        if 1 <= int(numbered[1]) <= len(ids):
            return int(numbered[1]) - 1
        raise RunError(f"no question {name}: the run has {len(ids)}, from #1 to #{len(ids)}")
    found = [place for place, id in enumerate(ids) if name and id.startswith(name)]
    if len(found) == 1:
        return found[0]
    if found:
        raise RunError(f"{len(found)} questions begin with {name!r}, such as {_listed([ids[one] for one in found])}; "
                       "give more of the id, or a number as in #1")
    near = get_close_matches(name, ids, _NEAREST, cutoff=0.3)
    such = f"the nearest: {_listed(near)}" if near else f"the first: {_listed(ids)}"
    raise RunError(f"no question {name!r} among the {len(ids)} of the run; {such}; or give a number, from #1 to "
                   f"#{len(ids)}")


def _listed(ids: Sequence[str]) -> str:
    return ", ".join(ids[:_NEAREST])


def cell_labels(folder: RunFolder) -> dict[str, str]:
    """What the cells of a run are called, by id, in the run's order.

    Those of an unfinished run come from its settings and its benchmark; where that is not here, the cells that have a
    record are called by their ids.

    Raises:
        RunError: the summary is damaged.
    """
    if (folder.path / "summary.json").is_file():
        rows = folder.summary()["cells"]
    else:
        try:
            settings = read_settings(folder.path / "config.yaml")
            rows = [{"id": cell.id, **asdict(cell)} for cell in cells_of(settings, settings.benchmark.load())]
        except UserError:
            return {id: id for id in dict.fromkeys(cell for cell, _ in sorted(folder.done()))}
    return {row["id"]: label for row, label in zip(rows, labels(rows), strict=True)}


def cells_named(known: Mapping[str, str], name: str | None) -> dict[str, str]:
    """The cells of this label or id, else those whose label has all the parts that are given; all without a name.

    Raises:
        RunError: there is none.
    """
    if name is None:
        return dict(known)
    exact = {id: label for id, label in known.items() if name in (id, label)}
    parts = {part.strip() for part in name.split(_PART.strip())}
    found = exact or {id: label for id, label in known.items() if parts <= set(label.split(_PART))}
    if not found:
        raise RunError(f"no cell {name!r}; there are: {', '.join(known.values())}")
    return found
