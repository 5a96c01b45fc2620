"""Compare the speed of BM25 over an index's chunks with bm25s called directly.

    python bench/bm25.py --data FOLDER [--chunks N] [--queries 300] [--rounds 15] [--k 10] [--json]
    python bench/bm25.py --data FOLDER --whole [--rounds 15] [--k 100] [--json]

FOLDER has SciFact in `scifact`; without `--data`, RAGBED_DATA names FOLDER. Every round sends all queries to each
contestant in turn, and tokenises them again. The ratio is the median of the rounds' ratios, so that a machine that is
slow for a while slows both sides. bm25s gets the same word pattern, stop words and stemmer, and returns rows and
scores. ragbed returns hits with their chunks, from a list in memory or from the Parquet file of an index. Both run on
one thread. `--chunks` adds abstracts made of sentences drawn from the real ones, with a fixed seed.

`--whole` compares what `ragbed evaluate-retrieval` does with the queries, from the first search to the last stored
record and its metrics, with bm25s that tokenises and retrieves, and ir_measures that scores each query. Both have built
their index before. It also prints the ratio of processor time, on which a busy machine has less influence.
"""
from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import bm25s
import ir_measures
import Stemmer

from ragbed.documents import Chunk, Document
from ragbed.experiments.guests.datasets.beir import Beir
from ragbed.experiments.running.runner import RunCallbacks, run
from ragbed.experiments.settings.file import check_settings
from ragbed.retrieval import Bm25, RerankerDeps
from ragbed.retrieval.storage.parquet import ChunkTable, ChunkWriter

Search = Callable[[Sequence[str]], Sequence[Sequence[Any]]]
SETTINGS = Bm25(language="english")
PATTERN = r"[^\W_]+"


@dataclass(frozen=True)
class Chunks:
    """Chunks as a collection, as far as BM25 asks for it."""

    chunks: Sequence[Chunk]
    text_hash: str
    among: None = None

    def texts(self) -> Iterator[str]:
        return (chunk.content for chunk in self.chunks)


def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory() as made:
        os.environ["RAGBED_CACHE"] = made
        report = (_measured_whole if options.whole else _measured)(options, Path(made))
    print(json.dumps(report, indent=2) if options.json else _shown_whole(report) if options.whole else _shown(report))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data")
    parser.add_argument("--chunks", type=int, default=0)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--k", type=int)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    options.data = options.data or os.environ.get("RAGBED_DATA")
    options.k = options.k or (100 if options.whole else 10)
    if not options.data:
        sys.exit("name the folder of the raw data with --data or RAGBED_DATA")
    return options


