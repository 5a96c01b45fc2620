"""Finished runs for timing: real HotpotQA questions and evidence, the strategies' own prompts, made-up replies.

Questions are repeated under ids of their own, and the sentences of a repeated passage are in another order, so that no
text of a repetition equals, or compresses into, that of another.
"""
from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ragbed.agents import Answer, CallOutcome, drive
from ragbed.documents import Chunk, Document, digest
from ragbed.experiments import Benchmark, Cell, Gold, Plan, Question, Record, RunFolder, RunSettings, Timing
from ragbed.experiments.benchmarks.fields import passage
from ragbed.experiments.benchmarks.hotpotqa import HotpotQa
from ragbed.experiments.judges import ask_judge, graded_of
from ragbed.experiments.metrics import scored_result
from ragbed.experiments.running.gold import match
from ragbed.experiments.running.identity import manifest_for
from ragbed.experiments.running.plan import Tasks
from ragbed.experiments.running.play import make_result
from ragbed.experiments.running.summary import summarise
from ragbed.strategies import CRESTS, REFUSAL, Failure, Generate, Reply, Usage

CONDITIONS = ["given", "gold", "closed-book"]
_RIGHT = {"given": 0.5, "gold": 0.7, "closed-book": 0.3}


def make_run(name: str, out: Path, data: Path, questions: int, seed: int) -> Path:
    """A finished run of five strategies under three conditions; its folder."""
    benchmark = _benchmark(data, questions)
    settings = RunSettings.model_validate({
        "name": name, "out": str(out), "models": ["http://127.0.0.1:9/v1#made-up"], "reasoning": list(CRESTS),
        "conditions": CONDITIONS, "benchmark": {"kind": "hotpotqa", "path": str(data)}})
    folder = RunFolder(settings.folder)
    plan = Plan.of(settings, benchmark)
    folder.begin(settings.resolved(), manifest_for(plan, {}), dict(enumerate(benchmark.questions)))
    asyncio.run(_fill(plan, folder, seed))
    folder.finish(summarise(plan, folder, 0))
    folder.close()
    return settings.folder


def _benchmark(data: Path, count: int) -> Benchmark:
    found = HotpotQa(path=str(data)).load()
    questions: list[Question] = []
    documents: dict[str, Document] = {}
    for number in range(count):
        lap, place = divmod(number, len(found.questions))
        question = found.questions[place]
        if lap:
            question, brought = _again(question, found, lap)
            documents.update(brought)
        questions.append(question)
    return replace(found, questions=tuple(questions), documents={**found.documents, **documents})


def _again(question: Question, found: Benchmark, lap: int) -> tuple[Question, dict[str, Document]]:
    """The question under another id, the sentences of its passages in another order."""
    rng = random.Random(f"{lap}:{question.id}")
    documents, given, gold = {}, [], []
    wanted = {item.chunk for item in question.gold}
    for chunk in question.given:
        sentences = chunk.content.split(". ")
        rng.shuffle(sentences)
        title = found.documents[chunk.document].title
        document, copied = passage(". ".join(sentences), f"{title} ({lap})")
        documents[document.id] = document
        given.append(copied)
        gold += [Gold(copied.document, chunk=copied.id)] * (chunk.id in wanted)
    return replace(question, id=f"{question.id}-{lap}", given=tuple(given), gold=tuple(gold)), documents


async def _fill(plan: Plan, folder: RunFolder, seed: int) -> None:
    """A record of every question in every cell, each question's committed at once."""
    for question in plan.benchmark.questions:
        adding = []
        for place, cell in enumerate(plan.cells):
            rng = random.Random(f"{seed}:{cell.id}:{question.id}")
            answer = _play(cell, plan.tasks(cell), question, rng)
            adding.append(folder.add(await _record(plan, cell, question, answer, folder), place))
        await asyncio.gather(*adding)


def _play(cell: Cell, tasks: Tasks, question: Question, rng: random.Random) -> Answer:
    chunks = _shown(cell, question)

    def reply(calls: Sequence[Generate]) -> list[CallOutcome]:
        return [CallOutcome(digest(call.purpose, question.id), _reply(call, cell, question, chunks, rng), 1)
                for call in calls]

    return drive(tasks.reasoning, tasks.whole(question), reply, lambda searches: [chunks] * len(searches))


def _shown(cell: Cell, question: Question) -> Sequence[Chunk]:
    gold = {item.chunk for item in question.gold}
    return {"given": question.given, "gold": [chunk for chunk in question.given if chunk.id in gold]}.get(
        cell.condition, [])


def _reply(call: Generate, cell: Cell, question: Question, chunks: Sequence[Chunk],
           rng: random.Random) -> Reply | Failure:
    usage = Usage(sum(len(message.content) for message in call.messages) // 4, 90, calls=1, price=0.0004)
    if rng.random() < 0.004:
        return Failure("http_500", "the server gave up")
    if call.purpose == "decompose":
        return Reply("1. Which of the two is older?\n2. Where was the older one made?", usage=usage)
    text = _answer(cell, question, chunks, rng)
    if "<Answer>" in call.messages[-1].content:
        text = f"<Thinking>{_thoughts(chunks, rng)}</Thinking>\n<Answer>{text}</Answer>"
    return Reply(text, usage=usage)


def _answer(cell: Cell, question: Question, chunks: Sequence[Chunk], rng: random.Random) -> str:
    if rng.random() < 0.06 and chunks:
        return REFUSAL
    right = rng.random() < _RIGHT[cell.condition]
    said = question.answers[0] if right else f"{rng.choice(question.text.split())} {rng.randrange(1900, 2020)}"
    gold = {item.chunk for item in question.gold}
    cited = [number for number, chunk in enumerate(chunks, 1) if rng.random() < (0.8 if chunk.id in gold else 0.1)]
    return f"{said} {''.join(f'[{number}]' for number in cited)}".strip()


def _thoughts(chunks: Sequence[Chunk], rng: random.Random) -> str:
    """Some of the evidence's own sentences, as long as reasoning is."""
    sentences = [f"{sentence.strip()} [{number}]." for number, chunk in enumerate(chunks, 1)
                 for sentence in chunk.content.split(". ") if sentence.strip()]
    return " ".join(rng.sample(sentences, min(4, len(sentences)))) or "Nothing is shown, so it comes from memory."


async def _record(plan: Plan, cell: Cell, question: Question, answer: Answer, folder: RunFolder) -> Record:
    settings, benchmark = plan.settings, plan.benchmark

    def source_of(document: str) -> str:
        return benchmark.documents[document].title

    view = match(question.gold, answer.evidence, source_of)
    result = make_result(cell, question, question.answerable, answer, view, source_of, folder.database)
    graded = graded_of(result, question, benchmark.scheme, settings.scoring)
    judged = await ask_judge(settings.judge, None, graded, float)
    result = result.model_copy(update={"verdict": judged.end})
    timing = Timing(seconds=1.5, attempts=1, replayed=0, paid=0.0004, finished="2026-11-20T00:00:00+00:00")
    return Record(result=scored_result(result, question, benchmark.scheme, settings.scoring, cell.rules,
                                       cell.separators, cell.searched), timing=timing)
