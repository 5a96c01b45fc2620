"""The files of a set: the paper's own format, every item with what became of it, the card and the report."""
from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from experiments.construct.build import Built
from experiments.construct.card import card_of, hashes, write_card
from experiments.construct.item import Item
from experiments.construct.play import Played
from experiments.construct.report import write_report
from experiments.runs.store import write_text

ITEMS, REPORT = "items.jsonl", "report.html"
_ITEM = TypeAdapter(Item)


def write_set(built: Built) -> Mapping[str, Any]:
    """Write the set of a construction that came to its end, and return its card; the same bytes for the same calls."""
    settings, played = built.settings, built.construction.played
    folder: Path = settings.out / settings.kind
    folder.mkdir(parents=True, exist_ok=True)
    settings.what.write(built.construction.kept, built.library, folder)
    write_text(settings.out / ITEMS, "".join(map(_line, played)))
    card = {**card_of(built), "files": hashes(settings.out, [settings.kind, ITEMS])}
    write_card(settings.out, card)
    write_report(settings.out / REPORT, card, played)
    return card


def _line(played: Played) -> str:
    fields = {"item": _ITEM.dump_python(played.item, mode="json"), "lost": played.lost, "why": played.why,
              "calls": [list(call) for call in played.calls]}
    return json.dumps(fields, ensure_ascii=False, sort_keys=True) + "\n"
