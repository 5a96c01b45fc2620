"""MDBench (2025): questions across documents that are made from the rows of a table.

The writer summarises a table of 5 to 17 rows and 3 to 9 columns, and asks a question across its rows. It then plans
edits that make the question harder, with more hops, numbers, dates or several rows. A program applies the edits. The
writer reviews the edited table with its question and answer, and writes a document for each row with all of its values.

Solvers answer from the original table with the plan, from the edited table, and from the documents. In the paper all
three answers agree for 32 % of the items.
"""
from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from ragbed.documents.types import Chunk, Document, digest
from ragbed.experiments.guests.construct import filters
from ragbed.experiments.guests.construct.answer_matching import is_correct
from ragbed.experiments.guests.construct.kinds.table_edits import (
    Grid,
    TableEdit,
    apply_plan,
    describe_plan,
    make_grid,
    missing_values,
    reveals_hidden,
)
from ragbed.experiments.guests.construct.llm import WRITER, ask_structured, in_parallel
from ragbed.experiments.guests.construct.stages import Dropped, Kind, Library, Stage, StageRecipe
from ragbed.experiments.guests.formats.document_tables import find_tables
from ragbed.experiments.guests.review.items import Evidence, Item
from ragbed.experiments.metrics.matching import contains_answer
from ragbed.experiments.runs.store import write_lines
from ragbed.strategies.normalizing import normalize_answer
from ragbed.strategies.reading import strip_citations

_MIN_VALIDITY, _MIN_CLARITY = 4, 4  # of 5
_VIEWS = {"original": "the original table and the plan", "edited": "the edited table", "documents": "the documents"}
Rating = Field(ge=1, le=5)


class MdbenchOptions(BaseModel):
    """Settings of the kind: minimum and maximum number of rows and columns of a table."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rows: tuple[int, int] = (5, 17)
    columns: tuple[int, int] = (3, 9)


class FirstQuestion(BaseModel):
    """The reply of the first turn. `rows` lists the rows that the answer needs, counted from 1."""

    summary: str = Field(min_length=8)
    rows: list[int] = Field(min_length=2)
    question: str = Field(min_length=8)
    answer: str = Field(min_length=1)


class EditPlan(BaseModel):
    """The reply of the second turn: edits, then question and answer. `plan_question` adds the table's columns."""

    edits: list[TableEdit] = Field(min_length=1, max_length=5)
    question: str = Field(min_length=8)
    answer: str = Field(min_length=1)


class Assessment(BaseModel):
    """The review of an edited table with its question and answer. Each skill is rated by its difficulty."""

    answerable: bool
    answers: list[str]
    clarity: int = Rating
    multi_hop: int = Rating
    temporal: int = Rating
    numeric: int = Rating
    information_aggregation: int = Rating
    soft_reasoning: int = Rating
    validity: int = Rating


class RowText(BaseModel):
    """The reply with the document for one row."""

    document: str = Field(min_length=20)


def instances(library: Library) -> Iterator[Item]:
    """Yield tables of suitable size, each once, in random order."""
    (fewest, most), (narrowest, widest) = library.options.rows, library.options.columns
    found = [(table, grid) for document in library.documents.values() for table in find_tables(document)
             if (grid := make_grid(table)) and fewest <= len(grid.rows) <= most
             and narrowest <= len(grid.header) <= widest]
    library.rng("tables").shuffle(found)
    for number, (table, grid) in enumerate(found, 1):
        document = library.documents[table.document]
        title = document.title.removesuffix(PurePath(document.source).suffix)  # the title may be the file name
        about = " ".join(dict.fromkeys(filter(None, (title, table.caption))))
        yield Item(f"mdbench-{number:05}", made={
            "about": about, "document": table.document, "original": grid.model_dump(mode="json")})


def plan_question(item: Item, library: Library) -> StageRecipe:
    """Let the writer summarise the table, ask a question across its rows, and plan edits. Then apply the edits."""
    grid = _load_grid(item, "original")
    shown = {"about": item.made["about"], "table": grid.pipes()}
    first, turn = yield from ask_structured(WRITER, "question", FirstQuestion, "mdbench_question", shown,
                                            most=len(grid.rows))
    columns: Any = Literal[grid.header]
    edit = create_model("EditOfTable", __base__=TableEdit, column=(columns, ...))
    schema = create_model("PlanOfTable", __base__=EditPlan, edits=(list[edit], Field(min_length=1, max_length=5)))
    plan, _ = yield from ask_structured(WRITER, "plan", schema, "mdbench_plan", {"columns": ", ".join(grid.header)},
                                        [turn],
                                        most=len(grid.rows))
    edited = apply_plan(grid, plan.edits)
    made = {"summary": first.summary, "first": first.question, "edits": [one.model_dump() for one in plan.edits],
            "plan": describe_plan(plan.edits, edited), "edited": edited.model_dump(mode="json")}
    return replace(item, question=plan.question, answers=(plan.answer,), made={**item.made, **made})


def review_table(item: Item, library: Library) -> StageRecipe:
    """Let the writer review the edited table, its question and its answer."""
    assessment, _ = yield from ask_structured(WRITER, "review", Assessment, "mdbench_review", {
        "about": item.made["about"], "table": _load_grid(item, "edited").pipes(), "question": item.question,
        "answer": item.answers[0]})
    if why := find_objection(assessment, item.answers[0]):
        raise Dropped(why)
    rated = assessment.model_dump(exclude={"answerable", "answers"})
    return replace(item, answers=tuple(dict.fromkeys((*item.answers, *filter(None, assessment.answers)))),
                   made={**item.made, "review": rated})


