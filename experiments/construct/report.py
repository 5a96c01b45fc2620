"""The report of a construction: its yield, its sources, and every item with what became of it, in one page."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.analysis.view import View, text_of
from experiments.construct.card import sources_view, yield_view
from experiments.report.page import policy
from experiments.runs.store import write_text
from experiments.words import visible

if TYPE_CHECKING:
    from experiments.construct.play import Played

_MOST = 1_000
"""Items that the page shows of those kept, and of those lost; items.jsonl has all."""


def write_report(path: Path, card: Mapping[str, Any], played: Sequence[Played]) -> None:
    """Write the page, the same bytes for the same construction."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(loader=PackageLoader("experiments.construct", "assets"), autoescape=True,
                              undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["visible"] = visible
    folder = files("experiments.report").joinpath("assets")
    style = "\n".join([*(folder.joinpath(name).read_text("utf-8") for name in ("page.css", "tables.css")),
                       files("experiments.construct").joinpath("assets/report.css").read_text("utf-8")])
    kept = [one for one in played if not one.lost]
    lost = [one for one in played if one.lost]
    most = max(1, *(row[1] for row in yield_view(card).rows if isinstance(row[1], int)))
    write_text(path, environment.get_template("report.html.j2").render(
        card=card, style=style, policy=policy([], [style]), found=card["yield"], most=most,
        steps=yield_view(card).rows, sources=_texts(sources_view(card)),
        lists=[("Kept", kept[:_MOST], len(kept)), ("Lost", lost[:_MOST], len(lost))]))


def _texts(view: View) -> tuple[Sequence[str], list[list[str]]]:
    return view.header, [[text_of(view, name, value) for name, value in zip(view.header, row, strict=True)]
                         for row in view.rows]
