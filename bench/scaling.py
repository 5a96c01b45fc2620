"""Measure how time, memory and disk grow with the number of chunks and of records, with the exponent.

    python bench/scaling.py [--sizes 10000 100000 1000000] [--only index bm25 records] [--folder FOLDER] [--json]

Texts are generated: words drawn by Zipf's law out of 500,000, with 600 characters (a hundred words) per chunk and a
hundred chunks per file. Vectors of 384 numbers are derived from a text's hash (`building.py`), so that the figures do
not include a model's time; the row `embedder` shows the time to make them. They are searched exactly: for graphs and
lists see `vectors.py`. Records are those of half as many questions in two cells: answers of "another tool" with two
passages each, scored as by `ragbed import`, which is the path of a run without its model calls. Above 100,000 no shards
are used, because each of the sixteen would read all questions. Each step runs in its own process. Measured are its
processor time (user and system, with start-up and workers), its peak memory, and what it leaves on disk. An exponent is
a log-log slope: between the two largest sizes and, in brackets, of the line through all sizes.
"""
from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
WORDS, CHUNK, LONG, FILE = 500_000, 100, 600, 100  # words to draw from, of a chunk, its characters, chunks of a file
LARGEST_DIVIDED = 100_000  # chunks or records
QUERIES = 100


def main() -> None:
    options = _options()
    if options.step:
        STEPS[options.step](Path(options.folder), options.sizes[0])
        return
    with tempfile.TemporaryDirectory() as made:
        rows = []
        for size in options.sizes:
            place = Path(options.folder or made) / str(size)
            place.mkdir(parents=True, exist_ok=True)
            for group in options.only:
                for step in GROUPS[group]:
                    if size <= LARGEST_DIVIDED or "shard" not in step:
                        rows.append({"step": step, "size": size, **_measured(step, place, size)})
                        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    print(json.dumps(rows, indent=2) if options.json else _table(rows))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=list(GROUPS))
    parser.add_argument("--folder", help="write everything to this folder and keep it")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    return parser.parse_args()


