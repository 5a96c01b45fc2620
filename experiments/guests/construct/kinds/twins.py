"""Twins of a benchmark's questions: question, answers and passages edited by one table, as MRKE (2024) edits passages.

Who knows the original by heart answers it and fails the twin; who reads answers both. The set has MRKE's format, with
`versions: both` a run asks originals and twins, and its view `gap` is the difference, question by question. Passages
that are not gold are edited too where they share a name.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ragbed.experiments.guests.construct import filters
from ragbed.experiments.guests.construct.kinds.mrke import changed, edited_item, no_original, notes, write
from ragbed.experiments.guests.construct.stages import Dropped, Kind, Library, Playing, Stage
from ragbed.experiments.guests.construct.text_edits import edited, names, stands
from ragbed.experiments.guests.review.items import Evidence, Item
from ragbed.experiments.running.gold import Places


def instances(library: Library) -> Iterator[Item]:
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


def edit(item: Item, library: Library) -> Playing:
    """Have a table written over the gold passages and the question, and apply it to all of the question."""
    gold, before = item.made["gold"], item
    text = "\n\n".join(item.chunks[place].content for place in gold)
    if not any(stands(answer, text) for answer in item.answers):
        raise Dropped("its answer stands in no gold passage, so that no edit changes it")
    text = f"{text}\n\n{item.question}"
    found = names(text, library)
    item = yield from edited_item(item, text, found, [one for one in item.answers if one not in found])
    table = item.made["table"]
    original = {"question": before.question, "answer": before.answers[0],
                **{name: before.made[name] for name in ("sub_questions", "sub_answers")}}
    return replace(
        item, question=edited(item.question, table), answers=tuple(edited(one, table) for one in item.answers),
        evidence=tuple(Evidence(one.document, one.format, one.start, one.end, one.content)
                       for one in (item.chunks[place] for place in gold)),
        made={**item.made, "original": original, **{name: [edited(one, table) for one in before.made[name]]
                                                    for name in ("sub_questions", "sub_answers")}})


TWINS = Kind("mrke", "MRKE (2024), section 3.1, over the questions of a benchmark", instances,
             (Stage("edit", edit, calls=2),),
             (Stage("no original name", no_original), Stage("original answer", changed),
              Stage("solvable", filters.solvable, calls=8), Stage("not known", filters.unknown, calls=8)),
             write, notes=notes)