def _measured(options: argparse.Namespace, made: Path) -> dict[str, Any]:
    benchmark = Beir(path=str(Path(options.data) / "scifact")).load()
    queries = [question.text for question in benchmark.questions[:options.queries]]
    chunks = [*benchmark.shared, *_made(benchmark.shared, options.chunks - len(benchmark.shared))]
    build: dict[str, float] = {}
    contestants = {"bm25s": _direct(chunks, options.k, build), "ragbed, in memory": _ours(
        Chunks(chunks, "list"), options.k, build, "ragbed"), "ragbed, of a file": _ours(
        Chunks(_table(chunks, made), "list"), options.k, build, "ragbed, kept before")}
    found = {name: search(queries) for name, search in contestants.items()}
    taken: dict[str, list[float]] = {name: [] for name in contestants}
    single: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(options.rounds):
        for name, search in contestants.items():
            taken[name].append(_seconds(lambda search=search: search(queries)))
            single[name].append(_seconds(lambda search=search: [search([query]) for query in queries]))
    return {"machine": _machine(), "chunks": len(chunks), "queries": len(queries), "k": options.k,
            "rounds": options.rounds, "build, s": {name: round(seconds, 2) for name, seconds in build.items()},
            "together": _figures(taken, len(queries)), "one by one": _figures(single, len(queries)),
            "found by both": {name: _shared(one, found["bm25s"], chunks) for name, one in found.items()},
            "peak memory, MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1_000}


def _measured_whole(options: argparse.Namespace, made: Path) -> dict[str, Any]:
    """Time the queries of an evaluation of BM25, next to bm25s and ir_measures on the same files."""
    path, build = str(Path(options.data) / "scifact"), dict[str, float]()
    benchmark = Beir(path=path).load()
    chunks, questions = benchmark.shared, benchmark.questions
    search = _direct(chunks, options.k, build, scored=True)
    qrels = [ir_measures.Qrel(one.id, gold.document, gold.relevance) for one in questions for gold in one.gold]
    measures = [ir_measures.nDCG @ 10, ir_measures.R @ 10, ir_measures.R @ 100, ir_measures.RR, ir_measures.AP]
    settings = check_settings({
        "name": "bench", "out": str(made), "benchmark": {"kind": "beir", "path": path}, "reasoning": "search_only",
        "retriever": {"kind": "bm25", "language": "english", "k": options.k, "over": "all"}}, "bench")

    def theirs() -> tuple[list[float], list[float]]:
        before = _clocks()
        found = search([one.text for one in questions])
        scored = (ir_measures.ScoredDoc(one.id, chunks[row].document, score)
                  for one, rows, scores in zip(questions, *found, strict=True)
                  for row, score in zip(rows, scores, strict=True))
        list(ir_measures.iter_calc(measures, qrels, scored))
        return before, _clocks()

    def ours() -> tuple[list[float], list[float]]:
        clocks: list[list[float]] = []
        callbacks = RunCallbacks(lambda *_: None, lambda _: clocks.append(_clocks()), lambda _: None,
                                 searched=lambda _: clocks.append(_clocks()))
        asyncio.run(run(settings, callbacks, fresh=True)).close()
        return clocks[0], clocks[1]

    taken: dict[str, list[list[float]]] = {"bm25s": [], "ragbed": []}
    for number in range(options.rounds + 1):
        for name, work in {"bm25s": theirs, "ragbed": ours}.items():
            before, after = work()
            if number:  # the first round builds the index
                taken[name].append([end - start for start, end in zip(before, after, strict=True)])
    figures = {clock: _figures({name: [one[place] for one in each] for name, each in taken.items()}, len(questions))
               for place, clock in enumerate(("elapsed", "processor"))}
    return {"machine": _machine(), "chunks": len(chunks), "queries": len(questions), "k": options.k,
            "rounds": options.rounds, **figures}


def _clocks() -> list[float]:
    return [time.perf_counter(), time.process_time()]


def _shown_whole(report: dict[str, Any]) -> str:
    lines = [f"{report['chunks']} chunks, {report['queries']} queries, the {report['k']} best, "
             f"{report['rounds']} rounds",
             f"{'':12}{'time':>12}{'queries/s':>12}{'ratio':>9}{'(range)':>17}"]
    for clock in ("elapsed", "processor"):
        for name, one in report[clock].items():
            lines.append(f"{name:12}{clock:>12}{one['queries a second']:>12}{one['ratio']:>9}"
                         f"{'({}-{})'.format(*one['range']):>17}")
    return "\n".join(lines)


def _made(chunks: Sequence[Chunk], count: int) -> Iterator[Chunk]:
    drawn = random.Random(1)
    sentences = [sentence for chunk in chunks for sentence in chunk.content.split(". ")] if count > 0 else []
    for number in range(count):
        text = ". ".join(drawn.choices(sentences, k=9))
        yield Chunk.of(Document(f"made-{number}", "made", "made", "", text), "plain", 0, len(text))


def _direct(chunks: Sequence[Chunk], k: int, build: dict[str, float], scored: bool = False) -> Any:
    stemmer = Stemmer.Stemmer("english")

    def tokens(texts: Sequence[str]) -> Any:
        return bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, token_pattern=PATTERN, show_progress=False)

    before = time.perf_counter()
    scorer = bm25s.BM25(k1=SETTINGS.k1, b=SETTINGS.b, method=SETTINGS.method)
    scorer.index(tokens([chunk.content for chunk in chunks]), show_progress=False)
    build["bm25s"] = time.perf_counter() - before

    def search(queries: Sequence[str]) -> Any:
        found = scorer.retrieve(tokens(queries), k=k, show_progress=False)
        return (found.documents.tolist(), found.scores.tolist()) if scored else found.documents.tolist()

    return search


