"""MRCEval (2025), section 3.2 and appendices B and D: multiple choice over a passage, in sub-tasks of reading.

Items are made of a benchmark's questions (`--from`), or a writer asks over passages of documents. Three wrong options
come from the writer, or by the paper's rules: the answers of earlier hops, the others of yes, no and maybe, and "None
of the above". Three judges answer, and the paper keeps what one of them errs on: that selects difficult items, and
wrong keys. So the selection is a factor here (`select`) and a tag of each item; solvers with the evidence alone have to
agree with the key, and the card has the rate at which they do, of hard items and of all. Six further judges look for
noise: what all of them answer otherwise than the key is suspect.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field

from ragbed.documents.types import Chunk
from ragbed.experiments.benchmarks.mrceval import named_subtask
from ragbed.experiments.formatting import estimate
from ragbed.experiments.guests.construct import filters
from ragbed.experiments.guests.construct.answer_matching import chosen_option
from ragbed.experiments.guests.construct.llm import JUDGE, LABELS, WRITER, ask_structured, in_parallel, solve
from ragbed.experiments.guests.construct.stages import Dropped, Kind, Library, Stage, StageRecipe
from ragbed.experiments.guests.review.items import Evidence, Item
from ragbed.experiments.metrics import estimate_share
from ragbed.experiments.metrics.matching import contains_answer
from ragbed.experiments.question import Question
from ragbed.experiments.running.gold import Places
from ragbed.experiments.runs.store import write_lines
from ragbed.strategies.normalising import normalize_answer, with_values

if TYPE_CHECKING:
    from ragbed.experiments.guests.construct.play import Outcome

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
"""What a writer is told of each sub-task that can be asked over any passage."""
NONE = "None of the above"
SELECTING, LOOKING = 3, 6  # judges, as in the paper
_TRUTHS = ("yes", "no", "maybe")
_WRONG = 3  # options of an item


class MrcevalOptions(BaseModel):
    """Settings of the kind."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    subtasks: tuple[Subtask, ...] = ("entity", "relation", "event", "commonsense", "logical", "arithmetic", "multi-hop",
                                     "temporal")
    """What is asked over documents; of a benchmark whose questions name no sub-task, the first is theirs."""
    distractors: Literal["model", "rule"] = "model"
    select: Literal["hard", "all"] = "hard"
    """Whether items are kept that every judge answers rightly."""
    most: int = Field(default=200, ge=1)
    """Items of a sub-task."""


class AskedItem(BaseModel):
    """A question that was written, with its answer."""

    question: str = Field(min_length=8)
    answer: str = Field(min_length=1)


class Distractors(BaseModel):
    """Wrong options that were written."""

    wrong_answers: list[str] = Field(min_length=3, max_length=3)


def instances(library: Library) -> Iterator[Item]:
    """Give the answerable questions of a benchmark that come with passages, or each passage of the documents with each
    sub-task, in random order."""
    rng, subtasks = library.rng("instances"), library.options.subtasks
    if library.benchmark is not None:
        for question in rng.sample(library.benchmark.questions, len(library.benchmark.questions)):
            if question.answerable and question.answers and question.provided:
                named = question.tags.get("subtask", (named_subtask(library.benchmark.name) or subtasks[0],))
                yield _of_question(question, named[0], library)
        return
    chunks = rng.sample(library.chunks, len(library.chunks))
    for turn in range(len(subtasks)):
        for number, chunk in enumerate(chunks):
            subtask = subtasks[(turn + number) % len(subtasks)]
            yield Item(f"{subtask}-{turn * len(chunks) + number + 1:05}", chunks=(chunk,), evidence=(_span(chunk),),
                       tags={"subtask": subtask})


def _span(chunk: Chunk) -> Evidence:
    return Evidence(chunk.document, chunk.format, chunk.start, chunk.end, chunk.content.removeprefix(chunk.prefix))


def _of_question(question: Question, subtask: str, library: Library) -> Item:
    gold = Places(question.provided, lambda id: library.documents[id].source).gold(question.gold) or question.provided
    options = dict(question.options)
    return Item(question.id, question.text, (options[question.answers[0]],) if options else question.answers,
                evidence=tuple(map(_span, gold)), chunks=question.provided, options=tuple(options.values()),
                tags={"subtask": subtask}, made={"earlier": list(question.sub_answers[:-1])})


