"""Computed answers: questions over tables, and over sentences with dates or numbers, that a program answers.

This kind follows no paper. A program draws an operation and its subject, computes the answer, and edits the documents
into worlds: the original, one with another known answer, one without the basis of the answer, and one with an unrelated
change. Templates word the question. A writer, if given, rewords it, and a second call must read the rewording back as
the same operation, fields and names."""
from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import cache
from importlib import resources
from itertools import count
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from ragbed.documents.types import Chunk
from ragbed.experiments.guests.construct import filters
from ragbed.experiments.guests.construct.counterfactuals import World, apply_to_passage, compute_answers, make_worlds
from ragbed.experiments.guests.construct.llm import WRITER, ask_structured
from ragbed.experiments.guests.construct.operations import (
    OPERATIONS,
    Computation,
    Operation,
    draw_plan,
    find_basis,
    shared_entities,
)
from ragbed.experiments.guests.construct.stages import Dropped, Kind, Library, Stage, StageRecipe
from ragbed.experiments.guests.construct.typed_tables import BLANK, SENTENCE, TypedTable, read_sentences, read_tables
from ragbed.experiments.guests.review.items import Evidence, Item
from ragbed.experiments.metrics.matching import is_korean
from ragbed.experiments.runs.store import write_lines

_MAX_ROUNDS = 60  # maximum uses of a table
_MIN_SHARED = 3  # least rows that two joined tables share
_PLAN, _WORLDS = TypeAdapter(Computation), TypeAdapter(dict[str, World])


class ComputedOptions(BaseModel):
    """Settings of the kind.

    Attributes:
        operations: operations to ask.
        others: chunks of a question in addition to its tables, half of them from the same document.
        largest: maximum characters of a table.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    operations: tuple[Operation, ...] = OPERATIONS
    others: int = Field(default=4, ge=0)
    largest: int = Field(default=6_000, ge=100)


class Worded(BaseModel):
    """The reply of the writer."""

    question: str = Field(min_length=8)


class ReadBack(BaseModel):
    """The second call's reading of the question."""

    names: list[str]
    fields: list[str]
    asked: Literal["value", "earlier", "later", "difference", "ratio", "sum", "highest", "lowest", "count", "join"]


_PLAIN = {"look-up": "value", "before": "earlier", "after": "later", "arg-max": "highest", "arg-min": "lowest"}


def instances(library: Library) -> Iterator[Item]:
    """Yield each table, and each passage with two suitable sentences, with an operation, in seeded order. Then yield
    those that can be asked about again, with further operations."""
    places = [(document.id, place) for document in library.documents.values()
              for place in range(len(read_tables(document)))]
    places += [(chunk.document, place) for place, chunk in enumerate(library.chunks, -len(library.chunks))
               if len(read_sentences(library.documents[chunk.document], chunk.start, chunk.end).entities) > 1]
    library.rng("places").shuffle(places)
    number = count(1)
    for turn in range(_MAX_ROUNDS):
        for at, (document, place) in enumerate(places):
            if turn == 0 or isinstance(_table_at(library, document, place), TypedTable):
                operation = library.options.operations[(at + turn) % len(library.options.operations)]
                yield Item(f"computed-{next(number):05}",
                           made={"document": document, "place": place, "operation": operation})


def _table_at(library: Library, document: str, place: int) -> TypedTable | str:
    """Return a table by its number, or the sentences of a chunk by its number, counted from the end."""
    if place >= 0:
        return read_tables(library.documents[document])[place]
    return read_sentences(library.documents[document], library.chunks[place].start, library.chunks[place].end)


