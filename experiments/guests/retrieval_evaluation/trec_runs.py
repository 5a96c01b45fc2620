"""Compare retrievers: the cells of a run that only searches, and TREC runs of other programs. A TREC run has one line
per document found: `query Q0 document rank score tag`."""
from __future__ import annotations

import ctypes
import gzip
import io
import math
import re
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, product
from pathlib import Path
from typing import Any

import numpy as np

from ragbed.documents.errors import BenchmarkError, SettingsError
from ragbed.documents.paths import expand_path
from ragbed.experiments.analysis.notes import note_unranked
from ragbed.experiments.analysis.pairs import select_pairs
from ragbed.experiments.formatting import ON_INTERVALS, verdict
from ragbed.experiments.guests.run_comparison.compared_run import read_compared_run
from ragbed.experiments.metrics import Estimate, Scored, ScoredQuestion, ScoredRow, aggregate, score
from ragbed.experiments.question import Question, unique_gold
from ragbed.experiments.record import Result
from ragbed.experiments.statistics import Clusters, Comparison, cluster_questions, compare, pair_scores
from ragbed.retrieval.storage.files import explain_write_error, write_atomically

Rankings = Mapping[str, Sequence[str]]  # ids of documents by query, best first
ScoredRankings = Mapping[str, Mapping[str, float | None]]  # score of each document by query, best first
_COLUMNS = 6
_LARGEST = 1e38  # larger scores are not finite in single precision
_MAX_LINE = 1 << 16  # maximum characters of a line
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,3})?")


def read_run(file: Path) -> Rankings:
    """Read the rankings of a TREC run, plain or `.gz`, ordered by score as trec_eval does, not by the column `rank`;
    ties go to the greater document id. Raises BenchmarkError if the file cannot be read or a line is invalid."""
    found: dict[str, dict[str, float]] = {}
    place = expand_path(file)
    if place.exists() and not place.is_file():
        raise BenchmarkError(f"{file}: not a regular file; name a file")
    for number, line in _lines(place):
        columns = line.split()
        if len(columns) != _COLUMNS or not _NUMBER.fullmatch(columns[4]) or not math.isfinite(float(columns[4])):
            raise BenchmarkError(f"{file}, line {number}: expected query, Q0, document, rank, score and tag, "
                                 f"found {line.strip()[:60]!r}")
        query, document = columns[0], columns[2]
        if document in found.setdefault(query, {}):
            raise BenchmarkError(f"{file}, line {number}: the document {document} is ranked twice for the query "
                                 f"{query}")
        # As in trec_eval, scores that are equal in single precision are ties.
        found[query][document] = ctypes.c_float(float(columns[4])).value
    if not found:
        raise BenchmarkError(f"{file}: the file is empty")
    return {query: sorted(sorted(scores, reverse=True), key=scores.__getitem__, reverse=True)
            for query, scores in found.items()}


def write_run(file: Path, rankings: ScoredRankings, tag: str) -> None:
    """Write rankings as a TREC run, compressed if the name ends in `.gz`. The scores are the retriever's, as
    `falling_scores` describes. Raises SettingsError if an id contains whitespace or the file cannot be written."""
    _write_lines(file, _run_lines(rankings, re.sub(r"\s+", "-", tag.strip()) or "ragbed"))


def write_qrels(file: Path, questions: Sequence[Question]) -> bool:
    """Write the gold and the other judgements of questions as TREC qrels. Return False, without writing, if gold is
    finer than documents. Raises SettingsError as `write_run` does."""
    if any((item.chunk, item.start, item.page) != (None, None, None) for one in questions for item in one.gold):
        return False
    _write_lines(file, (f"{_checked(one.id)} 0 {_checked(document)} {grade}\n" for one in questions
                        for document, grade in {**{item.document: item.relevance for item in one.gold},
                                                **dict.fromkeys(one.irrelevant, 0), **one.junk}.items()))
    return True


def _write_lines(file: Path, lines: Iterable[str]) -> None:
    text = "".join(lines).encode()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, gzip.compress(text, mtime=0) if file.suffix == ".gz" else text)
    except OSError as error:
        raise SettingsError(f"{file}: {explain_write_error(error)}") from error


