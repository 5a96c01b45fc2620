"""MRKE (2024), sections 3.1 and 3.2 and table 6: questions of two, three and four hops over edited facts.

The writer gives one table of replacements for names, noun phrases and adjectives, and a program applies it to the whole
passage. (In the paper, a model rewrites the passage and translates it to another language and back.) The writer then
asks questions with each number of hops, with sub-questions. Undoing the replacements gives the original of each
question, so that a run can ask both. Filters check what people reviewed in the paper.

With `--from`, each question of a benchmark gets an edited twin instead: one table edits its question, answers and
passages. A model that answers from memory fails the twin; a model that reads the passages answers both. With `versions:
both` a run asks originals and twins, and its view `gap` shows the difference.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from ragbed.documents.types import Chunk
from ragbed.experiments.benchmarks.fields import REFERENCE, fill_references, passage
from ragbed.experiments.guests.construct import filters, text_edits
from ragbed.experiments.guests.construct.llm import WRITER, ask_structured
from ragbed.experiments.guests.construct.stages import Dropped, Kind, Library, Stage, StageRecipe
from ragbed.experiments.guests.review.items import Evidence, Item
from ragbed.experiments.metrics.matching import contains_answer, tokens
from ragbed.experiments.running.gold import Places
from ragbed.experiments.runs.store import write_lines
from ragbed.strategies.normalizing import normalize_answer

if TYPE_CHECKING:
    from ragbed.experiments.guests.construct.stages import Outcome

Hops = Literal[2, 3, 4]
_MAX_OTHERS = 4  # noun phrases and adjectives in a table
_MIN_LENGTH = 4  # shorter phrases may be articles


class MrkeOptions(BaseModel):
    """Settings of the kind.

    Attributes:
        passages: consecutive chunks of a document in one passage.
        hops: numbers of hops to ask about each passage.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    passages: int = Field(default=2, ge=1)
    hops: tuple[Hops, ...] = (2, 3, 4)


class Replacement(BaseModel):
    """A noun phrase, an adjective or a figure, and its replacement."""

    old: str
    new: str = Field(min_length=1)


class NewName(BaseModel):
    """A name's replacement. Small models copy the name unless they first state its kind."""

    kind: str
    new: str = Field(min_length=1)


class ReplacementTable(BaseModel):
    """The writer's table. The schema of each text has a field in `names` for every name in the text."""

    names: BaseModel
    others: list[Replacement] = Field(max_length=_MAX_OTHERS)


class Hop(BaseModel):
    """A sub-question and its answer."""

    question: str = Field(min_length=8)
    answer: str = Field(min_length=1)


class JoinedQuestion(BaseModel):
    """One question that replaces two consecutive ones."""

    question: str = Field(min_length=8)


def instances(library: Library) -> Iterator[Item]:
    """Yield the passages of all documents, each once, in random order."""
    size = library.options.passages
    documents = [list(chunks) for _, chunks in groupby(library.chunks, lambda chunk: chunk.document)]
    passages = [tuple(chunks[at:at + size]) for chunks in documents for at in range(0, len(chunks), size)]
    for number, chunks in enumerate(library.rng("instances").sample(passages, len(passages)), 1):
        yield Item(f"mrke-{number:05}", chunks=chunks)


def edit_passage(item: Item, library: Library) -> StageRecipe:
    """Ask for a replacement table and apply it. Return one item per number of hops."""
    text = "\n\n".join(chunk.content for chunk in item.chunks)
    item = yield from edit_item(item, text, text_edits.find_names(text, library))
    return [replace(item, id=f"{item.id}-{hops}", tags={"hops": str(hops)}) for hops in library.options.hops]


def edit_item(item: Item, text: str, found: Sequence[str], further: Sequence[str] = ()) -> StageRecipe:
    """Ask for replacements of names in a text (`found`) and of `further` phrases, and apply them to the passages."""
    wanted = [name for name in [*found, *further]
              if not any(text_edits.is_partial_name(name, other) for other in found)]
    fields: dict[str, Any] = {f"name{at}": (NewName, Field(alias=name)) for at, name in enumerate(wanted)}
    schema = create_model("TableOfText", __base__=ReplacementTable, names=(create_model("Names", **fields), ...))
    reply, _ = yield from ask_structured(WRITER, "edit", schema, "mrke_edit",
                                         {"passage": text, "names": "\n".join(wanted) or "(none)"})
    pairs = {one.old: one.new for one in reply.others if len(one.old) >= _MIN_LENGTH}
    pairs |= {old: one["new"] for old, one in reply.names.model_dump(by_alias=True).items()}
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
    """Ask a question about the edited passage, then one about each answer until there are enough hops, and join them
    into one question. The evidence is the sentence of each hop."""
    hops = item.tags["hops"]
    first, turn = yield from ask_structured(WRITER, f"first of {hops}", Hop, "mrke_chain", {
        "passage": "\n\n".join(chunk.content for chunk in item.chunks), "hops": hops})
    steps, turns, question = [first], [turn], first.question
    while len(steps) < int(hops):
        last = steps[-1].answer
        step, turn = yield from ask_structured(WRITER, f"next of {hops}", Hop, "mrke_next", {"answer": last}, turns)
        steps, turns = [*steps, step], [*turns, turn]
        joined, _ = yield from ask_structured(WRITER, "join", JoinedQuestion, "mrke_join", {
            "first": question, "second": step.question, "name": last})
        question = joined.question
    asked, answered = [one.question for one in steps], [one.answer for one in steps]
    back = text_edits.invert(item.made["table"])
    original = {"question": text_edits.apply_edits(question, back),
                "answer": text_edits.apply_edits(answered[-1], back),
                "sub_questions": [text_edits.apply_edits(one, back) for one in asked],
                "sub_answers": [text_edits.apply_edits(one, back) for one in answered]}
    found = [_find_sentence(fill_references(one.question, answered), one.answer, item.chunks) for one in steps]
    return replace(item, question=question, answers=(answered[-1],), tags={**item.tags, "type": "bridge"},
                   evidence=tuple(dict.fromkeys(found)),
                   made={**item.made, "sub_questions": asked, "sub_answers": answered, "original": original})


