"""Mining hard negatives for a benchmark, which is then written as a benchmark that loads like any other."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from documents.errors import SettingsError
from documents.types import Chunk
from experiments.benchmarks import Selection
from experiments.benchmarks.mined_files import DECISIONS, MinedManifest, benchmark_lines, write_lines, write_manifest
from experiments.negatives.collection import Source, open_source
from experiments.negatives.counting import counted, short
from experiments.negatives.given import with_negatives
from experiments.negatives.guard import Rarity
from experiments.negatives.hardness import hardness_of, mined
from experiments.negatives.rounds import Rounds
from experiments.negatives.settings import MiningSettings
from experiments.negatives.types import Chosen, Wanted
from experiments.negatives.wanted import Candidates, wanted_of
from experiments.question import Benchmark, FoundBy, Question
from retrieval.building.progress import Progress
from retrieval.mining import Miner, Nearness, Rows, check_miners, open_miner
from retrieval.storage.folder import alone, replaced
from retrieval.types import Aids


@dataclass(frozen=True, slots=True)
class _Decision:
    """A rejected candidate as it is kept."""

    question: str
    reason: str
    figures: Mapping[str, str | float]
    found: tuple[FoundBy, ...]
    chunk: str
    document: str
    content: str


_DECISION = TypeAdapter(_Decision)


def mine(selection: Selection, settings: MiningSettings, out: Path, progress: Progress) -> MinedManifest:
    """Mine negatives for the questions of a benchmark and write it with them into a new folder.

    Raises:
        SettingsError: there is something in the folder, or a miner is not known.
        BenchmarkError: the benchmark cannot be loaded, or brings no chunks and there is no index.
        UserError: an index, or a model, is not to be had; or another process is writing the folder.
    """
    with alone(out):
        _check_new(out)
        return _mined(selection, settings, out, progress)


def _mined(selection: Selection, settings: MiningSettings, out: Path, progress: Progress) -> MinedManifest:
    check_miners(settings.miners)
    benchmark = selection.load()
    source = open_source(benchmark, settings, progress)
    rows, nearness = Rows(source.collection), Nearness(source.collection)
    opened = {name: open_miner(name, rows, settings.seed) for name in dict.fromkeys(settings.miners)}
    wanted = list(wanted_of(benchmark, _candidates(source, rows, nearness), settings))
    chosen = _rounds(settings, source, {name: miner for name, (miner, _) in opened.items()}).mined(wanted, progress)
    cosines = nearness.of([one.question.text for one in wanted],
                          [rows.rows_of(chunk.id for chunk in one.chunks) for one in chosen])
    how = [mined(one, near) for one, near in zip(chosen, cosines, strict=True)]
    questions = tuple(with_negatives(each, found, by, settings.seed)
                      for each, found, by in zip(wanted, chosen, how, strict=True))
    manifest = MinedManifest(
        benchmark=selection.model_dump(mode="json"), name=benchmark.name, corpus=benchmark.corpus,
        attribution=f"{selection.about.paper}; licence: {selection.about.licence}",
        mining=settings.model_dump(mode="json"), collection=_collection(source, settings, opened),
        counts=counted(wanted, chosen, how, _rejected_near(wanted, chosen, rows, nearness)),
        short=short(wanted, chosen))
    return _write(_with(benchmark, questions, source), manifest, wanted, chosen, out)


def _check_new(out: Path) -> None:
    try:
        taken = out.exists() and (not out.is_dir() or any(out.iterdir()))
    except OSError as error:
        raise SettingsError(f"{out}: {error.strerror}") from error
    if taken:
        raise SettingsError(f"{out}: something is there already; give a new folder")


def _rounds(settings: MiningSettings, source: Source, miners: Mapping[str, Miner]) -> Rounds:
    scorer = None if settings.reranker is None else settings.reranker.open(Aids())
    return Rounds(settings, miners, scorer, Rarity(chunk.content for chunk in source.collection.chunks))


def _candidates(source: Source, rows: Rows, nearness: Nearness) -> Candidates:
    def nearest(query: str, chunks: Sequence[Chunk]) -> Sequence[Chunk]:
        cosines = nearness.of([query], [rows.rows_of(chunk.id for chunk in chunks)])[0]
        return [chunk for _, chunk in sorted(zip(cosines, chunks, strict=True), key=lambda one: -one[0])]

    return Candidates(source.collection.chunks, source.source_of, source.index is not None, nearest)


def _rejected_near(wanted: Sequence[Wanted], chosen: Sequence[Chosen], rows: Rows, nearness: Nearness) -> list[float]:
    """The hardness of every candidate that the guard rejected."""
    cosines = nearness.of([one.question.text for one in wanted],
                          [rows.rows_of(each.chunk.id for each in one.rejected if each.guarded) for one in chosen])
    return [hardness_of(cosine) for own in cosines for cosine in own]


def _collection(source: Source, settings: MiningSettings, opened: Mapping[str, tuple[Miner, str]]) -> dict[str, Any]:
    reranker = None if settings.reranker is None else settings.reranker.identity()
    return {"chunks": len(source.collection.chunks), "content": source.collection.content,
            "embedder": source.collection.embedder.identity, "reranker": reranker,
            "miners": {name: identity for name, (_, identity) in opened.items()}}


def _with(benchmark: Benchmark, questions: tuple[Question, ...], source: Source) -> Benchmark:
    """The benchmark with these questions, and the documents of all their chunks."""
    brought = dict.fromkeys(chunk.document for question in questions for chunk in question.chunks)
    brought |= dict.fromkeys(chunk.document for chunk in benchmark.shared)
    return replace(benchmark, questions=questions, documents={id: source.document(id) for id in brought})


def _write(benchmark: Benchmark, manifest: MinedManifest, wanted: Iterable[Wanted], chosen: Iterable[Chosen],
           out: Path) -> MinedManifest:
    lines = {**benchmark_lines(benchmark), DECISIONS: _decisions(wanted, chosen)}
    with replaced(out) as folder:
        for name, each in lines.items():
            write_lines(each, folder / name)
        write_manifest(manifest, folder)
    return manifest


def _decisions(wanted: Iterable[Wanted], chosen: Iterable[Chosen]) -> Iterator[str]:
    for one, found in zip(wanted, chosen, strict=True):
        for each in found.rejected:
            yield _DECISION.dump_json(_Decision(
                one.question.id, each.reason, each.figures, each.found, each.chunk.id, each.chunk.document,
                each.chunk.content)).decode()
