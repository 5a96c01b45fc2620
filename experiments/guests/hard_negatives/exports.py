"""Write mined negatives for training and for other retrieval harnesses.

    triplets   a table with the columns anchor, positive and negative: a row for each negative of each gold passage
    n-tuples   a table with the columns anchor, positive, negative_1 to negative_N: a row for each gold passage
    mteb       JSON Lines of query, positive and negative, as reranking tasks of MTEB have them
    beir       a folder with corpus.jsonl, queries.jsonl and qrels/test.tsv; negatives have the grade 0

A table is JSON Lines, CSV or Parquet, by the ending of its name. The names of the columns are those of
sentence-transformers.
"""
from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragbed.documents.errors import SettingsError
from ragbed.documents.types import Chunk
from ragbed.experiments.formatting import plural
from ragbed.experiments.guests.hard_negatives.benchmark import MinedBenchmark
from ragbed.experiments.question import Benchmark, Question
from ragbed.experiments.running.gold import Places, match
from ragbed.retrieval.storage.files import explain_write_error, replacing_file
from ragbed.retrieval.storage.folder import replacing
from ragbed.strategies.types import Passage

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Labelled:
    """A question with its gold passages, by chunk and grade, and its mined negatives, in the order of selection."""

    question: Question
    positives: Mapping[Chunk, int]
    negatives: Sequence[Chunk]


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written.

    Attributes:
        rows: number of rows, or of judgements.
        without: number of questions without any row, because they have no gold passage or no negative.
        unused: number of negatives that did not fit in.
    """

    rows: int
    without: int
    unused: int = 0


def export_negatives(folder: Path, to: Path, form: str | None) -> str:
    """Write the mined negatives of a folder in a format, and return a line that says what was written. Raises
    SettingsError: the format or the ending is unknown, the output exists, or it cannot be written. Raises
    BenchmarkError: the folder is damaged."""
    if form is None or form not in FORMATS:
        raise SettingsError(f"{folder} holds mined negatives; write them with --as " + ", ".join(FORMATS))
    if to.exists():
        raise SettingsError(f"{to} exists; name another {'folder' if form == 'beir' else 'file'}")
    benchmark = MinedBenchmark(path=str(folder)).load()
    try:
        done = FORMATS[form](benchmark, list(label(benchmark)), to)
    except OSError as error:
        raise SettingsError(f"{to}: {explain_write_error(error)}") from error
    notes = [f"no row for {plural(done.without, 'question')} without "
             + ("gold passages" if form == "beir" else "gold passages or negatives")] if done.without else []
    if done.unused:
        notes.append(f"{plural(done.unused, 'negative')} beyond the fewest of any question are left out; triplets have "
                     "all of them")
    return "; ".join([f"{to}: {done.rows} {'judgements' if form == 'beir' else 'rows'}", *notes])


def label(benchmark: Benchmark) -> Iterator[Labelled]:
    """Yield each question with its gold passages and its mined negatives."""
    def source_of(document: str) -> str:
        return benchmark.documents[document].source if document in benchmark.documents else document

    shared = Places(benchmark.shared, source_of)
    for question in benchmark.questions:
        gold = Places(question.own, source_of).gold(question.gold) or shared.gold(question.gold)
        view = match(question.gold, map(Passage, range(len(gold)), gold), source_of)
        grades = {chunk: max((view.grades[item] for item in view.hits[place]), default=1) if view.grades else 1
                  for place, chunk in enumerate(gold)}
        chunks = {chunk.id: chunk for chunk in question.chunks}
        yield Labelled(question, grades, [chunks[id] for id in question.mined])


def _triplets(every: Sequence[Labelled]) -> Iterator[Row]:
    for one in every:
        for positive in one.positives:
            for negative in one.negatives:
                yield {"anchor": one.question.text, "positive": positive.content, "negative": negative.content}


def _write_triplets(benchmark: Benchmark, every: Sequence[Labelled], to: Path) -> Exported:
    return Exported(_write_table(list(_triplets(every)), to), _count_without(every))


def _write_tuples(benchmark: Benchmark, every: Sequence[Labelled], to: Path) -> Exported:
    usable = [one for one in every if one.positives and one.negatives]
    width = min((len(one.negatives) for one in usable), default=0)
    rows = [{"anchor": one.question.text, "positive": positive.content,
             **{f"negative_{number}": chunk.content for number, chunk in enumerate(one.negatives[:width], 1)}}
            for one in usable for positive in one.positives]
    unused = sum(len(one.negatives) - width for one in usable)
    return Exported(_write_table(rows, to), len(every) - len(usable), unused)


def _write_mteb(benchmark: Benchmark, every: Sequence[Labelled], to: Path) -> Exported:
    usable = [one for one in every if one.positives and one.negatives]
    rows = [{"query": one.question.text, "positive": [chunk.content for chunk in one.positives],
             "negative": [chunk.content for chunk in one.negatives]} for one in usable]
    return Exported(_write_table(rows, to, (".jsonl", ".parquet")), len(every) - len(usable))


def _write_beir(benchmark: Benchmark, every: Sequence[Labelled], to: Path) -> Exported:
    usable = [one for one in every if one.positives]
    chunks = {chunk.id: chunk for one in every for chunk in (*one.positives, *one.negatives)}
    chunks |= {chunk.id: chunk for chunk in benchmark.shared}
    graded = [(one.question.id, chunk.id, grade) for one in usable
              for chunk, grade in (*one.positives.items(), *((chunk, 0) for chunk in one.negatives))]
    with replacing(to) as folder:
        _write_lines(({"_id": chunk.id, **_split_title(benchmark, chunk)} for chunk in chunks.values()),
                     folder / "corpus.jsonl")
        _write_lines(({"_id": one.question.id, "text": one.question.text} for one in usable), folder / "queries.jsonl")
        (folder / "qrels").mkdir()
        with (folder / "qrels" / "test.tsv").open("x", encoding="utf-8", newline="") as file:
            csv.writer(file, delimiter="\t", lineterminator="\n").writerows(
                [("query-id", "corpus-id", "score"), *graded])
    return Exported(len(graded), len(every) - len(usable))


def _split_title(benchmark: Benchmark, chunk: Chunk) -> Row:
    """Return title and text. Harnesses join the two, so that a title in the text would be there twice."""
    document = benchmark.documents.get(chunk.document)
    title = document.title if document is not None else ""
    own = bool(title) and chunk.content.startswith(f"{title}\n")
    return {"title": title if own else "", "text": chunk.content[len(title):].lstrip() if own else chunk.content}


def _count_without(every: Sequence[Labelled]) -> int:
    return sum(not (one.positives and one.negatives) for one in every)


def _write_table(rows: Sequence[Row], to: Path, endings: Sequence[str] = (".jsonl", ".csv", ".parquet")) -> int:
    ending = to.suffix.lower()
    if ending not in endings:
        raise SettingsError(f"{to}: unknown ending; use {', '.join(endings)}")
    if not rows:
        raise SettingsError(f"{to}: no question has both a gold passage and a negative, so nothing was written")
    with replacing_file(to) as partial:
        if ending == ".parquet":
            import pyarrow as pa
            import pyarrow.parquet as pq

            pq.write_table(pa.Table.from_pylist(list(rows)), partial)
        elif ending == ".csv":
            with partial.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
        else:
            _write_lines(rows, partial)
    return len(rows)


def _write_lines(rows: Iterator[Row] | Sequence[Row], path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


FORMATS: Mapping[str, Callable[[Benchmark, Sequence[Labelled], Path], Exported]] = {
    "triplets": _write_triplets, "n-tuples": _write_tuples, "mteb": _write_mteb, "beir": _write_beir}
