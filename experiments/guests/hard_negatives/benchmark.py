"""A benchmark with hard negatives mined by `ragbed negatives`.

The questions and their scoring come from the source benchmark. Mined negatives fill up the field `provided`, and are
listed in `negatives`. `mined` records how each was mined, and how hard it is. The perturbations `negatives@N` and
`pool@N` use only mined negatives, from each miner in turn. manifest.json records the source, the settings, and the
hashes of the files:

    manifest.json questions.jsonl chunks.jsonl documents.jsonl decisions.jsonl
"""
from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from ragbed.documents.errors import BenchmarkError
from ragbed.documents.paths import expand_path
from ragbed.documents.rows import Row, read_rows
from ragbed.documents.types import Chunk, Document
from ragbed.experiments.benchmarks.base import About, Selection
from ragbed.experiments.question import Benchmark, Question, Scheme
from ragbed.retrieval.storage.files import check_seal, find_changed, read_object
from ragbed.retrieval.storage.manifest import MANIFEST

QUESTIONS, CHUNKS, DOCUMENTS, DECISIONS = "questions.jsonl", "chunks.jsonl", "documents.jsonl", "decisions.jsonl"
VERSION: Literal[2] = 2
_PLACES = ("provided", "pool", "whole", "negatives")


@dataclass(frozen=True, slots=True)
class _PlacedQuestion:
    """A question without its chunks, and the ids of the chunks in each of its fields."""

    question: Question
    provided: tuple[str, ...] = ()
    pool: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    negatives: tuple[str, ...] = ()
    table: str | None = None


@dataclass(frozen=True, slots=True)
class _StoredChunk:
    """A chunk, and whether all questions may search it."""

    chunk: Chunk
    shared: bool = False


_PLACED, _BROUGHT, _DOCUMENT = TypeAdapter(_PlacedQuestion), TypeAdapter(_StoredChunk), TypeAdapter(Document)


