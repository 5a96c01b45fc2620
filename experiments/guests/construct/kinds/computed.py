"""Computed answers: questions over tables, and over sentences with dates or numbers, that a program answers.

This kind follows no paper. A program draws an operation and its subject, computes the answer, and edits the documents
into worlds: the original, one with another known answer, one without the basis of the answer, and one with an unrelated
change. Templates word the question. A writer, if given, rewords it, and a second call must read the rewording back as
the same operation, fields and names.

With `twins`, each question is asked a second time in words that its documents do not have: in the synonyms of a file,
or in a writer's words, which are read back. A search for words finds the documents of the first question, and cannot
find those of the second."""
from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import asdict, replace
from functools import cache
from importlib import resources
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, model_validator

from ragbed.documents.errors import BenchmarkError, SettingsError
from ragbed.documents.rows import read_json
from ragbed.documents.types import Chunk
from ragbed.experiments.guests.answer_support.word_overlap import FUNCTION_WORDS, all_words, content_words
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
from ragbed.experiments.guests.formats.typed_tables import BLANK, SENTENCE, TypedTable, read_sentences, read_tables
from ragbed.experiments.guests.review.items import Evidence, Item
from ragbed.experiments.metrics.matching import is_korean
from ragbed.experiments.runs.store import write_lines

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_NO_QUOTES = str.maketrans("", "", "“”")
_MAX_ROUNDS = 60  # questions that can be asked about one table
_MIN_SHARED = 3  # rows that two tables must share to be joined
_PLAN, _WORLDS = TypeAdapter(Computation), TypeAdapter(dict[str, World])


def _read_synonyms(value: Any) -> Any:
    try:
        return read_json(Path(value)) if isinstance(value, str | Path) else value
    except BenchmarkError as error:
        raise ValueError(str(error)) from error


