"""The files of a set: the paper's own format, every item with what became of it, the card, and the report, one page
that shows its yield, its sources and its items."""
from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from ragbed.documents.types import Document
from ragbed.experiments.analysis.view import text_of
from ragbed.experiments.guests.construct.card import card_of, hashes, sources_view, write_card, yield_view
from ragbed.experiments.guests.construct.export_formats import of_items, write_exports
from ragbed.experiments.guests.construct.llm import WRITER
from ragbed.experiments.guests.construct.play import Played
from ragbed.experiments.guests.review.figures import read_figures
from ragbed.experiments.guests.review.items import DOCUMENTS, FILE, ITEMS, QUESTIONS, Item, open_set, own_line
from ragbed.experiments.report.page import policy
from ragbed.experiments.runs.store import write_text
from ragbed.experiments.words import visible

if TYPE_CHECKING:
    from ragbed.experiments.guests.construct.build import Built

REPORT = "report.html"
_MOST = 1_000  # items that the page shows of those kept, and of those lost; items.jsonl has all
_ITEM, _DOCUMENT = TypeAdapter(Item), TypeAdapter(Document)


def write_set(built: Built) -> Mapping[str, Any]:
    """Write the set of a construction that came to its end, and return its card; the same bytes for the same calls.
    Beside its own format below KIND/ stand questions.jsonl, the formats that were asked for, every item with what
    became of it, and the documents of kept items, which `ragbed review` marks evidence in."""
    settings, construction = built.settings, built.construction
    folder = settings.out / settings.kind
    folder.mkdir(parents=True, exist_ok=True)
    settings.what.write(construction.kept, built.library, folder)
    write_text(settings.out / QUESTIONS, "".join(_json(own_line(item, built.library.documents))
                                                 for item in construction.kept))
    if settings.exports:
        made = of_items(construction.kept, built.library, settings.kind, built.models.get(WRITER, ""))
        write_exports(made, settings.exports, settings.out)
    write_text(settings.out / ITEMS, "".join(map(_line, construction.played)))
    named = {id for item in construction.kept for id in (
        *(one.document for one in item.evidence), *(chunk.document for chunk in item.chunks))}
    every = {**built.library.documents, **{one.id: one for item in construction.kept for one in item.documents}}
    write_text(settings.out / DOCUMENTS, "".join(_json(_DOCUMENT.dump_python(document, mode="json"))
                                                 for document in every.values() if document.id in named))
    written = hashes(settings.out, [settings.kind, QUESTIONS, ITEMS, DOCUMENTS, *settings.exports])
    card: dict[str, Any] = {**card_of(built), "files": written}
    if construction.kept and (settings.out / FILE).is_file():
        card["review"], _ = read_figures(open_set(str(settings.out)))
    write_card(settings.out, card)
    write_text(settings.out / REPORT, _report(card, construction.played))
    return card


def _line(played: Played) -> str:
    return _json({"item": _ITEM.dump_python(played.item, mode="json"), "lost": played.lost, "why": played.why,
                  "calls": [list(call) for call in played.calls]})


def _json(fields: object) -> str:
    return json.dumps(fields, ensure_ascii=False, sort_keys=True) + "\n"


def _report(card: Mapping[str, Any], played: Sequence[Played]) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(loader=PackageLoader("ragbed.experiments.guests.construct", "assets"), autoescape=True,
                              undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["visible"] = visible
    style = "\n".join(files(package).joinpath("assets", name).read_text("utf-8") for package, name in (
        ("ragbed.experiments.report", "page.css"), ("ragbed.experiments.report", "tables.css"),
        ("ragbed.experiments.guests.construct", "report.css")))
    kept = [one for one in played if not one.lost]
    lost = [one for one in played if one.lost]
    steps, sources = yield_view(card).rows, sources_view(card)
    most = max(1, *(row[1] for row in steps if isinstance(row[1], int)))
    return environment.get_template("report.html.j2").render(
        card=card, style=style, policy=policy([], [style]), found=card["yield"], most=most, steps=steps,
        sources=(sources.header, [[text_of(sources, name, value) for name, value in zip(
            sources.header, row, strict=True)] for row in sources.rows]),
        lists=[("Kept", kept[:_MOST], len(kept)), ("Lost", lost[:_MOST], len(lost))])