def _run_lines(rankings: ScoredRankings, tag: str) -> Iterator[str]:
    for query, found in rankings.items():
        scores = falling_scores(list(found.values()))
        for rank, (document, own) in enumerate(zip(found, scores, strict=True), start=1):
            yield f"{_checked(query)} Q0 {_checked(document)} {rank} {own:.9g} {tag}\n"


def _checked(id: str) -> str:
    if not id or re.search(r"\s", id):
        raise SettingsError(f"the id {id[:60]!r} is empty or contains whitespace, which a TREC run cannot express; "
                            "omit --runs")
    return id


def falling_scores(scores: Sequence[float | None]) -> list[float]:
    """Return scores that fall strictly in single precision, so that every reader keeps the order of the ranking.

    Equal scores are lowered by the least that single precision can express. If a score is missing or rises, as in a
    merged list of several searches, the scores fall by one per rank to 1.
    """
    known = [one for one in scores if one is not None and abs(one) < _LARGEST]
    if len(known) < len(scores) or any(later > earlier for earlier, later in pairwise(known)):
        return [float(len(scores) - place) for place in range(len(scores))]
    falling: list[np.float32] = []
    for own in np.asarray(known, np.float32):
        falling.append(min(own, np.nextafter(falling[-1], np.float32(-np.inf))) if falling else own)
    return [float(one) for one in falling]


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream, \
                io.TextIOWrapper(stream, encoding="utf-8-sig", newline="\n") as lines:
            number = 0
            while line := lines.readline(_MAX_LINE):
                number += 1
                if len(line) == _MAX_LINE:
                    raise BenchmarkError(f"{file}, line {number}: longer than {_MAX_LINE:,} characters; expected a "
                                         "TREC run")
                if line.strip():
                    yield number, line
    except (OSError, EOFError, zlib.error) as error:
        raise BenchmarkError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    except UnicodeDecodeError as error:
        raise BenchmarkError(f"{file}: cannot be read as text in UTF-8: {error}") from error


def extract_rankings(results: Iterable[Result], questions: Collection[Question]) -> ScoredRankings:
    """Return the documents that a cell found for each question with their scores, ranked by their best chunk and named
    as in the gold."""
    named = {item.document for question in questions for item in question.gold}
    rankings: dict[str, dict[str, float | None]] = {}
    for result in results:
        found = rankings[result.question] = {}
        for one in result.in_view:
            if not (one.repeats and one.document == result.question):
                found.setdefault(one.source if one.source in named else one.document, one.score)
    return rankings


def score_rankings(rankings: Rankings, questions: Iterable[Question],
              wanted: Iterable[str] = ()) -> dict[str, ScoredQuestion]:
    """Score another program's rankings by question, with the wanted ranking metrics; a question without a ranking
    scores 0. Raises SettingsError if gold is finer than documents."""
    names = list(wanted)
    return {one.id: ScoredQuestion(one.answerable, "searched", score(
        _score(rankings.get(one.id, ()), one), groups=("ranking", "judgements"), wanted=names)) for one in questions}


def _score(ranked: Iterable[str], question: Question) -> Scored:
    gold = unique_gold(question.gold)
    places = {item.document: place for place, item in enumerate(gold)}
    if len(places) < len(gold) or any(item.page is not None or (item.start is not None and item.chunk is None)
                                      for item in gold):
        raise SettingsError(f"the gold of question {question.id} is part of a document, but a TREC run ranks whole "
                            "documents; omit --run")
    ranked = list(ranked)
    held = {number: frozenset([places[name]] if name in places else ()) for number, name in enumerate(ranked, start=1)}
    grades = tuple(item.relevance for item in gold)
    return Scored("searched", question.answerable, hits=held, gold_total=len(gold), searched=True, grades=grades,
                  names=dict(enumerate(ranked, start=1)),
                  judged={**dict.fromkeys(question.irrelevant, 0), **question.junk})


