"""DetectiveQA (2024), sections 3.2 and 5.1, appendices A and C: questions about the reasoning in a long text.

Clues come early and conclusions late, as in a novel, an incident report or a court decision. A writer summarises the
text and names the paragraphs that are clues, section by section if its context is small. From these and the last
sections it extracts the reasoning towards each conclusion, and asks for the conclusion with four options. In the paper
people check the positions of clues and answers; here filters do.
"""
from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from re import compile as pattern
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from ragbed.documents.types import Chunk, Document
from ragbed.experiments.guests.construct import filters
from ragbed.experiments.guests.construct.answer_matching import is_correct
from ragbed.experiments.guests.construct.llm import LABELS, SOLVER, WRITER, ask_structured, in_parallel, solve
from ragbed.experiments.guests.construct.stages import (
    Dropped,
    Kind,
    Library,
    Stage,
    StageRecipe,
    number_lines,
    select_spans,
)
from ragbed.experiments.guests.review.items import Evidence, Item
from ragbed.experiments.metrics import contains_answer
from ragbed.strategies.normalizing import normalize_answer

INFERRED = -1  # paragraph number of a step that follows from other steps
_MIN_STEPS = 3


class DetectiveOptions(BaseModel):
    """Settings of the kind.

    Attributes:
        section: characters that the writer reads at once.
        ending: share of the text, counted from its end, that is searched for conclusions.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    section: int = Field(default=24_000, ge=500)
    ending: float = Field(default=0.25, gt=0, le=1)


class ReasoningStep(BaseModel):
    """A step of the reasoning, with the number of the paragraph that it is based on, or INFERRED."""

    paragraph: int = Field(ge=INFERRED)
    step: str = Field(min_length=1)


class Deduction(BaseModel):
    """A conclusion of the text, the number of the paragraph that states it, and the steps towards it."""

    conclusion: str = Field(min_length=1)
    paragraph: int
    steps: list[ReasoningStep] = Field(min_length=2, max_length=10)


class Deductions(BaseModel):
    """Conclusions of a section."""

    conclusions: list[Deduction] = Field(max_length=5)


class Choice(BaseModel):
    """A question, its answer, and three wrong answers."""

    question: str = Field(min_length=8)
    answer: str = Field(min_length=1)
    wrong: list[str] = Field(min_length=3, max_length=3)


CALLS = 240  # maximum calls for the notes of one text
_MAX_SECTIONS, _MAX_MERGES = CALLS // 4, 6
_MIN_PARAGRAPHS = 10  # so that clues and conclusion are apart
_BLOCK, _LINE = pattern(r"\S(?:.*\n(?!\s*\n))*.*\S|\S"), pattern(r"\S.*")
Paragraphs = Mapping[int, Evidence]  # paragraphs by number, from 1
SectionNotes = tuple[str, Paragraphs]


class Notes(BaseModel):
    """A writer's notes: a summary, and the numbers of the paragraphs that are clues."""

    summary: str
    clues: list[int] = Field(max_length=40)


@lru_cache(maxsize=64)
def split_paragraphs(document: Document) -> Paragraphs:
    """Return the paragraphs of a text by number. They are split at blank lines, or at every line if that gives fewer
    than ten."""
    blocks, lines = ({number: Evidence(document.id, "plain", *found.span(), found[0])
                      for number, found in enumerate(form.finditer(document.plain), 1)} for form in (_BLOCK, _LINE))
    return blocks if len(blocks) >= _MIN_PARAGRAPHS else lines


def split_sections(document: Document, size: int) -> list[Paragraphs]:
    """Group the paragraphs of a text into sections of at most `size` characters. A longer paragraph is its own section.
    Raises Dropped if the text has too few paragraphs, or too many sections."""
    texts = split_paragraphs(document)
    if len(texts) < _MIN_PARAGRAPHS:
        raise Dropped(f"it has fewer than {_MIN_PARAGRAPHS} paragraphs")
    made = [_join_notes(group)[1] for group in _pack([("", {number: one}) for number, one in texts.items()], size)]
    if len(made) > _MAX_SECTIONS:
        raise Dropped(f"it has more than {_MAX_SECTIONS} sections; set a larger options.section")
    return made


