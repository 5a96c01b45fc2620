"""Measure how often a search finds the page that answers a FinanceBench question.

Indexes the PDFs of FinanceBench (https://github.com/patronus-ai/financebench, CC BY-NC 4.0) and searches every question
whose filing is among them. A hit counts if it is in the right filing and overlaps a gold page. If a question has
several gold pages, the best hit counts.

    python bench/financebench_pages.py [--data DIR] [--chunker '{"kind": "sections", "target": 800}'] [--format plain]
"""
from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from ragbed.documents import ChunkerSettings
from ragbed.retrieval import BuildReport, Hit, Index, IndexSettings, build_index


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, the filing that answers it, and the gold pages, counted from 1."""

    text: str
    filing: str
    pages: tuple[int, ...]


def main() -> None:
    options = _options()
    if not options.data:
        sys.exit("name the folder of the raw data with --data or RAGBED_DATA")
    folder = Path(options.data) / "financebench"
    if not (folder / "pdfs").is_dir():
        sys.exit(f"{folder} has no pdfs: name the data folder with --data or RAGBED_DATA")
    given = {"chunker": TypeAdapter(ChunkerSettings).validate_json(options.chunker)} if options.chunker else {}
    settings = IndexSettings(**given, **({"formats": tuple(options.format)} if options.format else {}),
                             titled=not options.untitled)
    with tempfile.TemporaryDirectory() as place:
        report = build_index([folder / "pdfs"], Path(place) / "index", settings)
        index = Index.open(Path(place) / "index")
        asked = list(_questions(folder))
        ranks = _ranks(index, asked)
        _print(settings, report, asked, ranks, _latency(index, asked))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", default=os.environ.get("RAGBED_DATA"),
                        help="folder of the raw data; by default RAGBED_DATA")
    parser.add_argument("--chunker", help="settings as JSON; by default those of `ragbed index`")
    parser.add_argument("--format", choices=["html", "plain"], action="append")
    parser.add_argument("--untitled", action="store_true", help="embed chunks without the document's title")
    return parser.parse_args()


def _questions(folder: Path) -> Iterator[Asked]:
    filings = {path.stem for path in (folder / "pdfs").glob("*.pdf")}
    with (folder / "financebench_open_source.jsonl").open(encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            if row["doc_name"] in filings:
                # FinanceBench counts pages from 0.
                pages = tuple(sorted({evidence["evidence_page_num"] + 1 for evidence in row["evidence"]}))
                yield Asked(row["question"], row["doc_name"], pages)


def _ranks(index: Index, asked: list[Asked]) -> list[int | None]:
    """The rank of the first hit on a gold page among all chunks."""
    found = index.search([question.text for question in asked], len(index.chunks))
    return [next((hit.rank for hit in hits if _is_gold(index, question, hit)), None)
            for question, hits in zip(asked, found, strict=True)]


def _is_gold(index: Index, question: Asked, hit: Hit) -> bool:
    first, last = hit.chunk.pages or (0, 0)
    return (Path(index.source_of(hit.chunk.document)).stem == question.filing
            and any(first <= page <= last for page in question.pages))


def _latency(index: Index, asked: list[Asked]) -> list[float]:
    """Milliseconds of a single search for a text that was not embedded before, with a pause in between."""
    times = []
    for turn, question in enumerate(asked):
        time.sleep(0.2)
        begun = time.perf_counter()
        index.search([f"{question.text} {time.time_ns()} {turn}"], 10)
        times.append(1_000 * (time.perf_counter() - begun))
    return times


def _print(settings: IndexSettings, report: BuildReport, asked: list[Asked], ranks: list[int | None],
           latency: list[float]) -> None:
    print(f"settings    {settings.model_dump_json()}")
    print(f"index       {report.documents} documents, {report.chunks} chunks, {report.windows} windows; {report.how}")
    print(f"seconds     {', '.join(f'{stage} {taken:.1f}' for stage, taken in report.seconds.items())} "
          f"({report.embedded_now} texts embedded now, {report.reused} from the cache)")
    for error in report.skipped:
        print(f"skipped     {error}")
    for question, rank in zip(asked, ranks, strict=True):
        print(f"{rank or '-':>6}  {question.filing[:28]:28}  {question.pages}  {question.text[:90]}")
    top = {k: sum(rank is not None and rank <= k for rank in ranks) for k in (1, 3, 5, 10, 20)}
    print("gold page among the first " + ", ".join(f"{k}: {count} of {len(ranks)}" for k, count in top.items()))
    print(f"mean reciprocal rank {sum(1 / rank for rank in ranks if rank) / len(ranks):.3f}")
    print(f"single search, milliseconds: median {statistics.median(latency):.1f}, longest {max(latency):.1f}")


if __name__ == "__main__":
    main()
