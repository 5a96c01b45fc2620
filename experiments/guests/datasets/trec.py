"""TREC: a test collection of qrels, topics and a corpus, for retrieval alone.

Format: trec.nist.gov/data/qrels_eng; each collection has its own terms of use. A line of `qrels.txt` (query, iteration,
document, relevance), one of `topics.tsv` (id, tab, query), and, of a corpus of passages, one of `corpus.jsonl`, made
up:

    301 0 ESK-0042 1
    301    What closed the harbour of Esk?
    {"_id": "ESK-0042", "title": "Harbour shut", "text": "A landslide closed the harbour on 3 May."}
"""
from __future__ import annotations

from typing import Literal

from ragbed.documents.paths import expand_path
from ragbed.experiments.benchmarks.base import About, Selection, files_below, files_in
from ragbed.experiments.benchmarks.hub import fetch_files
from ragbed.experiments.guests.datasets.qrels import (
    RECORDS,
    collection_files,
    judged_questions,
    read_corpus,
    read_qrels,
    read_topics,
)
from ragbed.experiments.question import RANKED, Benchmark

_TEXT = (".tsv", ".txt")


class Trec(Selection):
    """A TREC test collection, scored against judged documents.

    Attributes:
        path: the file of qrels, or a folder with `qrels.txt`, `topics.tsv` or `queries.jsonl`, and `corpus.jsonl` or a
            folder `corpus`.
        topics: the file of topics, if it is not in `path`.
        corpus: the corpus, if it is not in `path`: a file or folder of passages in BEIR's format, or a folder of pages
            that the qrels name by path.
    """

    about = About(
        paper="Text REtrieval Conference: test collections, https://trec.nist.gov",
        licence="by collection", size="by collection", get="qrels, topics and a corpus in one folder",
        settings={"reasoning": "search_only", "conditions": "retrieved", "retriever": {"kind": "dense", "k": 100}})
    scheme = RANKED

    kind: Literal["trec"] = "trec"
    path: str
    topics: str | None = None
    corpus: str | None = None

    def whole(self) -> Benchmark:
        """Return all queries, over the whole corpus."""
        path = fetch_files(self.path, also=("*.tsv", "*.txt", "*.qrels"))
        folder = path if path.is_dir() else path.parent if path.parent.name else path.absolute().parent
        qrels = collection_files(path, "qrels", (*_TEXT, ".qrels", *RECORDS))[0] if path.is_dir() else path
        named = [folder / f"topics{suffix}" for suffix in (*_TEXT, *RECORDS)] if self.topics is None else []
        topics = [expand_path(self.topics)] if self.topics is not None else (
            [file for file in named if file.is_file()][:1] or collection_files(folder, "queries", (*RECORDS, *_TEXT)))
        name, questions = f"trec:{folder.name}", judged_questions(read_qrels(qrels), read_topics(topics), qrels)
        place = folder / "corpus" if self.corpus is None else expand_path(self.corpus)
        if place.is_dir() and not files_in(place, RECORDS):
            return Benchmark(name, questions, corpus=str(place))
        files = collection_files(folder, "corpus") if self.corpus is None else files_below(place, RECORDS)
        return Benchmark(name, questions, *read_corpus(files))
