"""MRCEval (2025), section 3.2 and appendices B and D: multiple-choice questions about a passage, by sub-task.

Items come from a benchmark's questions (`--from`), or a writer asks about passages of documents. The writer gives three
wrong options. With `distractors: rule` they are answers of earlier hops, or the rest of yes, no and maybe, and "None of
the above".

Three judges answer, and the paper keeps items on which at least one errs. That selects difficult items, but also items
with a wrong key. The selection is therefore a setting (`select`) and a tag of each item. Solvers with the evidence must
agree with the key, and the card shows the agreement for hard items and for all. Six more judges look for noise: if all
of them disagree with the key, it may be wrong.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field

from ragbed.documents.types import Chunk
from ragbed.experiments.formatting import estimate
from ragbed.experiments.guests.construct import filters
from ragbed.experiments.guests.construct.answer_matching import chosen_option
from ragbed.experiments.guests.construct.llm import JUDGE, LABELS, WRITER, ask_structured, in_parallel, solve
from ragbed.experiments.guests.construct.stages import Dropped, Kind, Library, Stage, StageRecipe
from ragbed.experiments.guests.datasets.mrceval import named_subtask
from ragbed.experiments.guests.review.items import Evidence, Item
from ragbed.experiments.metrics import estimate_share
from ragbed.experiments.metrics.matching import contains_answer
from ragbed.experiments.question import Question
from ragbed.experiments.running.gold import Places
from ragbed.experiments.runs.store import write_lines
from ragbed.strategies.normalizing import normalize_answer, normalize_values

if TYPE_CHECKING:
    from ragbed.experiments.guests.construct.stages import Outcome

Subtask = Literal["entity", "relation", "event", "counterfactual", "unanswerable", "inconsistent", "commonsense",
                  "world", "domain", "logical", "arithmetic", "multi-hop", "temporal"]
ASKS: Mapping[str, str] = {
    "entity": "asks for a person, a place or a thing that the text names",
    "relation": "asks how one person, place or thing of the text is related to another",
    "event": "asks who took part in an event of the text",
    "commonsense": "asks for the likely reason of something in the text, which common sense tells",
    "logical": "asks what follows from two statements of the text",
    "arithmetic": "asks for a number that is calculated from numbers of the text",
    "multi-hop": "takes two facts of the text, the second about what the first names",
    "temporal": "asks which of two events of the text came first"}
"""Instructions for the sub-tasks that suit any passage."""
NONE = "None of the above"
SELECTING, NOISE_JUDGES = 3, 6  # judges in the paper
_TRUTHS = ("yes", "no", "maybe")
_WRONG = 3  # wrong options per item


class MrcevalOptions(BaseModel):
    """Settings of the kind.

    Attributes:
        subtasks: sub-tasks to ask about documents. A benchmark's questions without a sub-task get the first.
        select: `hard` leaves out items that every judge answers correctly.
        most: maximum number of items per sub-task.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    subtasks: tuple[Subtask, ...] = ("entity", "relation", "event", "commonsense", "logical", "arithmetic", "multi-hop",
                                     "temporal")
    distractors: Literal["model", "rule"] = "model"
    select: Literal["hard", "all"] = "hard"
    most: int = Field(default=200, ge=1)


class AskedItem(BaseModel):
    """A question and its answer."""

    question: str = Field(min_length=8)
    answer: str = Field(min_length=1)


class Distractors(BaseModel):
    """Wrong options that the writer gives."""

    wrong_answers: list[str] = Field(min_length=3, max_length=3)


def instances(library: Library) -> Iterator[Item]:
    """Yield the answerable questions of a benchmark that come with passages, or each passage of the documents with each
    sub-task, in random order."""
    rng, subtasks = library.rng("instances"), library.options.subtasks
    if library.benchmark is not None:
        for question in rng.sample(library.benchmark.questions, len(library.benchmark.questions)):
            if question.answerable and question.answers and question.provided:
                named = question.tags.get("subtask", (named_subtask(library.benchmark.name) or subtasks[0],))
                yield _question_item(question, named[0], library)
        return
    chunks = rng.sample(library.chunks, len(library.chunks))
    for turn in range(len(subtasks)):
        for number, chunk in enumerate(chunks):
            subtask = subtasks[(turn + number) % len(subtasks)]
            yield Item(f"{subtask}-{turn * len(chunks) + number + 1:05}", chunks=(chunk,), evidence=(_span(chunk),),
                       tags={"subtask": subtask})


def _span(chunk: Chunk) -> Evidence:
    return Evidence(chunk.document, chunk.format, chunk.start, chunk.end, chunk.content.removeprefix(chunk.prefix))


def _question_item(question: Question, subtask: str, library: Library) -> Item:
    gold = Places(question.provided, lambda id: library.documents[id].source).gold(question.gold) or question.provided
    options = dict(question.options)
    return Item(question.id, question.text, (options[question.answers[0]],) if options else question.answers,
                evidence=tuple(map(_span, gold)), chunks=question.provided, options=tuple(options.values()),
                tags={"subtask": subtask}, made={"earlier": list(question.sub_answers[:-1])})


def write_question(item: Item, library: Library) -> StageRecipe:
    """Let the writer ask about the passage, unless the item has a question."""
    if item.question:
        return item
    subtask = item.tags["subtask"]
    if subtask not in ASKS:
        raise Dropped(f"{subtask} cannot be asked about documents")
    asked, _ = yield from ask_structured(WRITER, "question", AskedItem, "mrceval_question", {
        "passage": item.chunks[0].content, "asks": ASKS[subtask]})
    return replace(item, question=asked.question, answers=(asked.answer,))