def take_notes(document: Document, size: int) -> StageRecipe:
    """Let a writer summarise each section and name its clues, then merge the notes until they are half a section long.

    Returns the summary, the clues, and how many sections were read, as in `34 of 35`. A section without a valid reply
    is left out. Raises Dropped if `split_sections` does, no section could be read, or the notes stay too long.
    """
    parts = split_sections(document, size)
    replies = yield from in_parallel([_read_section(part) for part in parts])
    notes = [one for one in replies if one is not None]
    if not notes:
        raise Dropped("no section could be read")
    read = f"{len(notes)} of {len(parts)}"
    for _ in range(_MAX_MERGES):
        if sum(map(_length, notes)) <= size // 2:
            return *_join_notes(notes), read
        notes = yield from in_parallel([_merge(group) for group in _pack(notes, size)])
    raise Dropped("the notes of its sections stay too long; set a larger options.section")


def _pack(notes: Sequence[SectionNotes], size: int) -> list[list[SectionNotes]]:
    groups: list[list[SectionNotes]] = []
    for one in notes:
        if groups and sum(map(_length, groups[-1])) + _length(one) <= size:
            groups[-1].append(one)
        else:
            groups.append([one])
    return groups


def _read_section(part: Paragraphs) -> Generator[Any, Any, SectionNotes | None]:
    try:
        return (yield from _ask_notes("notes", {"part": number_lines(part)}, part, 8))
    except Dropped:
        return None