class ComputedOptions(BaseModel):
    """Settings of the kind.

    Attributes:
        twins: ask each question twice, in the documents' words and in other words. Twins have the tags `wording`
            (`literal` or `paraphrased`) and `pair`. Give an even number of items.
        synonyms: JSON file with other words for words and phrases of the documents, such as `{"doctor": "physician"}`.
            Twins need it if there is no writer. A question with a word that it lacks is left out.
        operations: operations to ask.
        others: chunks to show besides the tables, half of them from the same documents.
        largest: maximum characters of a table.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    twins: bool = False
    synonyms: Annotated[dict[str, str], BeforeValidator(_read_synonyms)] = Field(default_factory=dict)
    operations: tuple[Operation, ...] = OPERATIONS
    others: int = Field(default=4, ge=0)
    largest: int = Field(default=6_000, ge=100)

    @model_validator(mode="after")
    def _check_twins(self) -> ComputedOptions:
        if self.synonyms and not self.twins:
            raise ValueError("synonyms are used only for twins; set twins=true, or leave synonyms out")
        return self


class Rewording(BaseModel):
    """The reply of the writer."""

    question: str = Field(min_length=8)


class ReadBack(BaseModel):
    """What the second call takes the question to ask."""

    names: list[str]
    fields: list[str]
    asked: Literal["value", "earlier", "later", "difference", "ratio", "sum", "highest", "lowest", "count", "join"]


_PLAIN = {"look-up": "value", "before": "earlier", "after": "later", "arg-max": "highest", "arg-min": "lowest"}


def instances(library: Library) -> Iterator[Item]:
    """Yield each table, and each passage with two or more suitable sentences, with an operation, in seeded order.
    Further rounds yield the usable tables with other operations. Raises SettingsError if twins cannot be worded."""
    if library.options.twins and library.has_writer == bool(library.options.synonyms):
        raise SettingsError("options.twins: give a --writer or options.synonyms=FILE.json, but not both")
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
    """Return the table at this place; if negative, the sentences of the chunk at this place."""
    if place >= 0:
        return read_tables(library.documents[document])[place]
    return read_sentences(library.documents[document], library.chunks[place].start, library.chunks[place].end)


def draw_question(item: Item, library: Library) -> Item:
    """Draw a question for the instance's operation, or for another that the table allows, and edit the documents into
    its worlds."""
    place, rng = (item.made["document"], item.made["place"]), library.rng("plan", item.id)
    table = _table_at(library, *place)
    if isinstance(table, str):
        raise Dropped(table)
    if any(isinstance(other, TypedTable) and other != table and other.title == table.title
           and other.fields.keys() & table.fields.keys() for other in read_tables(library.documents[table.document])):
        raise Dropped("two tables with the same name share a field name")
    if table.end - table.start > library.options.largest and table.key != SENTENCE:
        raise Dropped("the table is larger than options.largest")
    first, every = item.made["operation"], library.options.operations
    others = sorted(rng.sample(every, len(every)), key=lambda one: one == "look-up")  # every table allows it
    for operation in (first, *others):
        partners = _partners(library, table) if operation == "join" else []
        places = [place, *([rng.choice(partners)] if partners else [])]
        tables = _tables(library, places)
        if drawn := draw_plan(operation, tables, rng):
            worlds = make_worlds(drawn, tables, library.documents, rng)
            found = [(tables[at].document, tables[at].at(name, one)) for at, name, one in find_basis(drawn, tables)]
            evidence = tuple(Evidence(id, "plain", value.start, value.end, value.text) for id, value in found
                             if not value.empty)
            return replace(item, answers=worlds["original"].answers, evidence=evidence, tags={
                "operation": operation, "language": language(tables, drawn),
                "source": "sentences" if table.key == SENTENCE else "table"}, made={
                    **item.made, "plan": asdict(drawn), "tables": places,
                    "worlds": {name: asdict(world) for name, world in worlds.items()}})
    raise Dropped("no operation fits its fields")


def _tables(library: Library, places: Sequence[tuple[str, int]]) -> list[TypedTable]:
    return [table for place in places if isinstance(table := _table_at(library, *place), TypedTable)]


def _partners(library: Library, table: TypedTable) -> list[tuple[str, int]]:
    """Return tables that share at least three rows with this one. Rows named by periods must be in the same document.
    """
    return [(document.id, place) for document in library.documents.values()
            if table.key or document.id == table.document for place, other in enumerate(read_tables(document))
            if isinstance(other, TypedTable) and other != table and bool(other.key) == bool(table.key)
            and other.end - other.start <= library.options.largest
            and len(shared_entities([table, other])) >= _MIN_SHARED]


def language(tables: Sequence[TypedTable], drawn: Computation) -> str:
    """Return the language of the question: Korean if a name that it quotes is Korean."""
    return "ko" if any(map(is_korean, (tables[0].title, *drawn.fields, *drawn.entities))) else "en"


@cache
def _wordings() -> dict[str, dict[str, Any]]:
    return dict(json.loads(
        resources.files("ragbed.experiments.data").joinpath("computed/wordings.json").read_text(encoding="utf-8")))


def _fill_templates(item: Item, library: Library, say: Callable[[str], str] | None = None) -> list[str]:
    """Return the question in each template's words. `say` rewords titles, fields and names, and leaves out quotes."""
    drawn, tables = _load_plan(item, library)
    words, table = _wordings()[item.tags["language"]], tables[0]
    shape = "sentence" if table.key == SENTENCE else "" if table.key else "period"
    phrasings = words.get(f"{drawn.operation} {shape}") or words[drawn.operation]
    parts = {"title": table.title, "second_title": tables[-1].title, "key": "" if shape else table.key}
    fields, entities = () if shape == "sentence" else drawn.fields, drawn.entities
    named = [words["one" if table.key else "period"].format(key=table.key, entity=one) for one in entities]
    if say:
        parts = {name: say(part) for name, part in parts.items()}
        fields, entities = tuple(map(say, fields)), tuple(map(say, entities))
        named, phrasings = list(entities), [one.translate(_NO_QUOTES) for one in phrasings]
    return [str(one).format(**parts, fields=fields, entities=entities, named=named, all=words["and"].join(named),
                            where=drawn.where) for one in phrasings]


def _load_plan(item: Item, library: Library) -> tuple[Computation, list[TypedTable]]:
    return _PLAN.validate_python(item.made["plan"]), _tables(library, item.made["tables"])


