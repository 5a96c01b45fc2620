"""Computed truth: questions over tables and over dated and numbered sentences, whose answers a program works out.

None of the five papers has it. A program draws an operation and what it is of, works the answer out, and edits the
documents into four worlds: the original, one in which the answer is another and known, one in which what it rests on is
gone, and one in which something else is another. Templates word the question; where a writer is given it words it anew,
and a second call has to read its words back into the same operation, fields and names.
"""
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

_ROUNDS = 60  # how often a table is drawn
_SHARED = 3  # rows that two tables have in common, to be joined
_PLAN, _WORLDS = TypeAdapter(Computation), TypeAdapter(dict[str, World])


class ComputedOptions(BaseModel):
    """Settings of the kind.

    Attributes:
        operations: what is asked.
        others: chunks that a question comes with beside its tables, half of them of the same document.
        largest: characters of a table; a larger one is left out.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    operations: tuple[Operation, ...] = OPERATIONS
    others: int = Field(default=4, ge=0)
    largest: int = Field(default=6_000, ge=100)


class Worded(BaseModel):
    """The reply of the writer."""

    question: str = Field(min_length=8)


class ReadBack(BaseModel):
    """What a question asks for, as the second call reads it: what it copies comes first, and what follows from it."""

    names: list[str]
    fields: list[str]
    asked: Literal["value", "earlier", "later", "difference", "ratio", "sum", "highest", "lowest", "count", "join"]


_PLAIN = {"look-up": "value", "before": "earlier", "after": "later", "arg-max": "highest", "arg-min": "lowest"}


def instances(library: Library) -> Iterator[Item]:
    """Give each table, and each passage with two such sentences, an operation, in an order that the seed decides; then
    another one to those of which something can be asked."""
    places = [(document.id, place) for document in library.documents.values()
              for place in range(len(read_tables(document)))]
    places += [(chunk.document, place) for place, chunk in enumerate(library.chunks, -len(library.chunks))
               if len(read_sentences(library.documents[chunk.document], chunk.start, chunk.end).entities) > 1]
    library.rng("places").shuffle(places)
    number = count(1)
    for turn in range(_ROUNDS):
        for at, (document, place) in enumerate(places):
            if turn == 0 or isinstance(_table_at(library, document, place), TypedTable):
                operation = library.options.operations[(at + turn) % len(library.options.operations)]
                yield Item(f"computed-{next(number):05}",
                           made={"document": document, "place": place, "operation": operation})


def _table_at(library: Library, document: str, place: int) -> TypedTable | str:
    """A table by its number; a passage by that of its chunk, counted from the end."""
    if place >= 0:
        return read_tables(library.documents[document])[place]
    return read_sentences(library.documents[document], library.chunks[place].start, library.chunks[place].end)


def draw_question(item: Item, library: Library) -> Item:
    """Draw the question of the instance's operation, or of another one that the table allows; compute its worlds."""
    place, rng = (item.made["document"], item.made["place"]), library.rng("plan", item.id)
    frame = _table_at(library, *place)
    if isinstance(frame, str):
        raise Dropped(frame)
    if any(isinstance(other, TypedTable) and other != frame and other.title == frame.title
           and other.fields.keys() & frame.fields.keys() for other in read_tables(library.documents[frame.document])):
        raise Dropped("two tables of one name have fields of one name")
    if frame.end - frame.start > library.options.largest and frame.key != SENTENCE:
        raise Dropped("the table is larger than what is shown")
    first, every = item.made["operation"], library.options.operations
    others = sorted(rng.sample(every, len(every)), key=lambda one: one == "look-up")  # which everything allows
    for operation in (first, *others):
        partners = _partners(library, frame) if operation == "join" else []
        places = [place, *([rng.choice(partners)] if partners else [])]
        frames = _frames(library, places)
        if drawn := draw_plan(operation, frames, rng):
            worlds = make_worlds(drawn, frames, library.documents, rng)
            found = [(frames[at].document, frames[at].at(name, one)) for at, name, one in find_basis(drawn, frames)]
            evidence = tuple(Evidence(id, "plain", value.start, value.end, value.text) for id, value in found)
            return replace(item, answers=worlds["original"].answers, evidence=evidence, tags={
                "operation": operation, "language": language(frames, drawn),
                "source": "sentences" if frame.key == SENTENCE else "table"}, made={
                    **item.made, "plan": asdict(drawn), "frames": places,
                    "worlds": {name: asdict(world) for name, world in worlds.items()}})
    raise Dropped("no operation fits its fields")


def _frames(library: Library, places: Sequence[tuple[str, int]]) -> list[TypedTable]:
    return [frame for place in places if isinstance(frame := _table_at(library, *place), TypedTable)]


def _partners(library: Library, frame: TypedTable) -> list[tuple[str, int]]:
    """Other tables with at least three of its rows: of any document where names tell them, of its own where periods."""
    return [(document.id, place) for document in library.documents.values()
            if frame.key or document.id == frame.document for place, other in enumerate(read_tables(document))
            if isinstance(other, TypedTable) and other != frame and bool(other.key) == bool(frame.key)
            and other.end - other.start <= library.options.largest and len(shared_entities([frame, other])) >= _SHARED]


def language(frames: Sequence[TypedTable], drawn: Computation) -> str:
    """Return the language that the question is worded in: Korean where the names that it quotes are."""
    return "ko" if any(map(is_korean, (frames[0].title, *drawn.fields, *drawn.entities))) else "en"