def _merge(group: Sequence[SectionNotes]) -> Generator[Any, Any, SectionNotes]:
    summaries, clues = _join_notes(group)
    return (yield from _ask_notes("merge", {"summaries": summaries, "clues": number_lines(clues) or "(none)"}, clues,
                                  (len(clues) + 1) // 2))


def _ask_notes(name: str, given: Mapping[str, str], shown: Paragraphs, most: int) -> Generator[Any, Any, SectionNotes]:
    """Ask for a summary and at most `most` clues, leaving out numbers that were not shown."""
    notes, _ = yield from ask_structured(WRITER, name, Notes, f"detectiveqa_{name}", given,
                                         most=max(shown, default=None))
    clues = [number for number in dict.fromkeys(notes.clues) if number in shown][:most]
    return notes.summary, {number: shown[number] for number in sorted(clues)}


def _join_notes(notes: Sequence[SectionNotes]) -> SectionNotes:
    clues = {number: one for _, some in notes for number, one in some.items()}
    return "\n".join(summary for summary, _ in notes), clues


def _length(notes: SectionNotes) -> int:
    return len(notes[0]) + sum(len(one.text) for one in notes[1].values())


def instances(library: Library) -> Iterator[Item]:
    """Yield each text once."""
    ids = sorted(library.documents)
    library.rng("texts").shuffle(ids)
    for number, id in enumerate(ids, 1):
        yield Item(f"detectiveqa-{number:04}", made={"document": id, "about": library.documents[id].title})


def read_text(item: Item, library: Library) -> StageRecipe:
    """Read the whole text, section by section, and keep a summary and the clues."""
    summary, clues, read = yield from take_notes(library.documents[item.made["document"]], library.options.section)
    return replace(item, tags={"sections read": read}, made={**item.made, "summary": summary, "clues": sorted(clues)})


def extract_reasoning(item: Item, library: Library) -> StageRecipe:
    """Extract the conclusions of the last sections, with their steps. Each conclusion becomes an item."""
    document = library.documents[item.made["document"]]
    clues = {number: split_paragraphs(document)[number] for number in item.made["clues"]}
    last = [section for section in split_sections(document, library.options.section)
            if section[max(section)].end > len(document.plain) * (1 - library.options.ending)]
    found = yield from in_parallel([_deduce(item, clues, section) for section in last])
    deductions = [one for some in found for one in some]
    if not deductions:
        raise Dropped("no conclusion is found in its last part")
    return [replace(one, id=f"{item.id}-{number}") for number, one in enumerate(deductions, 1)]


def _deduce(item: Item, clues: Paragraphs, part: Paragraphs) -> Generator[Any, Any, list[Item]]:
    try:
        found, _ = yield from ask_structured(WRITER, "reasoning", Deductions, "detectiveqa_reasoning", {
            "summary": item.made["summary"], "clues": number_lines(clues) or "(none)", "part": number_lines(part)},
            most=max(part))
    except Dropped:
        return []
    return [replace(item, evidence=select_spans((step.paragraph for step in one.steps if step.paragraph != INFERRED),
                                                {**clues, **part}),
                    made={**item.made, "conclusion": one.conclusion, "steps": [step.step for step in one.steps],
                          "positions": [step.paragraph for step in one.steps],
                          "answer_position": one.paragraph if one.paragraph in part else 0})
            for one in found.conclusions]


def write_question(item: Item, library: Library) -> StageRecipe:
    """Ask for the conclusion, with four options in seeded order."""
    steps, conclusion = "\n".join(item.made["steps"]), item.made["conclusion"]
    made, _ = yield from ask_structured(WRITER, "question", Choice, "detectiveqa_question", {
        "summary": item.made["summary"], "conclusion": conclusion, "steps": steps})
    options = [made.answer, *made.wrong]
    library.rng("options", item.id).shuffle(options)
    return replace(item, question=made.question, answers=(made.answer,), options=tuple(options),
                   tags={**item.tags, "position": LABELS[options.index(made.answer)]},
                   made={name: value for name, value in item.made.items() if name not in ("summary", "clues")})


def check_complete(item: Item, library: Library) -> str | None:
    """Check that the reasoning has enough steps, and that every clue comes before the conclusion."""
    if len(item.made["steps"]) < _MIN_STEPS:
        return f"its reasoning has fewer than {_MIN_STEPS} steps"
    if not item.made["answer_position"]:
        return "the writer was not shown the paragraph of its conclusion"
    late = max(item.made["positions"]) >= item.made["answer_position"]
    return "a clue is in the paragraph of the conclusion, or after it" if late else None


def check_options(item: Item, library: Library) -> str | None:
    """Check that there are four different options, and that the question does not contain the key."""
    plain = [normalize_answer(option) for option in item.options]
    if len({*plain, ""}) <= len(plain):
        return "two options are the same"
    return "the question contains its answer" if contains_answer(normalize_answer(item.question), normalize_answer(
        item.answers[0])) else None


def check_not_known(item: Item, library: Library) -> Generator[Any, Any, Item | str]:
    """Let every solver answer from the text's title alone; at most half may be correct."""
    return (yield from _check_failure(item, library, [()], "known", "most solvers answer it from the title alone"))


def check_reasoned(item: Item, library: Library) -> Generator[Any, Any, Item | str]:
    """Let every solver answer from each paragraph of evidence alone. If most are right, no reasoning is needed."""
    views = [[chunk] for chunk in filters.evidence_chunks(item, library)]
    return (yield from _check_failure(item, library, views, "one_paragraph", "one paragraph is enough to answer it"))


def _check_failure(item: Item, library: Library, views: Sequence[Sequence[Chunk]], name: str,
                   lost: str) -> Generator[Any, Any, Item | str]:
    """Reject the item if more than half of the solvers are correct from any one view. A solver must be correct with the
    options in both orders, because a guessed letter rarely is."""
    asked = [(f"{SOLVER} {number}", one, view) for view in views for number in range(1, library.solvers + 1)
             for one in (item, replace(item, options=item.options[::-1]))]
    drafts = yield from in_parallel([solve(*one) for one in asked])
    correct = [is_correct(one, draft) for (_, one, _), draft in zip(asked, drafts, strict=True)]
    both = [first and second for first, second in zip(correct[::2], correct[1::2], strict=True)]
    rate = max(sum(both[at:at + library.solvers]) / library.solvers for at in range(0, len(both), library.solvers))
    return lost if rate * 2 > 1 else replace(item, measured={**item.measured, name: rate})


def write(items: Sequence[Item], library: Library, folder: Path) -> None:
    """Write the annotations, the texts with numbered paragraphs, and a table of titles."""
    records, titles = [], {}
    for number, id in enumerate(dict.fromkeys(item.made["document"] for item in items), 1):
        texts = split_paragraphs(library.documents[id])
        (folder / f"{number}.txt").write_text(f"{number_lines(texts)}\n", encoding="utf-8")
        titles[str(number)] = {"title": library.documents[id].title}
        questions = [{
            "question": item.question, "options": dict(zip(LABELS, item.options, strict=False)),
            "answer": item.tags["position"], "reasoning": item.made["steps"], "clue_position": item.made["positions"],
            "answer_position": item.made["answer_position"], "distraction": {}}
                     for item in items if item.made["document"] == id]
        records.append({"novel_id": number, "num_paragraphs": len(texts), "time_cost": None, "questions": questions})
    for name, content in {"annotations": records, "titles": titles}.items():
        (folder / f"{name}.json").write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8")


DETECTIVEQA = Kind("detectiveqa", "DetectiveQA (2024), sections 3.2 and 5.1, appendices A and C", instances,
                   (Stage("reading", read_text, calls=CALLS), Stage("reasoning", extract_reasoning, calls=CALLS // 2),
                    Stage("question", write_question, calls=2)),
                   (Stage("spans", filters.check_spans), Stage("complete", check_complete),
                    Stage("options", check_options),
                    Stage("self-contained", filters.check_self_contained),
                    Stage("solvable", filters.check_solvable, calls=8),
                    Stage("not known", check_not_known, calls=16), Stage("reasoned", check_reasoned, calls=160)),
                   write, max_items=40, options=DetectiveOptions)