def find_objection(review: Assessment, key: str) -> str | None:
    """Return why a review rejects an item with this key, or None."""
    if not review.answerable:
        return "the reviewer finds no answer in the edited table"
    known, accepted = normalize_answer(key), [normalize_answer(one) for one in review.answers]
    if accepted and not any(contains_answer(one, known) or contains_answer(known, one) for one in accepted):
        return "the reviewer accepts another answer"
    if review.clarity < _MIN_CLARITY:
        return "the reviewer finds more than one answer"
    return "the reviewer's validity is below 4" if review.validity < _MIN_VALIDITY else None


def write_documents(item: Item, library: Library) -> StageRecipe:
    """Write a document for each row, and rewrite one that lacks a value."""
    grid = _load_grid(item, "edited")
    texts = yield from in_parallel([_write_document(item, grid, row) for row in range(len(grid.rows))])
    made = tuple(_make_document(item, f"{number:02}", text) for number, text in enumerate(texts, 1))
    return replace(item, documents=made, chunks=tuple(map(_whole_chunk, made)),
                   evidence=tuple(Evidence(one.id, "plain", 0, len(one.plain), one.plain) for one in made))


def _write_document(item: Item, grid: Grid, row: int) -> Generator[Any, Any, str]:
    values = "\n".join(f"{column}: {value}" for column, value in zip(grid.header, grid.rows[row], strict=True) if value)
    reply, turn = yield from ask_structured(WRITER, f"document {row + 1}", RowText, "mdbench_document", {
        "about": item.made["about"], "values": values})
    if missing := missing_values(grid, row, reply.document):
        reply, _ = yield from ask_structured(WRITER, f"document {row + 1}, completed", RowText, "mdbench_missing", {
            "missing": "\n".join(missing)}, [turn])
    return " ".join(reply.document.split())  # one line, since "Document 2: " at a line's start is a new document


def check_facts(item: Item, library: Library) -> str | None:
    """Check that each row's document has all values of the row, and none that the plan hides."""
    grid = _load_grid(item, "edited")
    texts = [one.plain for one in item.documents]
    if any(missing_values(grid, row, text) for row, text in enumerate(texts)):
        return "a row's document lacks one of its values"
    revealed = any(reveals_hidden(grid, row, text) for row, text in enumerate(texts))
    return "a row's document reveals what the plan hides" if revealed else None


def check_oracles(item: Item, library: Library) -> StageRecipe:
    """Let every solver answer from three forms of the same facts. More than half must be correct with each."""
    original, edited = _load_grid(item, "original").pipes(), _load_grid(item, "edited").pipes()
    about = item.made["about"]
    views = [[_whole_chunk(_make_document(item, "original", f"{about}\n{original}\n\nEdits:\n{item.made['plan']}"))],
             [_whole_chunk(_make_document(item, "edited", f"{about}\n{edited}"))], item.chunks]
    groups = yield from filters.ask_solvers(item, library, views, "chain_of_thought")
    rates = {name: sum(is_correct(item, draft) for draft in group) / len(group)
             for name, group in zip(_VIEWS, groups, strict=True)}
    wrong = [_VIEWS[name] for name, rate in rates.items() if rate * 2 <= 1]
    if not wrong:
        return replace(item, measured={**item.measured, **rates})
    other = replace(item, answers=(strip_citations(groups[0][0].text),))
    if len(wrong) == len(_VIEWS) and all(is_correct(other, group[0]) for group in groups):
        return "solvers agree on a different answer than the key"
    return f"solvers disagree with the key from {' and from '.join(wrong)}"


def _load_grid(item: Item, name: str) -> Grid:
    return Grid.model_validate(item.made[name])


def _make_document(item: Item, name: str, text: str) -> Document:
    source = f"{item.id}/{name}.txt"
    return Document(digest(source), source, item.made["about"], "", text)


def _whole_chunk(document: Document) -> Chunk:
    return Chunk.of(document, "plain", 0, len(document.plain))


def write(items: Sequence[Item], library: Library, folder: Path) -> None:
    """Write the items in the published format, with the validity rating that its raw files have."""
    write_lines(folder / "mdbench.jsonl", map(_row, items))


def _row(item: Item) -> dict[str, object]:
    skills = {"multi-hop": "multi_hop", **{name: name for name in (
        "temporal", "numeric", "information_aggregation", "soft_reasoning")}}
    return {"example_id": item.id, "question": item.question, "ground_truth": item.answers[0],
            "documents": "\n\n".join(f"Document {number}: {one.plain}" for number, one in enumerate(item.documents, 1)),
            "table": _load_grid(item, "edited").pipes() + "\n",
            "characteristic_breakdown": {name: item.made["review"][field] for name, field in skills.items()},
            "validity_scalar": item.made["review"]["validity"]}


MDBENCH = Kind("mdbench", "MDBench (2025), section 3", instances,
               (Stage("question and plan", plan_question, calls=4), Stage("review", review_table, calls=2),
                Stage("documents", write_documents, calls=80)),
               (Stage("spans", filters.check_spans), Stage("facts", check_facts),
                Stage("self-contained", filters.check_self_contained),
                Stage("oracles", check_oracles, calls=24), Stage("not known", filters.check_unknown, calls=8)),
               write, options=MdbenchOptions)