def _measured(step: str, place: Path, size: int) -> dict[str, float]:
    """What a step takes in a process of its own. This one stays small: a child's memory counts from its parent's."""
    environment = {**os.environ, "RAGBED_CACHE": str(place / "cache"), "PYTHONPATH": str(HERE.parent.parent)}
    before = _disk(place)
    child = subprocess.Popen([sys.executable, HERE, "--step", step, "--folder", place, "--sizes", str(size)],
                             env=environment, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{step} of {size:,} ended with status {child.returncode}")
    unit = 1 if sys.platform == "darwin" else 1_024
    return {"processor_s": round(used.ru_utime + used.ru_stime, 2), "memory_mb": round(used.ru_maxrss * unit / 1e6),
            "disk_mb": round((_disk(place) - before) / 1e6, 1)}


def _disk(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _zipf(count: int, seed: int) -> Iterator[list[str]]:
    """So many chunks' words."""
    import numpy as np

    drawn, shares = np.random.default_rng(seed), np.cumsum(1 / np.arange(1, WORDS + 1))
    names = [f"{'bcdfglmnrst'[rank % 11]}{'aeiou'[rank // 11 % 5]}{rank:x}" for rank in range(WORDS)]
    for start in range(0, count, FILE):
        ranks = np.searchsorted(shares, drawn.random((min(FILE, count - start), CHUNK)) * shares[-1])
        yield from ([names[rank] for rank in row] for row in ranks.tolist())


def make_pages(place: Path, size: int) -> None:
    (place / "pages").mkdir()
    text: list[str] = []
    for number, words in enumerate(_zipf(size, 0), 1):
        text.append(" ".join(words).ljust(LONG)[:LONG - 1])
        if number % FILE == 0 or number == size:
            (place / "pages" / f"{number // FILE:06}.txt").write_text("\n".join(text))
            text = []


def _build(place: Path, shard: str = "1/1") -> None:
    from building import Hashed

    from ragbed.documents.shards import Shard
    from ragbed.retrieval import IndexSettings, build_index

    settings = IndexSettings.model_validate({
        "chunker": {"kind": "fixed", "size": LONG}, "titled": False, "vectors": {"kind": "flat"}})
    part = Shard.parse(shard)
    build_index([place / "pages"], place / "idx", settings, embedder=Hashed(), shard=part if part.of > 1 else None)


def embed(place: Path, size: int) -> None:
    from building import Hashed

    for number in range(0, size, FILE):
        Hashed().embed_passages([str(number + one) for one in range(min(FILE, size - number))])


def index_shards(place: Path, size: int) -> None:
    for number in range(1, 17):
        _build(place, f"{number}/16")


def index_merge(place: Path, size: int) -> None:
    from ragbed.experiments.guests.cluster.merge_shards import merge_indexes

    merge_indexes(sorted((place / "idx.shards").iterdir()), place / "merged")


def _search(place: Path, retriever: dict[str, Any], queries: int) -> None:
    from building import Hashed
    from pydantic import TypeAdapter

    from ragbed.retrieval import Index, RerankerDeps
    from ragbed.retrieval.retrievers import RetrieverSettings

    index = Index.open(place / "idx", Hashed())
    opened = TypeAdapter(RetrieverSettings).validate_python(retriever).open(index, RerankerDeps())
    for words in _zipf(queries, 1):
        assert opened.search([" ".join(words[:8])], 10)


def make_answers(place: Path, size: int) -> None:
    drawn, passages = random.Random(0), _zipf(size, 2)
    with (place / "questions.jsonl").open("w") as questions, (place / "first.jsonl").open("w") as first, \
            (place / "second.jsonl").open("w") as second:
        for number in range(size // 2):
            name, answer = f"q{number:07}", f"Answer {drawn.randrange(1000)}"
            contexts = [{"document": f"d{number}-{at}.txt", "text": " ".join(next(passages))} for at in (1, 2)]
            questions.write(json.dumps({"id": name, "question": f"What is thing {number}?", "answer": answer,
                                        "gold_documents": [f"d{number}-1.txt"]}) + "\n")
            for file, rate in ((first, 0.6), (second, 0.5)):
                said = answer if drawn.random() < rate else "Something else"
                file.write(json.dumps({"id": name, "answer": f"{said} [{drawn.randrange(1, 3)}]",
                                       "contexts": contexts}) + "\n")


def run(place: Path, size: int, shard: str = "1/1") -> None:
    from ragbed.documents.shards import Shard
    from ragbed.experiments import RunSettings
    from ragbed.experiments.running import runner

    settings = RunSettings.model_validate({
        "name": "run", "out": str(place), "benchmark": {"kind": "jsonl", "path": str(place / "questions.jsonl")},
        "pipelines": [{"kind": "predictions", "name": name, "format": "jsonl", "path": str(place / f"{name}.jsonl")}
                      for name in ("first", "second")]})
    watch = runner.RunCallbacks(lambda *stage: None, lambda begun: None, lambda record: None)
    part = Shard.parse(shard)
    asyncio.run(runner.run(settings, watch, shard=part if part.of > 1 else None)).close()


def run_shards(place: Path, size: int) -> None:
    for number in range(1, 17):
        run(place, size, f"{number}/16")


def _ragbed(*command: str) -> Callable[[Path, int], None]:
    """A command, in which `{}` is the folder."""
    def step(place: Path, size: int) -> None:
        from ragbed.experiments import cli

        sys.argv = ["ragbed", *(part.format(place) for part in command)]
        cli.main()

    return step


def records(place: Path, size: int) -> None:
    from ragbed.experiments import open_run

    with open_run(place / "run") as opened:
        assert sum(1 for _ in opened.records()) == 2 * (size // 2)


def frame(place: Path, size: int) -> None:
    from ragbed.experiments import open_run

    with open_run(place / "run") as opened:
        assert len(opened.frame()) == 2 * (size // 2)


STEPS: dict[str, Callable[[Path, int], None]] = {
    "texts": make_pages, "embedder": embed, "index: build": lambda place, size: _build(place),
    "index: open, first search": lambda place, size: _search(place, {"kind": "dense"}, 1),
    "index: open, 100 searches": lambda place, size: _search(place, {"kind": "dense"}, QUERIES),
    "index: 16 shards": index_shards, "index: merge of 16 shards": index_merge,
    "bm25: build": lambda place, size: _search(place, {"kind": "bm25", "language": "english"}, 1),
    "bm25: open, first search": lambda place, size: _search(place, {"kind": "bm25", "language": "english"}, 1),
    "bm25: open, 100 searches": lambda place, size: _search(place, {"kind": "bm25", "language": "english"}, QUERIES),
    "answers": make_answers, "run": run, "report": _ragbed("report", "{}/run"),
    "compare": _ragbed("compare", "{}/run"), "show": _ragbed("show", "{}/run", "#2"),
    "verify": _ragbed("verify", "{}/run"), "export: Parquet": _ragbed("export", "{}/run", "{}/run.parquet"),
    "records()": records, "frame()": frame, "run: 16 shards": run_shards,
    "run: merge of 16 shards": _ragbed("merge", "{}/run.shards", "--out", "{}/merged-run")}
GROUPS = {"index": [step for step in STEPS if step in ("texts", "embedder") or "index" in step],
          "bm25": [step for step in STEPS if "bm25" in step]}
GROUPS["records"] = [step for step in STEPS if step not in (*GROUPS["index"], *GROUPS["bm25"])]


def _slope(rows: list[dict[str, Any]], figure: str) -> float | None:
    """The slope of log to log, by least squares; None where there is nothing to take it of."""
    points = [(math.log(row["size"]), math.log(row[figure])) for row in rows if row[figure] > 0]
    mean = [sum(axis) / len(points) for axis in zip(*points, strict=True)]
    spread = sum((x - mean[0]) ** 2 for x, _ in points)
    return sum((x - mean[0]) * (y - mean[1]) for x, y in points) / spread if len(points) > 1 and spread else None


def _table(rows: list[dict[str, Any]]) -> str:
    figures = ("processor_s", "memory_mb", "disk_mb")
    lines = [f"{'':28}{'size':>10}{'processor, s':>14}{'exponent':>14}{'memory, MB':>12}{'exponent':>14}"
             f"{'disk, MB':>10}{'exponent':>14}"]
    for step in dict.fromkeys(row["step"] for row in rows):
        own = [row for row in rows if row["step"] == step]
        for at, row in enumerate(own):
            shown = []
            for figure in figures:
                last, whole = _slope(own[-2:], figure), _slope(own, figure)
                slopes = f"{last:.2f} ({whole:.2f})" if at == len(own) - 1 and last is not None and whole else ""
                shown += [f"{row[figure]:,}", slopes]
            lines.append("{:28}{:>10,}{:>14}{:>14}{:>12}{:>14}{:>10}{:>14}".format(
                "" if at else step, row["size"], *shown).rstrip())
    return "\n".join(lines)


if __name__ == "__main__":
    main()