class MinedManifest(BaseModel):
    """The sources and settings of a mined benchmark. It has no timestamps, so equal input gives equal files.

    Attributes:
        benchmark: settings of the source benchmark; its kind decides how answers are scored.
        corpus: the source benchmark's folder of pages, if any.
        mining: settings of the mining.
        collection: hashes of the chunks, the embedder and the miners.
        counts: candidates kept and rejected, by reason and by miner.
        short: by question id, why it has fewer negatives than requested.
        files: SHA-256 of every other file.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[2] = VERSION
    benchmark: dict[str, Any]
    name: str
    corpus: str | None = None
    attribution: str
    mining: dict[str, Any]
    collection: dict[str, Any]
    counts: dict[str, Any]
    short: dict[str, dict[str, Any]] = {}
    files: dict[str, str] = {}


def benchmark_lines(benchmark: Benchmark) -> dict[str, Iterator[str]]:
    """Return the lines of each file of a benchmark, by file name."""
    chunks = {chunk.id: _StoredChunk(chunk) for question in benchmark.questions for chunk in question.chunks}
    chunks |= {chunk.id: _StoredChunk(chunk, shared=True) for chunk in benchmark.shared}
    return {QUESTIONS: (_PLACED.dump_json(_place(question)).decode() for question in benchmark.questions),
            CHUNKS: (_BROUGHT.dump_json(brought).decode() for brought in chunks.values()),
            DOCUMENTS: (_DOCUMENT.dump_json(document).decode() for document in benchmark.documents.values())}


def read_manifest(folder: Path) -> MinedManifest:
    """Read the manifest of a mined benchmark, and check its hash. Raises BenchmarkError if it is missing, damaged, or
    of another version."""
    path = folder / MANIFEST
    try:
        text = read_object(path)
    except OSError as error:
        raise BenchmarkError(f"{folder}: not a mined benchmark: {MANIFEST} cannot be read; make one with "
                             "`ragbed negatives BENCHMARK PATH --per-question N --out DIR`") from error
    body = None if text is None else check_seal(text)
    if body is None:
        raise _damage_error(path)
    if body.get("version") != VERSION:
        raise BenchmarkError(f"{folder}: a mined benchmark of version {body.get('version')}, but this ragbed reads "
                             f"version {VERSION}; mine it again")
    try:
        return MinedManifest.model_validate(body)
    except ValidationError as error:
        raise _damage_error(path) from error


def read_benchmark(folder: Path, manifest: MinedManifest) -> Benchmark:
    """Read the questions with their chunks and documents, and check the hash of every file. Raises BenchmarkError if a
    file is missing or damaged."""
    path = find_changed({QUESTIONS: "", CHUNKS: "", DOCUMENTS: "", **manifest.files}, folder, verify=True)
    if path is not None:
        raise _damage_error(path)
    brought = [row.parse_as(_BROUGHT) for row in read_rows(folder / CHUNKS)]
    chunks = {one.chunk.id: one.chunk for one in brought}
    questions = tuple(_restore(row.parse_as(_PLACED), chunks, row) for row in read_rows(folder / QUESTIONS))
    documents = (row.parse_as(_DOCUMENT) for row in read_rows(folder / DOCUMENTS))
    return Benchmark(f"mined:{manifest.name}", questions, {document.id: document for document in documents},
                     tuple(one.chunk for one in brought if one.shared), manifest.corpus)


def _place(question: Question) -> _PlacedQuestion:
    ids = {place: tuple(chunk.id for chunk in getattr(question, place)) for place in _PLACES}
    bare = replace(question, provided=(), pool=(), whole=(), negatives=(), table=None)
    return _PlacedQuestion(bare, **ids, table=None if question.table is None else question.table.id)


def _restore(placed: _PlacedQuestion, chunks: Mapping[str, Chunk], row: Row) -> Question:
    try:
        found: dict[str, Any] = {place: tuple(chunks[id] for id in getattr(placed, place)) for place in _PLACES}
        return replace(placed.question, **found, table=None if placed.table is None else chunks[placed.table])
    except KeyError as error:
        row.fail("provided", f"ids of chunks of {CHUNKS}", error.args[0])


def _damage_error(path: Path) -> BenchmarkError:
    return BenchmarkError(f"{path}: missing or damaged; mine the benchmark again")


class MinedBenchmark(Selection):
    """A benchmark with mined hard negatives.

    Attributes:
        path: the folder that `ragbed negatives` wrote.
    """

    about = About(
        paper="that of the source benchmark, named in manifest.json",
        licence="that of the source benchmark", size="the questions of the source benchmark that were mined for",
        get="a folder written by `ragbed negatives BENCHMARK PATH --per-question N --out DIR`")

    kind: Literal["mined"] = "mined"
    path: str

    def whole(self) -> Benchmark:
        """Return the benchmark with the negatives of all questions."""
        folder = expand_path(self.path)
        return read_benchmark(folder, read_manifest(folder))

    def scheme_of(self, questions: Collection[Question]) -> Scheme:
        """Return the source benchmark's scheme without the tables of its paper, whose figures had other evidence."""
        return replace(source_settings(read_manifest(expand_path(self.path))).scheme_of(questions), published=())

    @classmethod
    def run_as(cls, fields: Mapping[str, Any], run: Mapping[str, Any] = MappingProxyType({})) -> Mapping[str, Any]:
        """Return the paper's settings of the source benchmark."""
        try:
            manifest = read_manifest(expand_path(str(fields.get("path", ""))))
            return source_settings(manifest).run_as(manifest.benchmark, run)
        except BenchmarkError:
            return super().run_as(fields, run)  # loading reports the error


def source_settings(manifest: MinedManifest) -> Selection:
    """Return the settings of the source benchmark. Raises BenchmarkError if this version of ragbed does not have it."""
    from ragbed.experiments.benchmarks.registry import BENCHMARKS

    try:
        return BENCHMARKS[manifest.benchmark["kind"]].model_validate(manifest.benchmark)
    except (KeyError, ValidationError) as error:
        raise BenchmarkError(f"mined from {manifest.name}, whose settings this version of ragbed does not accept; "
                             "mine it again"
                             ) from error