def draw_question(item: Item, library: Library) -> Item:
    """Draw a question of the instance's operation, or of another that the table allows, and make its worlds."""
    place, rng = (item.made["document"], item.made["place"]), library.rng("plan", item.id)
    table = _table_at(library, *place)
    if isinstance(table, str):
        raise Dropped(table)
    if any(isinstance(other, TypedTable) and other != table and other.title == table.title
           and other.fields.keys() & table.fields.keys() for other in read_tables(library.documents[table.document])):
        raise Dropped("two tables with the same name share a field name")
    if table.end - table.start > library.options.largest and table.key != SENTENCE:
        raise Dropped("the table is larger than what is shown")
    first, every = item.made["operation"], library.options.operations
    others = sorted(rng.sample(every, len(every)), key=lambda one: one == "look-up")  # every table allows it
    for operation in (first, *others):
        partners = _partners(library, table) if operation == "join" else []
        places = [place, *([rng.choice(partners)] if partners else [])]
        tables = _tables(library, places)
        if drawn := draw_plan(operation, tables, rng):
            worlds = make_worlds(drawn, tables, library.documents, rng)
            found = [(tables[at].document, tables[at].at(name, one)) for at, name, one in find_basis(drawn, tables)]
            evidence = tuple(Evidence(id, "plain", value.start, value.end, value.text) for id, value in found)
            return replace(item, answers=worlds["original"].answers, evidence=evidence, tags={
                "operation": operation, "language": language(tables, drawn),
                "source": "sentences" if table.key == SENTENCE else "table"}, made={
                    **item.made, "plan": asdict(drawn), "tables": places,
                    "worlds": {name: asdict(world) for name, world in worlds.items()}})
    raise Dropped("no operation fits its fields")


def _tables(library: Library, places: Sequence[tuple[str, int]]) -> list[TypedTable]:
    return [table for place in places if isinstance(table := _table_at(library, *place), TypedTable)]


def _partners(library: Library, table: TypedTable) -> list[tuple[str, int]]:
    """Return tables that share three rows or more with this one: in any document if names tell rows apart, in the same
    document if periods do."""
    return [(document.id, place) for document in library.documents.values()
            if table.key or document.id == table.document for place, other in enumerate(read_tables(document))
            if isinstance(other, TypedTable) and other != table and bool(other.key) == bool(table.key)
            and other.end - other.start <= library.options.largest
            and len(shared_entities([table, other])) >= _MIN_SHARED]


def language(tables: Sequence[TypedTable], drawn: Computation) -> str:
    """Return the language of the question: Korean if the names that it quotes are."""
    return "ko" if any(map(is_korean, (tables[0].title, *drawn.fields, *drawn.entities))) else "en"


@cache
def _wordings() -> dict[str, dict[str, Any]]:
    return dict(json.loads(
        resources.files("ragbed.experiments.data").joinpath("computed/wordings.json").read_text(encoding="utf-8")))


def _by_template(item: Item, library: Library) -> str:
    drawn, tables = _drawn(item, library)
    words, table = _wordings()[item.tags["language"]], tables[0]
    shape = "sentence" if table.key == SENTENCE else "" if table.key else "period"
    phrasings = words.get(f"{drawn.operation} {shape}") or words[drawn.operation]
    named = [words["one" if table.key else "period"].format(key=table.key, entity=one) for one in drawn.entities]
    return str(library.rng("wording", item.id).choice(phrasings)).format(
        title=table.title, second_title=tables[-1].title, key=table.key, named=named, all=words["and"].join(named),
        **asdict(drawn))


def _drawn(item: Item, library: Library) -> tuple[Computation, list[TypedTable]]:
    return _PLAN.validate_python(item.made["plan"]), _tables(library, item.made["tables"])