def word_question(item: Item, library: Library) -> StageRecipe:
    """Word the question with a template. A writer, if any, rewords it; it is dropped if it reads back differently. For
    twins, return the template's question and the reworded one."""
    question = str(library.rng("wording", item.id).choice(_fill_templates(item, library)))
    if not library.options.twins:
        if library.has_writer:
            question = yield from _reword(item, library, question, "computed_phrase")
        return replace(item, question=question)
    if library.has_writer:
        others = [(yield from _reword(item, library, question, "computed_paraphrase"))]
    else:
        others = _fill_templates(item, library, _synonym_of(library))
    texts = [library.documents[document].plain for document in {document for document, _ in item.made["tables"]}]
    found = [(one, _shared_word(one, texts)) for one in others]
    other = next((one for one, shared in found if not shared), None)
    if other is None:
        raise Dropped(f"its other wording has a word of its document, {found[0][1]!r}")
    return [replace(item, id=f"{item.id}{'' if wording == 'literal' else f'-{wording}'}", question=asked, tags={
        **item.tags, "wording": wording, "pair": item.id}) for wording, asked in (
            ("literal", question), ("paraphrased", other))]


def _synonym_of(library: Library) -> Callable[[str], str]:
    """Return a function that rewords a phrase as a whole, or each of its words. It raises Dropped if it cannot."""
    known = {" ".join(old.casefold().split()): new for old, new in library.options.synonyms.items()}

    def of_word(word: re.Match[str]) -> str:
        if (plain := word[0].casefold()) not in known and plain not in FUNCTION_WORDS:
            raise Dropped(f"options.synonyms has no other word for {word[0]!r}")
        return str(known.get(plain, word[0]))

    return lambda text: known.get(" ".join(text.casefold().split())) or _WORD.sub(of_word, text)


def _shared_word(question: str, texts: Sequence[str]) -> str | None:
    """Return a content word of the question that is in one of the texts, in any form or as a part of a word."""
    words = [word for word in map(str.casefold, _WORD.findall(question)) if word not in FUNCTION_WORDS]
    stems = content_words(question)
    return next((found for text in texts for found in (
        *(word for word in words if word in text.casefold()), *sorted(stems & all_words(text)))), None)


def _reword(item: Item, library: Library, question: str, prompt: str) -> Generator[Any, Any, str]:
    """Let the writer reword the question, and read it back. Raises Dropped if it then asks for something else."""
    worded, _ = yield from ask_structured(WRITER, "phrase", Rewording, prompt, {"question": question})
    drawn, tables = _load_plan(item, library)
    fields = sorted({name for table in tables for name in table.fields})
    names = sorted({*tables[0].entities, *drawn.entities})
    read, _ = yield from ask_structured(WRITER, "read back", ReadBack, "computed_read", {
        "question": worded.question, "fields": "\n".join(fields), "names": "\n".join(names)})
    for found, asked, ordered in ((read.fields, drawn.fields, drawn.operation == "join"),
                                  (read.names, drawn.entities, drawn.operation in ("difference", "ratio"))):
        ours, theirs = (list(dict.fromkeys(one.casefold() for one in each)) for each in (asked, found))
        if ours != theirs and (ordered or sorted(ours) != sorted(theirs)):
            raise Dropped("the reworded question reads back with other fields or names")
    if read.asked != (wanted := _PLAIN.get(drawn.operation, drawn.operation)):
        raise Dropped(f"the reworded question reads back as asking for the {read.asked}, not for the {wanted}")
    return worded.question


def add_distractors(item: Item, library: Library) -> Item:
    """Mix the tables with chunks that do not mention the subject, half of them from the same documents."""
    drawn, tables = _load_plan(item, library)
    rng, own = library.rng("company", item.tags.get("pair", item.id)), {table.document for table in tables}
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
    """Check that the edited tables of each world give the answers stored for that world."""
    drawn, tables = _load_plan(item, library)
    for name, world in _WORLDS.validate_python(item.made["worlds"]).items():
        if compute_answers(drawn, tables, world.edits) != world.answers:
            return f"its {name} world gives another answer"
    return None


def write(items: Sequence[Item], library: Library, folder: Path) -> None:
    """Write one record per item: its chunks and, for each edited version of the documents (a world), the contents that
    change."""
    write_lines(folder / "computed.jsonl", (_row(item, library) for item in items))


def _row(item: Item, library: Library) -> dict[str, Any]:
    drawn, tables = _load_plan(item, library)
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
                (Stage("plan", draw_question), Stage("wording", word_question, calls=4),
                 Stage("company", add_distractors)),
                (Stage("spans", filters.check_spans), Stage("self-contained", filters.check_self_contained),
                 Stage("worlds", check_worlds)),
                write, options=ComputedOptions, needs_writer=False, asks_solvers=False)