def _find_sentence(question: str, answer: str, chunks: Sequence[Chunk]) -> Evidence:
    """Return the sentence with the answer that shares most words with the question, or an empty span."""
    asked, wanted = set(tokens(question)), normalize_answer(answer)
    found = [Evidence(chunk.document, chunk.format, start, end, text) for chunk in chunks
             for start, end in text_edits.sentence_spans(chunk.content)
             if contains_answer(normalize_answer(text := chunk.content[start:end]), wanted)]
    return max(found, key=lambda one: len(asked & set(tokens(one.text))),
               default=Evidence(chunks[0].document, chunks[0].format, 0, 0, answer))


def check_sub_answers(item: Item, library: Library) -> str | None:
    """Check that every sub-answer is in a sentence of the edited passage."""
    found = all(one.start < one.end for one in item.evidence)
    return None if found else "a sub-answer is not in the edited passage"


def check_chain(item: Item, library: Library) -> str | None:
    """Check that each sub-question refers to an earlier answer, and that the question does not reveal one."""
    def says(text: str, answer: str) -> bool:  # finds `Quill` in `Quill's` too
        return contains_answer(normalize_answer(text), normalize_answer(answer)) or text_edits.contains(answer, text)

    answers = item.made["sub_answers"]
    for place, text in enumerate(item.made["sub_questions"][1:], 1):
        named = any(int(one) <= place for one in REFERENCE.findall(text))
        if not named and not any(says(text, one) for one in answers[:place]):
            return "a later sub-question does not refer to an earlier answer"
    given = any(says(item.question, one) for one in answers)
    return "the question gives away a sub-answer" if given else None


def check_no_original_name(item: Item, library: Library) -> str | None:
    """Check that no original name or figure is left in the edited passages, the question or the answers. Other words of
    the table are not checked, because they may be common ones."""
    originals = [one for one in (*item.made["names"], *item.made["table"]) if not one[0].islower()]
    texts = [item.question, *item.answers, *item.made["sub_questions"], *item.made["sub_answers"],
             *(chunk.content for chunk in supporting_chunks(item))]
    return "an original name survives" if text_edits.find_survivor(originals, texts) else None


def supporting_chunks(item: Item) -> list[Chunk]:
    """Return the passages that contain evidence."""
    held = {one.document for one in item.evidence}
    return [chunk for chunk in item.chunks if chunk.document in held]


def check_answer_changed(item: Item, library: Library) -> str | None:
    """Check that the original answer is neither accepted nor in the edited passages."""
    before = normalize_answer(item.made["original"]["answer"])
    if any(contains_answer(normalize_answer(answer), before) for answer in item.answers):
        return "the original answer is still correct"
    text = normalize_answer("\n".join(chunk.content for chunk in supporting_chunks(item)))
    return "the original answer is still in the passage" if contains_answer(text, before) else None


def check_hops_needed(item: Item, library: Library) -> StageRecipe:
    """For each hop, let every solver answer from the passage without its sentence. At most half may be correct."""
    views = [[_remove_sentence(chunk, one) for chunk in item.chunks] for one in item.evidence]
    rates = yield from filters.success_rates(item, library, views)
    return "most solvers answer it without the sentence of one hop" if any(rate * 2 > 1 for rate in rates) else None


def _remove_sentence(chunk: Chunk, one: Evidence) -> Chunk:
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
    """Return a note on how a run can ask the originals too."""
    return ["With --set benchmark.versions=both a run asks each question's original too, and its view `gap` "
            "shows the difference."]


MRKE = Kind("mrke", "MRKE (2024), sections 3.1 and 3.2 and table 6", instances,
            (Stage("edit", edit_passage, calls=2), Stage("chain", write_chain, calls=14)),
            (Stage("sub-answers", check_sub_answers), Stage("linked chain", check_chain),
             Stage("no original name", check_no_original_name),
             Stage("original answer", check_answer_changed), Stage("self-contained", filters.check_self_contained),
             Stage("solvable", filters.check_solvable, calls=8), Stage("not known", filters.check_unknown, calls=8),
             Stage("each hop needed", check_hops_needed, calls=32)),
            write, max_items=3, options=MrkeOptions, notes=notes)


def twin_instances(library: Library) -> Iterator[Item]:
    """Yield the answerable questions that have gold among their passages, each once, in random order."""
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
    """Ask for a table for the gold passages and the question, and apply it to question, answers and passages."""
    gold, before = item.made["gold"], item
    text = "\n\n".join(item.chunks[place].content for place in gold)
    if not any(text_edits.contains(answer, text) for answer in item.answers):
        raise Dropped("its answer is not in a gold passage, so no edit changes it")
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
