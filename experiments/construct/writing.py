"""The files of a set: the paper's own format, every item with what became of it, the card and the report."""
from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from documents.types import Document
from experiments.construct.asking import WRITER
from experiments.construct.card import card_of, hashes, write_card
from experiments.construct.formats import of_items, own_line, write_exports
from experiments.construct.item import DOCUMENTS, ITEMS, QUESTIONS, Item
from experiments.construct.report import write_report
from experiments.runs.store import write_text

if TYPE_CHECKING:
    from experiments.construct.build import Built
    from experiments.construct.play import Played

REPORT = "report.html"
_ITEM, _DOCUMENT = TypeAdapter(Item), TypeAdapter(Document)


def write_set(built: Built) -> Mapping[str, Any]:
    """Write the set of a construction that came to its end, and return its card; the same bytes for the same calls.
    Beside its own format below KIND/ stand questions.jsonl, the formats that were asked for, every item with what
    became of it, and the documents of kept items, which `ragbed review` marks evidence in."""
    settings, construction = built.settings, built.construction
    folder: Path = settings.out / settings.kind
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
    files = hashes(settings.out, [settings.kind, QUESTIONS, ITEMS, DOCUMENTS, *settings.exports])
    card = {**card_of(built), "files": files}
    write_card(settings.out, card)
    write_report(settings.out / REPORT, card, construction.played)
    return card


def _line(played: Played) -> str:
    fields = {"item": _ITEM.dump_python(played.item, mode="json"), "lost": played.lost, "why": played.why,
              "calls": [list(call) for call in played.calls]}
    return _json(fields)


def _json(fields: object) -> str:
    return json.dumps(fields, ensure_ascii=False, sort_keys=True) + "\n"
