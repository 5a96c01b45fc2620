"""Mine hard negatives for a benchmark, and write it as a benchmark that loads like any other."""
from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from statistics import fmean
from sys import maxsize
from typing import Any

from pydantic_core import to_json

from ragbed.agents.model_settings import ModelSettings
from ragbed.agents.models import open_reranker_deps
from ragbed.agents.relevance_judge import judge_notes
from ragbed.documents.errors import BenchmarkError, SettingsError
from ragbed.documents.types import Chunk, Document
from ragbed.experiments.benchmarks import Selection
from ragbed.experiments.guests.hard_negatives.benchmark import DECISIONS, MinedManifest, benchmark_lines
from ragbed.experiments.guests.hard_negatives.guard import REASONS, RareWords, has_answer_to_find
from ragbed.experiments.guests.hard_negatives.miners import Nearness, Rows, check_miners, open_miner
from ragbed.experiments.guests.hard_negatives.negative_search import NegativeSearch
from ragbed.experiments.guests.hard_negatives.selection import (
    Candidates,
    MiningResult,
    MiningSettings,
    MiningTask,
    add_negatives,
    best_rank,
    plan_tasks,
    rate_hardness,
    to_hardness,
)
from ragbed.experiments.guests.learned_retrievers.late_interaction import LateInteraction
from ragbed.experiments.question import Benchmark, Bucket, Mined
from ragbed.retrieval.embedders import Sentence
from ragbed.retrieval.embedders.opening import open_embedder
from ragbed.retrieval.embedders.prefixes import settings_of
from ragbed.retrieval.index import Index
from ragbed.retrieval.pool import Pool
from ragbed.retrieval.rerankers.reranker import JudgeReranker, Reranker, judges_of
from ragbed.retrieval.storage.cache import CachedEmbedder
from ragbed.retrieval.storage.folder import exclusive, replacing
from ragbed.retrieval.storage.manifest import write_manifest
from ragbed.retrieval.types import DECIMALS, Collection, Embedder, Progress, RerankerDeps

_BUCKETS: tuple[Bucket, ...] = ("hard", "medium", "easy")
BANDS: Mapping[str, range] = {"1-5": range(1, 6), "6-10": range(6, 11), "11-20": range(11, 21),
                              "later": range(21, maxsize)}
"""Bands of ranks. The first candidates are the nearest, and most often answer the question."""
NOBODY = "left out"  # used instead of a miner's name for chunks excluded before mining


def count_outcomes(tasks: Sequence[MiningTask], results: Sequence[MiningResult], mined: Sequence[Mapping[str, Mined]],
                   rejected_near: Sequence[float], checked: Mapping[str, int] | None = None) -> dict[str, Any]:
    """Count kept and rejected candidates for the manifest and the terminal. A candidate that several miners found
    counts once in `candidates`, and under each of them in `miners`. `rejected_near` is the hardness of each candidate
    that the guard rejected. `checked` is the number of questions by what the guard could compare."""
    by_miner: dict[str, Counter[str]] = defaultdict(Counter)
    for one in results:
        for rejected in one.rejected:
            for miner in [each.miner for each in rejected.found] or [NOBODY]:
                by_miner[miner][rejected.reason] += 1
        for each in chain.from_iterable(one.found.values()):
            by_miner[each.miner]["kept"] += 1
    reasons = Counter(rejected.reason for one in results for rejected in one.rejected)
    kept = sum(len(one.chunks) for one in results)
    every = [each for one in mined for each in one.values()]
    hardness = {bucket: [one.hardness for one in every if one.bucket == bucket] for bucket in _BUCKETS}
    return {"questions": len(tasks), "wanted": sum(one.total for one in tasks), "kept": kept,
            "filled_up_with": sum(one.fill for one in results),
            "candidates": {"kept": kept, **{reason: reasons[reason] for reason in REASONS}},
            "miners": {name: dict(counts) for name, counts in by_miner.items()},
            "hardness": {bucket: {"n": len(values), "least": min(values), "mean": round(sum(values) / len(values), 6),
                                  "greatest": max(values)} for bucket, values in hardness.items() if values},
            "guard": {"ranks": _counts_by_rank(results),
                      "checked": dict(checked or {}),
                      "hardness": {"kept": _mean([one.hardness for one in every]), "rejected": _mean(rejected_near)}},
            "short": sum(one.why_short is not None for one in results)}