@cache
def _wordings() -> dict[str, dict[str, Any]]:
    return dict(json.loads(
        resources.files("ragbed.experiments.data").joinpath("computed/wordings.json").read_text(encoding="utf-8")))


def _by_template(item: Item, library: Library) -> str:
    drawn, frames = _drawn(item, library)
    words, frame = _wordings()[item.tags["language"]], frames[0]
    shape = "sentence" if frame.key == SENTENCE else "" if frame.key else "period"
    phrasings = words.get(f"{drawn.operation} {shape}") or words[drawn.operation]
    named = [words["one" if frame.key else "period"].format(key=frame.key, entity=one) for one in drawn.entities]
    return str(library.rng("wording", item.id).choice(phrasings)).format(
        title=frame.title, second_title=frames[-1].title, key=frame.key, named=named, all=words["and"].join(named),
        **asdict(drawn))


def _drawn(item: Item, library: Library) -> tuple[Computation, list[TypedTable]]:
    return _PLAN.validate_python(item.made["plan"]), _frames(library, item.made["frames"])


def word_question(item: Item, library: Library) -> StageRecipe:
    """Word the question by a template; anew by the writer where there is one, and lose what is read back otherwise."""
    question = _by_template(item, library)
    if not library.has_writer:
        return replace(item, question=question)
    worded, _ = yield from ask_structured(WRITER, "phrase", Worded, "computed_phrase", {"question": question})
    drawn, frames = _drawn(item, library)
    fields = sorted({name for frame in frames for name in frame.fields})
    names = sorted({*frames[0].entities, *drawn.entities})
    read, _ = yield from ask_structured(WRITER, "read back", ReadBack, "computed_read", {
        "question": worded.question, "fields": "\n".join(fields), "names": "\n".join(names)})
    for told, asked, ordered in ((read.fields, drawn.fields, drawn.operation == "join"),
                                 (read.names, drawn.entities, drawn.operation in ("difference", "ratio"))):
        ours, theirs = (list(dict.fromkeys(one.casefold() for one in each)) for each in (asked, told))
        if ours != theirs and (ordered or sorted(ours) != sorted(theirs)):
            raise Dropped("its words are read back with other fields or names")
    if read.asked != (wanted := _PLAIN.get(drawn.operation, drawn.operation)):
        raise Dropped(f"its words are read back as asking for the {read.asked}, not for the {wanted}")
    return replace(item, question=worded.question)


def add_company(item: Item, library: Library) -> Item:
    """Put the tables among other chunks, half of them of the same documents, that say nothing of what is asked."""
    drawn, frames = _drawn(item, library)
    rng, own = library.rng("company", item.id), {frame.document for frame in frames}
    tables = [Chunk.of(library.documents[one.document], "plain", one.start, one.end, f"{one.title}\n\n")
              for one in frames]
    said = drawn.fields if frames[0].key != SENTENCE else [max(one.split(BLANK), key=len) for one in drawn.entities]
    free = [chunk for chunk in library.chunks if chunk.format == "plain" and not any(
        name.casefold() in chunk.content.casefold() for name in said) and not any(
            chunk.document == one.document and chunk.start < one.end and one.start < chunk.end for one in frames)]
    near, far = ([chunk for chunk in free if (chunk.document in own) == inside] for inside in (True, False))
    others = rng.sample(near, min(library.options.others // 2, len(near)))
    others += rng.sample(far, min(library.options.others - len(others), len(far)))
    every = list({chunk.id: chunk for chunk in (*tables, *others)}.values())
    rng.shuffle(every)
    return replace(item, chunks=tuple(every))


def check_worlds(item: Item, library: Library) -> str | None:
    """Check that every world, its edits applied and its tables read anew, gives the answer that it should."""
    drawn, frames = _drawn(item, library)
    for name, world in _WORLDS.validate_python(item.made["worlds"]).items():
        if compute_answers(drawn, frames, world.edits) != world.answers:
            return f"its {name} world gives another answer"
    return None


def write(items: Sequence[Item], library: Library, folder: Path) -> None:
    """Write one record an item, with its chunks, and the contents of those that another world changes."""
    write_lines(folder / "computed.jsonl", (_row(item, library) for item in items))


def _row(item: Item, library: Library) -> dict[str, Any]:
    drawn, frames = _drawn(item, library)
    spans = [(chunk.document, chunk.start, chunk.end) for chunk in item.chunks]
    tables = [spans.index((frame.document, frame.start, frame.end)) for frame in frames]
    documents = [{"source": library.documents[one.document].source, "content": one.content} for one in item.chunks]
    found = {}
    for name, world in _WORLDS.validate_python(item.made["worlds"]).items():
        contents = {str(place): changed for place, chunk in enumerate(item.chunks)
                    if (changed := chunk.prefix + apply_to_passage(
            chunk.document, chunk.content.removeprefix(chunk.prefix), chunk.start, world.edits)) != chunk.content}
        found[name] = {"answers": list(world.answers), "contents": contents}
    return {"id": item.id, "question": item.question, **item.tags, "plan": asdict(drawn),
            "keys": [frame.key for frame in frames], "tables": tables, "documents": documents, "worlds": found}


COMPUTED = Kind("computed", "no paper: a program works out the answers", instances,
                (Stage("plan", draw_question), Stage("wording", word_question, calls=4), Stage("company", add_company)),
                (Stage("spans", filters.check_spans), Stage("self-contained", filters.check_self_contained),
                 Stage("worlds", check_worlds)),
                write, options=ComputedOptions, needs_writer=False, asks_solvers=False)
