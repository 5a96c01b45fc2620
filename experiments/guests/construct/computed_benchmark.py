"""Read questions with computed answers, each in four worlds, as `ragbed construct computed` writes them.

One record is an item with its chunks. For each world it has the accepted answers, and the contents that differ from the
original, by chunk index. In a world without answers, the correct reply is a refusal. `tables` are the indexes of the
chunks that the question is about, and `keys` the columns that name their rows. `plan` is what the program computed.

    {"id": "computed-00004", "question": "In “Depots”, what is the “parcels” of the “depot” “Aster”?",
     "operation": "look-up", "language": "en", "source": "table", "keys": ["depot"],
     "plan": {"operation": "look-up", "fields": ["parcels"], "entities": ["Aster"], "where": []},
     "tables": [0],
     "documents": [{"source": "depots.csv",
       "content": "Depots\n\n| depot | parcels |\n| --- | --- |\n| Aster | 1,577 |\n| Birch | 904 |"}],
     "worlds": {"original": {"answers": ["1,577"], "contents": {}},
       "edited": {"answers": ["2,041"], "contents": {"0": "Depots\n\n| depot | parcels |..."}},
       "removed": {"answers": [], "contents": {"0": "..."}},
       "unrelated": {"answers": ["1,577"], "contents": {"0": "..."}}}}
"""
from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Literal

from ragbed.documents.rows import Row, convert_records
from ragbed.documents.types import Chunk, Document, digest
from ragbed.experiments.benchmarks.base import About, Loaded, RecordFiles
from ragbed.experiments.benchmarks.fields import gold_chunk, make_tags, passage
from ragbed.experiments.question import WORLDS, Question, Scheme, World


class Computed(RecordFiles):
    """A set of computed items; each world of an item is a question.

    Attributes:
        path: the set's folder, or a file of records.
    """

    about = About(
        paper="none: built by `ragbed construct computed`", licence="that of the documents it was built from",
        size="as many as were built, each in four worlds", get="ragbed construct computed SRC...",
        settings={"rules": "grounded", "conditions": "provided"})
    scheme = Scheme(
        groups=("worlds", "answers", "overlap", "form"), rubric="grades",
        columns=("original_right", "follow_rate", "stick_rate", "refusal_on_removal", "unrelated_right", "unified"),
        views=("by:operation", "by:language"))

    kind: Literal["computed"] = "computed"

    def loaded(self) -> Iterable[Loaded]:
        """Yield the four worlds of each record as questions, one after the other."""
        return chain.from_iterable(convert_records(_questions, self.rows()))

    def files(self) -> list[Path]:
        """Return the files to read; in a set's folder, those of its items."""
        found = super().files()
        return [file for file in found if file.stem == "computed"] or found


def _questions(row: Row) -> list[Loaded]:
    worlds = row.fields.get("worlds")
    if not isinstance(worlds, dict) or set(worlds) != set(WORLDS):
        row.fail("worlds", f"an object of {', '.join(WORLDS)}", worlds)
    parts = {name: row.part(f"worlds.{name}", worlds[name]) for name in WORLDS}
    original = tuple(parts["original"].texts("answers"))
    records, tables = row.parts("documents"), row.decoded("tables", list, "the places of the documents that it is of")
    found: list[Loaded] = []
    for name, part in parts.items():
        made = [_passage(record, part, place) for place, record in enumerate(records)]
        answers = tuple(part.texts("answers"))
        found.append((Question(
            id=f"{row.filled('id')}-{name}", text=row.filled("question"), answers=answers, answerable=bool(answers),
            gold=tuple(gold_chunk(chunk) for place, (_, chunk) in enumerate(made) if place in tables),
            provided=tuple(chunk for _, chunk in made), world=World(name, original),
            tags=make_tags(world=name, item=row.filled("id"), **{
                tag: row.optional(tag) for tag in ("operation", "language", "source")})),
                      [document for document, _ in made]))
    return found


def _passage(record: Row, world: Row, place: int) -> tuple[Document, Chunk]:
    content = world.part("contents", world.fields.get("contents", {})).fields.get(str(place), record.text("content"))
    return passage(content, id=f"{record.filled('source')}#{digest(content)[:8]}")
