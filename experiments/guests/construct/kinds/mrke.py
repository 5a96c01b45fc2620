"""MRKE (2024), sections 3.1 and 3.2 and table 6: questions of two, three and four hops over edited facts.

A writer gives one table of old and new names, noun phrases and adjectives, and a program applies it through the whole
passage; the paper has a model rewrite and translate it there and back. Then it writes a question of each number of hops
with its sub-questions. The table taken back gives the original of each question, so that the two can be asked as a
pair. What the paper had people review are gates of their own here.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from ragbed.documents.types import Chunk
from ragbed.experiments.benchmarks.fields import REFERENCE, passage, with_references
from ragbed.experiments.guests.construct import filters, text_edits
from ragbed.experiments.guests.construct.answer_matching import is_correct
from ragbed.experiments.guests.construct.llm import SOLVER, WRITER, ask_structured, in_parallel, solve
from ragbed.experiments.guests.construct.stages import Dropped, Kind, Library, Stage, StageRecipe
from ragbed.experiments.guests.review.items import Evidence, Item
from ragbed.experiments.metrics.matching import contains_answer, tokens
from ragbed.experiments.running.gold import Places
from ragbed.experiments.runs.store import write_lines
from ragbed.strategies.normalising import normalize_answer

if TYPE_CHECKING:
    from ragbed.experiments.guests.construct.play import Outcome

Hops = Literal[2, 3, 4]
_OTHERS = 4  # noun phrases and adjectives of a table
_SHORTEST = 4  # characters of one, so that it is no article


class MrkeOptions(BaseModel):
    """Settings of the kind.

    Attributes:
        passages: consecutive chunks of a document that a passage is made of.
        hops: how many hops the questions over a passage have.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    passages: int = Field(default=2, ge=1)
    hops: tuple[Hops, ...] = (2, 3, 4)


class Replacement(BaseModel):
    """A noun phrase, an adjective or a figure, and what takes its place."""

    old: str
    new: str = Field(min_length=1)


class NewName(BaseModel):
    """What takes a name's place; small models copy the name where they do not say its kind first."""

    kind: str
    new: str = Field(min_length=1)


class ReplacementTable(BaseModel):
    """The writer's table; each text has a schema of its own, whose `names` has a field for every name in it."""

    names: BaseModel
    others: list[Replacement] = Field(max_length=_OTHERS)


class Hop(BaseModel):
    """A sub-question and its answer."""

    question: str = Field(min_length=8)
    answer: str = Field(min_length=1)


class Joined(BaseModel):
    """A question that asks what two ask, one after the other."""

    question: str = Field(min_length=8)


def instances(library: Library) -> Iterator[Item]:
    """Give the passages of all documents, each once in random order."""
    size = library.options.passages
    documents = [list(chunks) for _, chunks in groupby(library.chunks, lambda chunk: chunk.document)]
    passages = [tuple(chunks[at:at + size]) for chunks in documents for at in range(0, len(chunks), size)]
    for number, chunks in enumerate(library.rng("instances").sample(passages, len(passages)), 1):
        yield Item(f"mrke-{number:05}", chunks=chunks)


def edit_passage(item: Item, library: Library) -> StageRecipe:
    """Have a table written and apply it; the passage goes on once for each number of hops."""
    text = "\n\n".join(chunk.content for chunk in item.chunks)
    item = yield from edit_item(item, text, text_edits.find_names(text, library))
    return [replace(item, id=f"{item.id}-{hops}", tags={"hops": str(hops)}) for hops in library.options.hops]


def edit_item(item: Item, text: str, found: Sequence[str], further: Sequence[str] = ()) -> StageRecipe:
    """Have a table written for a text, of the names found in it and of what else is to be replaced, and return the item
    with all its passages edited by it."""
    wanted = [name for name in [*found, *further]
              if not any(text_edits.is_partial_name(name, other) for other in found)]
    fields: dict[str, Any] = {f"name{at}": (NewName, Field(alias=name)) for at, name in enumerate(wanted)}
    schema = create_model("TableOfText", __base__=ReplacementTable, names=(create_model("Names", **fields), ...))
    said, _ = yield from ask_structured(WRITER, "edit", schema, "mrke_edit",
                                    {"passage": text, "names": "\n".join(wanted) or "(none)"})
    pairs = {one.old: one.new for one in said.others if len(one.old) >= _SHORTEST}
    pairs |= {old: one["new"] for old, one in said.names.model_dump(by_alias=True).items()}
    table = {" ".join(old.split()): " ".join(new.split()) for old, new in pairs.items()
             if old.strip() and new.strip() and new.lower() != old.lower() and text_edits.contains(old, text)}
    contents = [chunk.content for chunk in item.chunks]
    if why := text_edits.find_problem(table, "\n".join([text, *contents])):
        raise Dropped(why)
    table = text_edits.add_partial_names(table, [*found, *further])
    made = [passage(text_edits.apply_edits(content, table)) for content in contents]
    return replace(item, documents=tuple(document for document, _ in made), chunks=tuple(chunk for _, chunk in made),
                   made={"document": item.document, "names": list(found), "table": table, "contents": contents})