def _counts_by_rank(results: Sequence[MiningResult]) -> dict[str, dict[str, int]]:
    """Count kept candidates, and those that the guard rejected, once each, by their best rank with any miner."""
    kept = [best_rank(found) for one in results for found in one.found.values()]
    rejected = [best_rank(each.found) for one in results for each in one.rejected if each.by_guard]
    return {name: {what: sum(rank is not None and rank in band for rank in ranks)
                   for what, ranks in (("kept", kept), ("rejected", rejected))} for name, band in BANDS.items()}


def _mean(values: Sequence[float]) -> float | None:
    return round(fmean(values), DECIMALS) if values else None


_SCOPE = "all"


@dataclass(frozen=True, slots=True)
class MiningSource:
    """The chunks to mine. `index` is None if they belong to the benchmark."""

    benchmark: Benchmark
    collection: Collection
    index: Index | None

    def source_of(self, document: str) -> str:
        """Return the source path of a document id, or the id if it is unknown."""
        if document in self.benchmark.documents:
            return self.benchmark.documents[document].source
        try:
            return document if self.index is None else self.index.source_of(document)
        except KeyError:
            return document

    def document(self, id: str) -> Document:
        """Return a document of the benchmark or of the collection."""
        known = self.benchmark.documents
        return known[id] if id in known else self.collection.document(id)


def open_source(benchmark: Benchmark, settings: MiningSettings, progress: Progress) -> MiningSource:
    """Open the chunks to mine: the index in the settings, or else the chunks that all questions share, or else the
    chunks of all questions. Raises BenchmarkError if there is no index, and the benchmark has no chunks. Raises
    UserError if the index or the embedder cannot be opened.
    """
    if settings.index is not None:
        index = Index.open(settings.index)
        index.check_embedder()
        return MiningSource(benchmark, index, index)
    chunks = benchmark.shared or benchmark.all_chunks
    if not chunks:
        raise BenchmarkError(f"{benchmark.name}: its questions have no chunks to mine negatives in; index its "
                             "documents and give --index DIR")
    pool = Pool({_SCOPE: chunks}, CachedEmbedder(open_embedder(settings.embedder)), benchmark.documents)
    pool.embed(progress)
    return MiningSource(benchmark, pool.scope(_SCOPE), None)


def mine(selection: Selection, settings: MiningSettings, out: Path, progress: Progress) -> MinedManifest:
    """Mine negatives for a benchmark's questions, and write the benchmark with them into a new folder. Raises
    SettingsError if the folder is not empty, or a miner is unknown. Raises UserError if the benchmark, an index or a
    model cannot be loaded, or another process is writing the folder.
    """
    with exclusive(out):
        try:
            taken = out.exists() and (not out.is_dir() or any(out.iterdir()))
        except OSError as error:
            raise SettingsError(f"{out}: {error.strerror}") from error
        if taken:
            raise SettingsError(f"{out}: not empty; name a new folder")
        if not judges_of(settings):
            return _mine_and_write(selection, settings, out, progress, RerankerDeps())
        return asyncio.run(_mine_with_judge(partial(_mine_and_write, selection, settings, out, progress), settings))


async def _mine_with_judge(mined: Callable[[RerankerDeps], MinedManifest], settings: MiningSettings) -> MinedManifest:
    async with open_reranker_deps(settings, ModelSettings()) as deps:  # the judge's calls need this event loop
        return await asyncio.to_thread(mined, deps)


