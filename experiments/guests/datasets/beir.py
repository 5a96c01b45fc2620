"""BEIR: any retrieval collection in BEIR's layout, for retrieval alone.

Paper: Thakur, Reimers, Rücklé, Srivastava, Gurevych, "BEIR: A Heterogeneous Benchmark for Zero-shot Evaluation of
Information Retrieval Models", NeurIPS 2021, arXiv:2104.08663. Code and data: github.com/beir-cellar/beir; each
collection has its own licence.

A folder with `corpus.jsonl`, `queries.jsonl` and `qrels/test.tsv` (or `.jsonl`, as in the hub's `mteb/...`); one
made-up row of each:

    {"_id": "4983", "title": "Reefs of Esk", "text": "The northern reef grew by two centimetres ...", "metadata": {}}
    {"_id": "1", "text": "Reefs near Esk are growing.", "metadata": {}}
    query-id    corpus-id    score
    1           4983         1
"""
from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from typing import Literal

from ragbed.experiments.benchmarks.base import About, Selection
from ragbed.experiments.benchmarks.hub import fetch_files
from ragbed.experiments.guests.datasets.qrels import (
    RECORDS,
    collection_files,
    judged_questions,
    read_corpus,
    read_qrels,
    read_topics,
)
from ragbed.experiments.question import RANKED, Benchmark, Question, Scheme

_PUBLISHED = {"scifact": ("beir_scifact",)}  # published figures by the name of the collection's folder


class Beir(Selection):
    """A retrieval collection in BEIR's layout, scored against judged documents.

    Attributes:
        path: the folder, or `hub:OWNER/NAME`.
        split: name of a file in `qrels`; the run asks its queries.
    """

    about = About(
        paper="BEIR: A Heterogeneous Benchmark for Zero-shot Evaluation of Information Retrieval Models (2021), "
              "https://arxiv.org/abs/2104.08663",
        licence="by collection", size="SciFact: 300 test queries over 5,183 abstracts",
        get="a folder from https://github.com/beir-cellar/beir, or the hub's mteb/NAME",
        settings={"reasoning": "search_only", "conditions": "retrieved", "retriever": {"kind": "dense", "k": 100}})
    scheme = replace(RANKED, itself_ignored=True)

    kind: Literal["beir"] = "beir"
    path: str
    split: str = "test"

    def scheme_of(self, questions: Collection[Question]) -> Scheme:
        """Add the collection's published figures, if they are known and the run asks its test split."""
        tables = _PUBLISHED.get(re.split(r"[/\\]", self.path.rstrip("/\\"))[-1].lower(), ())
        return replace(self.scheme, published=tables) if tables and self.split == "test" else self.scheme

    def whole(self) -> Benchmark:
        """Return all queries, over the whole corpus."""
        folder = fetch_files(self.path, also=("*.tsv",))
        documents, shared = read_corpus(collection_files(folder, "corpus"))
        qrels = collection_files(folder / "qrels", self.split, (".tsv", *RECORDS))[0]
        questions = judged_questions(read_qrels(qrels), read_topics(collection_files(folder, "queries")), qrels)
        return Benchmark(f"beir:{folder.name}", questions, documents, shared)