def write_chain(item: Item, library: Library) -> StageRecipe:
    """Have a question written over the edited passage, and about each answer another, as many as there are hops; then
    have each joined to those before it. The evidence is the sentence of each hop."""
    hops = item.tags["hops"]
    first, turn = yield from ask_structured(WRITER, f"first of {hops}", Hop, "mrke_chain", {
        "passage": "\n\n".join(chunk.content for chunk in item.chunks), "hops": hops})
    steps, turns, question = [first], [turn], first.question
    while len(steps) < int(hops):
        last = steps[-1].answer
        step, turn = yield from ask_structured(WRITER, f"next of {hops}", Hop, "mrke_next", {"answer": last}, turns)
        steps, turns = [*steps, step], [*turns, turn]
        joined, _ = yield from ask_structured(WRITER, "join", Joined, "mrke_join", {
            "first": question, "second": step.question, "name": last})
        question = joined.question
    asked, answered = [one.question for one in steps], [one.answer for one in steps]
    back = text_edits.invert(item.made["table"])
    original = {"question": text_edits.apply_edits(question, back),
                "answer": text_edits.apply_edits(answered[-1], back),
                "sub_questions": [text_edits.apply_edits(one, back) for one in asked],
                "sub_answers": [text_edits.apply_edits(one, back) for one in answered]}
    found = [_sentence(with_references(one.question, answered), one.answer, item.chunks) for one in steps]
    return replace(item, question=question, answers=(answered[-1],), tags={**item.tags, "type": "bridge"},
                   evidence=tuple(dict.fromkeys(found)),
                   made={**item.made, "sub_questions": asked, "sub_answers": answered, "original": original})


def _sentence(question: str, answer: str, chunks: Sequence[Chunk]) -> Evidence:
    """The sentence that holds the answer, of several the one that shares most words with the question; an empty span
    where none does."""
    asked, wanted = set(tokens(question)), normalize_answer(answer)
    found = [Evidence(chunk.document, chunk.format, start, end, text) for chunk in chunks
             for start, end in text_edits.sentence_spans(chunk.content)
             if contains_answer(normalize_answer(text := chunk.content[start:end]), wanted)]
    return max(found, key=lambda one: len(asked & set(tokens(one.text))),
               default=Evidence(chunks[0].document, chunks[0].format, 0, 0, answer))


def check_sub_answers(item: Item, library: Library) -> str | None:
    """Check that every sub-answer stands in a sentence of the edited passage."""
    stand = all(one.start < one.end for one in item.evidence)
    return None if stand else "a sub-answer does not stand in the edited passage"


def check_chain(item: Item, library: Library) -> str | None:
    """Check that the chain leads to the answer, and that the question gives away none of it."""
    def says(text: str, answer: str) -> bool:  # also in `Quill's`
        return contains_answer(normalize_answer(text), normalize_answer(answer)) or text_edits.contains(answer, text)

    answers = item.made["sub_answers"]
    for place, text in enumerate(item.made["sub_questions"][1:], 1):
        named = any(int(one) <= place for one in REFERENCE.findall(text))
        if not named and not any(says(text, one) for one in answers[:place]):
            return "a later sub-question refers to no earlier answer"
    given = any(says(item.question, one) for one in answers)
    return "the question gives away a sub-answer" if given else None


def check_no_original_name(item: Item, library: Library) -> str | None:
    """Check that no original name survives in what was edited, nor in what is asked; of the table, names and figures:
    other words may be common ones."""
    originals = [one for one in (*item.made["names"], *item.made["table"]) if not one[0].islower()]
    texts = [item.question, *item.answers, *item.made["sub_questions"], *item.made["sub_answers"],
             *(chunk.content for chunk in supporting_chunks(item))]
    return "an original name survives" if text_edits.find_survivor(originals, texts) else None


def supporting_chunks(item: Item) -> list[Chunk]:
    """Return the passages that hold evidence."""
    held = {one.document for one in item.evidence}
    return [chunk for chunk in item.chunks if chunk.document in held]


def check_answer_changed(item: Item, library: Library) -> str | None:
    """Check that the original answer is wrong now."""
    before = normalize_answer(item.made["original"]["answer"])
    if any(contains_answer(normalize_answer(answer), before) for answer in item.answers):
        return "the original answer is right still"
    text = normalize_answer("\n".join(chunk.content for chunk in supporting_chunks(item)))
    return "the original answer still stands in the passage" if contains_answer(text, before) else None