def word_question(item: Item, library: Library) -> StageRecipe:
    """Word the question by a template. With a writer, reword it, and drop it if it reads back differently."""
    question = _by_template(item, library)
    if not library.has_writer:
        return replace(item, question=question)
    worded, _ = yield from ask_structured(WRITER, "phrase", Worded, "computed_phrase", {"question": question})
    drawn, tables = _drawn(item, library)
    fields = sorted({name for table in tables for name in table.fields})
    names = sorted({*tables[0].entities, *drawn.entities})
    read, _ = yield from ask_structured(WRITER, "read back", ReadBack, "computed_read", {
        "question": worded.question, "fields": "\n".join(fields), "names": "\n".join(names)})
    for found, asked, ordered in ((read.fields, drawn.fields, drawn.operation == "join"),
                                  (read.names, drawn.entities, drawn.operation in ("difference", "ratio"))):
        ours, theirs = (list(dict.fromkeys(one.casefold() for one in each)) for each in (asked, found))
        if ours != theirs and (ordered or sorted(ours) != sorted(theirs)):
            raise Dropped("its words are read back with other fields or names")
    if read.asked != (wanted := _PLAIN.get(drawn.operation, drawn.operation)):
        raise Dropped(f"its words are read back as asking for the {read.asked}, not for the {wanted}")
    return replace(item, question=worded.question)


def add_company(item: Item, library: Library) -> Item:
    """Mix the tables with other chunks that do not mention the subject, half of them from the same documents."""
    drawn, tables = _drawn(item, library)
    rng, own = library.rng("company", item.id), {table.document for table in tables}
    shown = [Chunk.of(library.documents[one.document], "plain", one.start, one.end, f"{one.title}\n\n")
             for one in tables]
    names = drawn.fields if tables[0].key != SENTENCE else [max(one.split(BLANK), key=len) for one in drawn.entities]
    free = [chunk for chunk in library.chunks if chunk.format == "plain" and not any(
        name.casefold() in chunk.content.casefold() for name in names) and not any(
            chunk.document == one.document and chunk.start < one.end and one.start < chunk.end for one in tables)]
    near, far = ([chunk for chunk in free if (chunk.document in own) == inside] for inside in (True, False))
    others = rng.sample(near, min(library.options.others // 2, len(near)))
    others += rng.sample(far, min(library.options.others - len(others), len(far)))
    every = list({chunk.id: chunk for chunk in (*shown, *others)}.values())
    rng.shuffle(every)
    return replace(item, chunks=tuple(every))


def check_worlds(item: Item, library: Library) -> str | None:
    """Check that every world gives its answer, after its edits are applied and its tables are read again."""
    drawn, tables = _drawn(item, library)
    for name, world in _WORLDS.validate_python(item.made["worlds"]).items():
        if compute_answers(drawn, tables, world.edits) != world.answers:
            return f"its {name} world gives another answer"
    return None


def write(items: Sequence[Item], library: Library, folder: Path) -> None:
    """Write one record per item, with its chunks, and the changed contents in other worlds."""
    write_lines(folder / "computed.jsonl", (_row(item, library) for item in items))


def _row(item: Item, library: Library) -> dict[str, Any]:
    drawn, tables = _drawn(item, library)
    spans = [(chunk.document, chunk.start, chunk.end) for chunk in item.chunks]
    places = [spans.index((table.document, table.start, table.end)) for table in tables]
    documents = [{"source": library.documents[one.document].source, "content": one.content} for one in item.chunks]
    found = {}
    for name, world in _WORLDS.validate_python(item.made["worlds"]).items():
        contents = {str(place): changed for place, chunk in enumerate(item.chunks)
                    if (changed := chunk.prefix + apply_to_passage(
            chunk.document, chunk.content.removeprefix(chunk.prefix), chunk.start, world.edits)) != chunk.content}
        found[name] = {"answers": list(world.answers), "contents": contents}
    return {"id": item.id, "question": item.question, **item.tags, "plan": asdict(drawn),
            "keys": [table.key for table in tables], "tables": places, "documents": documents, "worlds": found}


COMPUTED = Kind("computed", "no paper: a program computes the answers", instances,
                (Stage("plan", draw_question), Stage("wording", word_question, calls=4), Stage("company", add_company)),
                (Stage("spans", filters.check_spans), Stage("self-contained", filters.check_self_contained),
                 Stage("worlds", check_worlds)),
                write, options=ComputedOptions, needs_writer=False, asks_solvers=False)