def write_options(item: Item, library: Library) -> StageRecipe:
    """Shuffle the options. An item without options first gets three wrong ones."""
    texts = list(item.options)
    if not texts:
        by_rule = library.options.distractors == "rule"
        wrong = _options_by_rule(item) if by_rule else (yield from _options_by_model(item))
        texts = [item.answers[0], *wrong]
    if len(texts) != _WRONG + 1:
        raise Dropped(f"it has {len(texts)} options instead of four")
    library.rng("options", item.id).shuffle(texts)
    return replace(item, options=tuple(texts))


def _options_by_rule(item: Item) -> list[str]:
    key = item.answers[0]
    others = [one for one in _TRUTHS if one != key.lower()] if key.lower() in _TRUTHS else item.made.get("earlier", [])
    return [*[one for one in dict.fromkeys(others) if one != key][1 - _WRONG:], NONE]


def _options_by_model(item: Item) -> StageRecipe:
    reply, _ = yield from ask_structured(WRITER, "distractors", Distractors, "mrceval_distractors", {
        "passage": "\n\n".join(one.text for one in item.evidence), "question": item.question,
        "answer": item.answers[0]})
    return reply.wrong_answers


def check_distinct(item: Item, library: Library) -> str | None:
    """Check that all options differ in more than case, punctuation and the notation of numbers."""
    return None if len(set(map(normalize_values, item.options))) == len(item.options) else "two options are the same"


def check_key(item: Item, library: Library) -> str | None:
    """Check that the correct answer is exactly one of the options."""
    return None if item.options.count(item.answers[0]) == 1 else "the correct answer is not among the options"


def check_one_correct(item: Item, library: Library) -> str | None:
    """Check that no wrong option equals, contains or is part of an accepted answer, as `1990` is of `May 1990`."""
    forms = (normalize_answer, normalize_values)
    pairs = product([form(answer) for answer in item.answers for form in forms],
                    [form(option) for option in item.options if option != item.answers[0] for form in forms])
    return "two options are correct" if any(contains_answer(one, two) or contains_answer(two, one) for one,
                                            two in pairs) else None


def ask_judges(item: Item, library: Library) -> StageRecipe:
    """Let every judge answer. An item is hard if one of the first three errs. The others, or else the same three, look
    for noise. A reply that names no option does not count."""
    drafts = yield from in_parallel([solve(f"{JUDGE} {at + 1}", item, item.chunks) for at in range(library.judges)])
    votes = [chosen_option(item, draft) for draft in drafts]
    selecting, looking = ([vote in item.answers for vote in part if vote is not None]
                          for part in (votes[:SELECTING], votes[SELECTING:] or votes))
    if not selecting or not looking:
        return "no judge's reply names an option"
    noise = "all right" if all(looking) else "some wrong" if any(looking) else "all wrong"
    return replace(item, measured={**item.measured, "judges": sum(selecting) / len(selecting)},
                   tags={**item.tags, "selection": "easy" if all(selecting) else "hard", "noise": noise})


def check_unknown(item: Item, library: Library) -> StageRecipe:
    """Let solvers answer closed-book without the options, so that none is correct by guessing."""
    result = yield from filters.check_unknown(replace(item, options=()), library)
    return result if isinstance(result, str) else replace(result, options=item.options)


def check_selected(item: Item, library: Library) -> str | None:
    """Reject easy items if only hard ones are wanted."""
    hard = library.options.select == "all" or item.tags["selection"] == "hard"
    return None if hard else "every judge answers it correctly"


def notes(played: Sequence[Outcome], library: Library) -> list[str]:
    """Return how often solvers agree with the key, and notes if there were fewer judges than in the paper."""
    asked = [one for one in played if one.lost == "solvable" or "solved" in one.item.measured]
    hard = [one for one in asked if one.item.tags["selection"] == "hard"]
    shares = [estimate_share(sum(one.lost != "solvable" for one in part), len(part)) for part in (hard, asked)]
    rates = [f"{estimate(one['mean'], one['low'], one['high'])}, n {one['n']}" for one in shares]
    lines = [f"Solvers with the evidence agree with the key at a rate of {rates[0]} for hard items, and {rates[1]} "
             "for all."]
    if library.judges < SELECTING:
        lines.append(f"Selected by {library.judges} of the paper's {SELECTING} judges.")
    if (looking := library.judges - SELECTING) < NOISE_JUDGES:
        lines.append(f"Noise was judged by {looking if looking > 0 else library.judges} of the paper's {NOISE_JUDGES} "
                     f"judges{'' if looking > 0 else ', the selecting ones'}.")
    return lines


def write(items: Sequence[Item], library: Library, folder: Path) -> None:
    """Write one record per item."""
    write_lines(folder / "mrceval.jsonl", ({
        "id": item.id, "context": "\n\n".join(chunk.content for chunk in item.chunks), "question": item.question,
        "choices": list(item.options), "answer": LABELS[item.options.index(item.answers[0])],
        "subtask": item.tags["subtask"], "selection": item.tags["selection"]} for item in items))


MRCEVAL = Kind("mrceval", "MRCEval (2025), section 3.2 and appendices B and D", instances,
               (Stage("question", write_question, calls=2), Stage("options", write_options, calls=2)),
               (Stage("options differ", check_distinct), Stage("right answer", check_key),
                Stage("one right", check_one_correct),
                Stage("judges", ask_judges, calls=16), Stage("solvable", filters.check_solvable, calls=8),
                Stage("not known", check_unknown, calls=8), Stage("selection", check_selected)),
               write, quota=lambda item, library: (item.tags["subtask"], library.options.most), options=MrcevalOptions,
               asks_judges=True, notes=notes)