def write_question(item: Item, library: Library) -> StageRecipe:
    """Have a question of the sub-task written over the passage, where there is none yet."""
    if item.question:
        return item
    subtask = item.tags["subtask"]
    if subtask not in ASKS:
        raise Dropped(f"{subtask} is not asked over documents")
    said, _ = yield from ask_structured(WRITER, "question", AskedItem, "mrceval_question", {
        "passage": item.chunks[0].content, "asks": ASKS[subtask]})
    return replace(item, question=said.question, answers=(said.answer,))


def write_options(item: Item, library: Library) -> StageRecipe:
    """Add three wrong options, where there are none yet, and shuffle."""
    texts = list(item.options)
    if not texts:
        wrong = _by_rule(item) if library.options.distractors == "rule" else (yield from _written(item))
        texts = [item.answers[0], *wrong]
    if len(texts) != _WRONG + 1:
        raise Dropped(f"it has {len(texts)} options in the place of four")
    library.rng("options", item.id).shuffle(texts)
    return replace(item, options=tuple(texts))


def _by_rule(item: Item) -> list[str]:
    key = item.answers[0]
    others = [one for one in _TRUTHS if one != key.lower()] if key.lower() in _TRUTHS else item.made.get("earlier", [])
    return [*[one for one in dict.fromkeys(others) if one != key][1 - _WRONG:], NONE]


def _written(item: Item) -> StageRecipe:
    said, _ = yield from ask_structured(WRITER, "distractors", Distractors, "mrceval_distractors", {
        "passage": "\n\n".join(one.text for one in item.evidence), "question": item.question,
        "answer": item.answers[0]})
    return said.wrong_answers


def check_distinct(item: Item, library: Library) -> str | None:
    """Check that all options differ once case, marks and the ways of writing a number are taken away."""
    return None if len(set(map(with_values, item.options))) == len(item.options) else "two options are the same"


def check_key(item: Item, library: Library) -> str | None:
    """Check that the right answer stands under a letter."""
    return None if item.options.count(item.answers[0]) == 1 else "the right answer stands under no letter"


def check_one_correct(item: Item, library: Library) -> str | None:
    """Check that no wrong option is an accepted answer, holds one, or is a part of one: `1990` where `May 1990` is
    right, or the other way round."""
    forms = (normalize_answer, with_values)
    pairs = product([form(answer) for answer in item.answers for form in forms],
                    [form(option) for option in item.options if option != item.answers[0] for form in forms])
    return "two options are right" if any(contains_answer(one, two) or contains_answer(two, one) for one,
                                          two in pairs) else None


def ask_judges(item: Item, library: Library) -> StageRecipe:
    """Have every judge answer. The first three select: an item is hard where at least one of them errs. The others look
    for noise, or these three where there are no others. A reply that names no option is no vote."""
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
    """Have solvers answer closed-book, and without the options, so that none is right by a guess."""
    came = yield from filters.check_unknown(replace(item, options=()), library)
    return came if isinstance(came, str) else replace(came, options=item.options)


def check_selected(item: Item, library: Library) -> str | None:
    """Let easy items go, where hard ones are wanted."""
    hard = library.options.select == "all" or item.tags["selection"] == "hard"
    return None if hard else "every judge answers it"


def notes(played: Sequence[Outcome], library: Library) -> list[str]:
    """Say how often solvers agree with the key, of hard items and of all; and how many judges there were."""
    asked = [one for one in played if one.lost == "solvable" or "solved" in one.item.measured]
    hard = [one for one in asked if one.item.tags["selection"] == "hard"]
    shares = [estimate_share(sum(one.lost != "solvable" for one in part), len(part)) for part in (hard, asked)]
    rates = [f"{estimate(one['mean'], one['low'], one['high'])}, n {one['n']}" for one in shares]
    said = [f"Solvers with the evidence alone agree with the key of hard items at a rate of {rates[0]}; of all, "
            f"{rates[1]}."]
    if library.judges < SELECTING:
        said.append(f"Selected by {library.judges} of the paper's {SELECTING} judges.")
    if (looking := library.judges - SELECTING) < LOOKING:
        said.append(f"Noise was looked for by {looking if looking > 0 else library.judges} of the paper's {LOOKING} "
                    f"judges{'' if looking > 0 else ', the selecting ones'}.")
    return said


def write(items: Sequence[Item], library: Library, folder: Path) -> None:
    """Write one record for each item."""
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
