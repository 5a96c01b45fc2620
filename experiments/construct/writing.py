"""The files of a set: in the paper's own format, as questions of one's own, and every item with what became of it."""
from __future__ import annotations

import json

from pydantic import TypeAdapter

from documents.types import Document
from experiments.benchmarks.hub import CARD
from experiments.construct.asking import WRITER
from experiments.construct.build import Built
from experiments.construct.formats import of_items, own_line, write_exports
from experiments.construct.item import DOCUMENTS, ITEMS, QUESTIONS, Item
from experiments.construct.play import Played, counted
from experiments.runs.store import write_text

_ITEM, _DOCUMENT = TypeAdapter(Item), TypeAdapter(Document)


def write_set(built: Built) -> None:
    """Write the set of a construction that came to its end: its own format below KIND/, questions.jsonl, the formats
    that were asked for, items.jsonl, and the documents of kept items, which `ragbed review` marks evidence in."""
    settings, construction = built.settings, built.construction
    folder = settings.out / settings.kind
    folder.mkdir(parents=True, exist_ok=True)
    settings.what.write(construction.kept, built.library, folder)
    write_text(settings.out / QUESTIONS, "".join(_json(own_line(item, built.library)) for item in construction.kept))
    if settings.exports:
        made = of_items(construction.kept, built.library, settings.kind, built.models.get(WRITER, ""))
        write_exports(made, settings.exports, settings.out)
    write_text(settings.out / ITEMS, "".join(map(_line, construction.played)))
    named = {id for item in construction.kept for id in (
        *(one.document for one in item.evidence), *(chunk.document for chunk in item.chunks))}
    every = {**built.library.documents, **{one.id: one for item in construction.kept for one in item.documents}}
    write_text(settings.out / DOCUMENTS, "".join(_json(_DOCUMENT.dump_python(document, mode="json"))
                                                 for document in every.values() if document.id in named))
    card = {"kind": settings.kind, "yield": counted(construction), "models": dict(built.models),
            "notes": list(settings.what.notes(construction.played, built.library))}
    write_text(settings.out / CARD, json.dumps(card, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def _line(played: Played) -> str:
    fields = {"item": _ITEM.dump_python(played.item, mode="json"), "lost": played.lost, "why": played.why,
              "calls": [list(call) for call in played.calls]}
    return _json(fields)


def _json(fields: object) -> str:
    return json.dumps(fields, ensure_ascii=False, sort_keys=True) + "\n"