def _mine_and_write(selection: Selection, settings: MiningSettings, out: Path, progress: Progress,
                    deps: RerankerDeps) -> MinedManifest:
    check_miners(settings.miners)
    benchmark = selection.load()
    source = open_source(benchmark, settings, progress)
    rows, nearness = Rows(source.collection), Nearness(source.collection)
    opened = {name: open_miner(name, rows, settings.seed) for name in dict.fromkeys(settings.miners)}
    tasks = list(plan_tasks(benchmark, _candidates(source, rows, nearness), settings))
    reranker = choose_reranker(settings, tasks, source.collection.embedder)
    rare_words = RareWords(chunk.content for chunk in source.collection.chunks)
    results = NegativeSearch(settings, {name: miner for name, (miner, _) in opened.items()},
                             None if reranker is None else reranker.open(deps), rare_words, nearness.of_chunks
                             ).select_all(tasks, progress)
    cosines = nearness.of([one.question.text for one in tasks],
                          [rows.rows_of(chunk.id for chunk in one.chunks) for one in results])
    rejected = nearness.of([one.question.text for one in tasks],
                           [rows.rows_of(each.chunk.id for each in one.rejected if each.by_guard) for one in results])
    by_chunk = [rate_hardness(one, near) for one, near in zip(results, cosines, strict=True)]
    questions = tuple(add_negatives(each, found, by, settings.seed)
                      for each, found, by in zip(tasks, results, by_chunk, strict=True))
    made_of = {"chunks": len(source.collection.chunks), "content": source.collection.content,
               "embedder": source.collection.embedder.identity,
               "reranker": reranker and reranker.identity(),
               "miners": {name: identity for name, (_, identity) in opened.items()}, "judged": judge_notes(deps)}
    manifest = MinedManifest(
        benchmark=selection.model_dump(mode="json"), name=benchmark.name, corpus=benchmark.corpus,
        attribution=f"{selection.about.paper}; licence: {selection.about.licence}",
        mining=settings.model_dump(mode="json"), collection=made_of,
        counts=count_outcomes(tasks, results, by_chunk, [to_hardness(cosine) for own in rejected for cosine in own],
                              _count_checked(tasks, settings, reranker)),
        short={one.question.id: {"wanted": one.total, "kept": len(found.chunks), "rejected": len(found.rejected),
                                 "why": found.why_short}
               for one, found in zip(tasks, results, strict=True) if found.why_short is not None})
    brought = dict.fromkeys(chunk.document for question in questions for chunk in question.chunks)
    brought |= dict.fromkeys(chunk.document for chunk in benchmark.shared)
    made = replace(benchmark, questions=questions, documents={id: source.document(id) for id in brought})
    lines = {**benchmark_lines(made), DECISIONS: _decisions(tasks, results)}
    with replacing(out) as folder:
        for name, each in lines.items():
            with (folder / name).open("x", encoding="utf-8", newline="\n") as file:
                file.writelines(f"{line}\n" for line in each)
        write_manifest(manifest, folder)
    return manifest


def choose_reranker(settings: MiningSettings, tasks: Sequence[MiningTask], embedder: Embedder) -> Reranker | None:
    """Return the reranker in the settings. `auto` is late interaction by the embedder's own model, if it is a
    sentence-transformers model on this machine, and a question has gold but no answers."""
    if settings.reranker != "auto":
        return settings.reranker
    own = settings_of(getattr(embedder, "inner", embedder))
    wanted = any(one.gold and not one.question.answers for one in tasks)
    return LateInteraction(model=own.model) if wanted and isinstance(own, Sentence) else None


def _count_checked(tasks: Sequence[MiningTask], settings: MiningSettings, reranker: Reranker | None) -> dict[str, int]:
    """Count the questions by what the guard could compare with their candidates."""
    answered = [one for one in tasks if has_answer_to_find(one.question)]
    by_gold = [one for one in tasks if one.gold and not has_answer_to_find(one.question)]
    grades = isinstance(settings.reranker, JudgeReranker)
    reranked = [one for one in tasks if reranker and (one.gold or grades) and not (
        settings.reranker == "auto" and one.question.answers)]
    return {"answers": len(answered), "gold": len(by_gold), "neither": len(tasks) - len(answered) - len(by_gold),
            "reranker": len(reranked)}


def _candidates(source: MiningSource, rows: Rows, nearness: Nearness) -> Candidates:
    def nearest(query: str, chunks: Sequence[Chunk]) -> Sequence[Chunk]:
        cosines = nearness.of([query], [rows.rows_of(chunk.id for chunk in chunks)])[0]
        return [chunk for _, chunk in sorted(zip(cosines, chunks, strict=True), key=lambda one: -one[0])]

    return Candidates(source.collection.chunks, source.source_of, source.index is not None, nearest)


def _decisions(tasks: Iterable[MiningTask], results: Iterable[MiningResult]) -> Iterator[str]:
    for one, found in zip(tasks, results, strict=True):
        for each in found.rejected:
            yield to_json({"question": one.question.id, "reason": each.reason, "figures": each.figures,
                           "found": each.found, "chunk": each.chunk.id, "document": each.chunk.document,
                           "content": each.chunk.content}).decode()