def _ours(collection: Any, k: int, build: dict[str, float], name: str) -> Search:
    before = time.perf_counter()
    retriever = SETTINGS.open(collection, RerankerDeps())
    retriever.search(["opened"], 1)
    build[name] = time.perf_counter() - before
    return lambda queries: retriever.search(queries, k)


def _table(chunks: Sequence[Chunk], folder: Path) -> ChunkTable:
    writer = ChunkWriter(folder / "chunks.parquet")
    for chunk in chunks:
        writer.chunk(chunk, 1)
    writer.close()
    return ChunkTable(folder / "chunks.parquet")


def _seconds(work: Callable[[], object]) -> float:
    before = time.perf_counter()
    work()
    return time.perf_counter() - before


def _figures(taken: dict[str, list[float]], queries: int) -> dict[str, Any]:
    """Queries a second, and as a ratio to bm25s's: medians over the rounds, and the range of the ratio."""
    figures = {}
    for name, seconds in taken.items():
        ratios = [base / one for base, one in zip(taken["bm25s"], seconds, strict=True)]
        figures[name] = {"queries a second": round(queries / statistics.median(seconds)),
                         "ratio": round(statistics.median(ratios), 3),
                         "range": [round(min(ratios), 3), round(max(ratios), 3)]}
    return figures


def _shared(found: Sequence[Sequence[Any]], direct: Sequence[Sequence[int]], chunks: Sequence[Chunk]) -> float:
    """The mean share of bm25s's rows that are among what was found."""
    rows = {chunk.id: row for row, chunk in enumerate(chunks)}
    shares = [len(set(theirs) & {one if isinstance(one, int) else rows[one.chunk.id] for one in ours}) / len(theirs)
              for ours, theirs in zip(found, direct, strict=True)]
    return round(statistics.mean(shares), 4)


def _machine() -> dict[str, Any]:
    cpu = Path("/proc/cpuinfo")
    lines = (line.partition(":") for line in cpu.read_text().splitlines()) if cpu.exists() else ()
    known = {name.strip(): value.strip() for name, _, value in lines}
    flags = {"sse4_2", "avx", "avx2", "avx512f", "asimd"} & set(
        f"{known.get('flags', '')} {known.get('Features', '')}".split())
    return {"system": f"{platform.system()} {platform.machine()}", "processor": known.get("model name", ""),
            "flags": sorted(flags), "cores": os.cpu_count(), "threads": 1, "python": platform.python_version(),
            "packages": {name: version(name) for name in ("bm25s", "PyStemmer", "numpy", "pyarrow")}}


def _shown(report: dict[str, Any]) -> str:
    machine = report["machine"]
    packages = ", ".join(f"{name} {number}" for name, number in machine["packages"].items())
    lines = [f"{machine['system']}, {machine['processor']} ({' '.join(machine['flags'])}), "
             f"{machine['threads']} thread, Python {machine['python']}; {packages}",
             f"{report['chunks']} chunks, {report['queries']} queries, the {report['k']} best, {report['rounds']} "
             f"rounds; peak memory {report['peak memory, MB']} MB",
             "built: " + ", ".join(f"{name} {seconds} s" for name, seconds in report["build, s"].items()), "",
             f"{'':20}{'queries/s':>11}{'ratio':>8}{'(range)':>17}{'one by one':>12}{'ratio':>8}{'found by both':>15}"]
    for name, one in report["together"].items():
        alone, spread = report["one by one"][name], "({}-{})".format(*one["range"])
        lines.append(f"{name:20}{one['queries a second']:>11}{one['ratio']:>8}{spread:>17}"
                     f"{alone['queries a second']:>12}{alone['ratio']:>8}{report['found by both'][name]:>15}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
