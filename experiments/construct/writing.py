"""The files of a set: in the paper's own format, as questions of one's own, and every item with what became of it."""
from __future__ import annotations

import json

from pydantic import TypeAdapter

from documents.types import Document
from experiments.construct.build import Built
from experiments.construct.item import DOCUMENTS, ITEMS, Item
from experiments.construct.play import Played, counted
from experiments.runs.store import write_text

_ITEM, _DOCUMENT = TypeAdapter(Item), TypeAdapter(Document)


def write_set(built: Built) -> None:
    """Write the set of a construction that came to its end: its own format below KIND/, items.jsonl, and the documents
    of kept items, which `ragbed review` marks evidence in."""
    settings, construction = built.settings, built.construction
    folder = settings.out / settings.kind
    folder.mkdir(parents=True, exist_ok=True)
    settings.what.write(construction.kept, built.library, folder)
    write_text(settings.out / ITEMS, "".join(map(_line, construction.played)))
    named = {id for item in construction.kept for id in (
        *(one.document for one in item.evidence), *(chunk.document for chunk in item.chunks))}
    every = {**built.library.documents, **{one.id: one for item in construction.kept for one in item.documents}}
    write_text(settings.out / DOCUMENTS, "".join(_json(_DOCUMENT.dump_python(document, mode="json"))
                                                 for document in every.values() if document.id in named))
    card = {"kind": settings.kind, "yield": counted(construction), "models": dict(built.models)}
    write_text(settings.out / "card.json", json.dumps(card, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def _line(played: Played) -> str:
    fields = {"item": _ITEM.dump_python(played.item, mode="json"), "lost": played.lost, "why": played.why,
              "calls": [list(call) for call in played.calls]}
    return _json(fields)


def _json(fields: object) -> str:
    return json.dumps(fields, ensure_ascii=False, sort_keys=True) + "\n"