def check_hops_needed(item: Item, library: Library) -> StageRecipe:
    """Have every solver answer from the passage without the sentence of one hop, for each hop; most must fail."""
    views = [[_without(chunk, one) for chunk in item.chunks] for one in item.evidence]
    drafts = yield from in_parallel([solve(f"{SOLVER} {number}", item, view)
                                  for view in views for number in range(1, library.solvers + 1)])
    for at in range(0, len(drafts), library.solvers):
        if sum(is_correct(item, draft) for draft in drafts[at:at + library.solvers]) * 2 > library.solvers:
            return "solvers reach its answer without the sentence of a hop"
    return None


def _without(chunk: Chunk, one: Evidence) -> Chunk:
    return passage(chunk.content[:one.start] + chunk.content[one.end:])[1] if chunk.document == one.document else chunk


def write(items: Sequence[Item], library: Library, folder: Path) -> None:
    """Write each edited question with its original."""
    write_lines(folder / "mrke.jsonl", map(_row, items))


def _row(item: Item) -> dict[str, Any]:
    held = supporting_chunks(item)
    facts = [place for place, chunk in enumerate(item.chunks) if chunk in held]
    return {"id": item.id, "context": [chunk.content for chunk in item.chunks], "question": item.question,
            "answer": item.answers[0], "sub_questions": item.made["sub_questions"],
            "sub_answers": item.made["sub_answers"], "hops": item.tags.get("hops"), "type": item.tags.get("type"),
            "supporting_facts": facts,
            "original": {"context": item.made["contents"], "supporting_facts": facts, **item.made["original"]}}


def notes(played: Sequence[Outcome], library: Library) -> list[str]:
    """Say how the originals are asked too."""
    return ["With --set benchmark.versions=both a run asks each question's original too, and its view `gap` is the "
            "difference between the two."]


MRKE = Kind("mrke", "MRKE (2024), sections 3.1 and 3.2 and table 6", instances,
            (Stage("edit", edit_passage, calls=2), Stage("chain", write_chain, calls=14)),
            (Stage("sub-answers", check_sub_answers), Stage("chain leads on", check_chain),
             Stage("no original name", check_no_original_name),
             Stage("original answer", check_answer_changed), Stage("self-contained", filters.check_self_contained),
             Stage("solvable", filters.check_solvable, calls=8), Stage("not known", filters.check_unknown, calls=8),
             Stage("each hop needed", check_hops_needed, calls=32)),
            write, max_items=3, options=MrkeOptions, notes=notes)


def twin_instances(library: Library) -> Iterator[Item]:
    """Give the answerable questions that have gold among what they are given, each once in random order."""
    questions = library.benchmark.questions if library.benchmark else ()
    for question in library.rng("instances").sample(questions, len(questions)):
        gold = Places(question.provided, lambda id: library.documents[id].source).gold(question.gold)
        if question.answerable and question.answers and gold:
            made = {"document": gold[0].document,
                    "gold": [place for place, chunk in enumerate(question.provided) if chunk in gold],
                    "sub_questions": list(question.sub_questions), "sub_answers": list(question.sub_answers)}
            tags = {name: question.tags[name][0] for name in ("hops", "type") if question.tags.get(name)}
            yield Item(question.id, question.text, question.answers, chunks=question.provided, made=made, tags=tags)


def edit_question(item: Item, library: Library) -> StageRecipe:
    """Have a table written over the gold passages and the question, and apply it to all of the question."""
    gold, before = item.made["gold"], item
    text = "\n\n".join(item.chunks[place].content for place in gold)
    if not any(text_edits.contains(answer, text) for answer in item.answers):
        raise Dropped("its answer stands in no gold passage, so that no edit changes it")
    text = f"{text}\n\n{item.question}"
    found = text_edits.find_names(text, library)
    item = yield from edit_item(item, text, found, [one for one in item.answers if one not in found])
    table = item.made["table"]
    original = {"question": before.question, "answer": before.answers[0],
                **{name: before.made[name] for name in ("sub_questions", "sub_answers")}}
    return replace(
        item, question=text_edits.apply_edits(item.question, table),
        answers=tuple(text_edits.apply_edits(one, table) for one in item.answers),
        evidence=tuple(Evidence(one.document, one.format, one.start, one.end, one.content)
                       for one in (item.chunks[place] for place in gold)),
        made={**item.made, "original": original,
              **{name: [text_edits.apply_edits(one, table) for one in before.made[name]]
                                                    for name in ("sub_questions", "sub_answers")}})


TWINS = Kind("mrke", "MRKE (2024), section 3.1, over the questions of a benchmark", twin_instances,
             (Stage("edit", edit_question, calls=2),),
             (Stage("no original name", check_no_original_name), Stage("original answer", check_answer_changed),
              Stage("solvable", filters.check_solvable, calls=8), Stage("not known", filters.check_unknown, calls=8)),
             write, notes=notes)