@dataclass(frozen=True, slots=True)
class Ranker:
    """A retriever: a cell of a run, or another program."""

    name: str
    metrics: Mapping[str, Estimate]
    answers: Mapping[str, ScoredRow]  # scores by question id
    row: Mapping[str, Any] | None = None  # the cell in the run's summary; None for another program


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Figures of retrievers, and paired comparisons by the first metric."""

    columns: Sequence[str]
    lines: Sequence[Ranker]
    pairs: Sequence[tuple[Ranker, Ranker, Comparison]]
    notes: Sequence[str]

    def as_json(self) -> dict[str, Any]:
        return {"columns": list(self.columns),
                "lines": [{"name": one.name, "cell": one.row["id"] if one.row else None, "n": len(one.answers),
                           "metrics": dict(one.metrics)} for one in self.lines],
                "comparisons": [{"first": first.name, "second": second.name, "metric": found.metric, **found.plain(),
                                 "verdict": verdict(found)} for first, second, found in self.pairs],
                "notes": list(self.notes)}


def evaluate_run(path: Path, foreign: Mapping[str, Rankings], notes: Sequence[str]) -> Evaluation:
    """Evaluate the cells of a finished run and other programs' rankings for its questions. Cells are compared if they
    differ in exactly one factor, and other programs with every retriever. p is corrected over all comparisons. Raises
    SettingsError if rankings are for other queries, or gold is finer than documents."""
    side = read_compared_run(path)
    labels = {cell.first["id"]: label for label, cell in side.cells.items()}
    own = {id: Ranker(ranker_name(label, side.cells[label].first), side.cells[label].first["metrics"],
                    side.cells[label].answers, side.cells[label].first) for id, label in labels.items()}
    tested, bound = select_pairs(list(side.cells.values()))
    unit = side.made.scheme.unit
    others, said = _score_foreign(foreign, list(side.questions.values()), side.columns, side.seed, unit)
    pairs = [(own[first.first["id"]], own[second.first["id"]]) for _, first, second in tested]
    grouped = cluster_questions(side.questions.values(), unit)
    return _compare_all(side.columns, [*own.values()], others, pairs, grouped, side.seed, [*notes, *bound, *said])


def ranker_name(label: str, row: Mapping[str, Any]) -> str:
    """Return a cell's label, or the retriever's name if the run has a single cell."""
    return str(row["retriever"]) if label == row["reasoning"] and row.get("retriever") else label


def evaluate_rankings(foreign: Mapping[str, Rankings], questions: Sequence[Question],
                    columns: Sequence[str]) -> Evaluation:
    """Evaluate other programs' rankings for these questions. Raises SettingsError as `evaluate_run` does."""
    others, said = _score_foreign(foreign, questions, columns, 0)
    return _compare_all(columns, [], others, [], cluster_questions(questions), 0, [*note_unranked(questions), *said])


def _score_foreign(rankings: Mapping[str, Rankings], questions: Sequence[Question], columns: Sequence[str],
                   seed: int, unit: str = "question") -> tuple[list[Ranker], list[str]]:
    grouped = cluster_questions(questions, unit).of
    lines, notes = [], []
    for name, ranked in rankings.items():
        known = sum(one.id in ranked for one in questions)
        if not known:
            raise SettingsError(f"--run {name}: none of its {len(ranked)} queries is a question of this benchmark; "
                                "name a run over the same queries")
        scores = score_rankings(ranked, questions, columns)
        metrics = aggregate(list(scores.values()), seed=seed, clusters=[grouped[id] for id in scores])
        lines.append(Ranker(name, metrics, scores))
        notes.append(f"{name} ranks up to {max(map(len, ranked.values()))} documents per query; mrr and map are over "
                     "these.")
        if known < len(questions):
            notes.append(f"{name} ranks nothing for {len(questions) - known} of {len(questions)} questions, which score"
                         " 0.")
        if len(ranked) > known:
            notes.append(f"{len(ranked) - known} queries of {name} are not questions here and are left out.")
    return lines, notes


def _compare_all(columns: Sequence[str], own: Sequence[Ranker], others: Sequence[Ranker],
              pairs: Sequence[tuple[Ranker, Ranker]], grouped: Clusters, seed: int, notes: Sequence[str]) -> Evaluation:
    every = [*pairs, *product(own, others), *combinations(others, 2)]
    metric = columns[0].split(" / ")[0]
    found = compare([pair_scores(metric, first.answers, second.answers, grouped.of) for first, second in every], seed)
    told = [*notes, *grouped.notes(len(every)), *([ON_INTERVALS] if every else [])]
    if len(every) > 1:
        told.append(f"p (Holm) is corrected for the {len(every)} comparisons shown.")
    return Evaluation(columns, [*own, *others],
                      [(first, second, one) for (first, second), one in zip(every, found, strict=True)],
                      list(dict.fromkeys(told)))
