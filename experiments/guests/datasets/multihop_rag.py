"""MultiHop-RAG: queries over several news articles of one collection. It does not answer some of the queries.

Paper: Tang, Yang, "MultiHop-RAG: Benchmarking Retrieval-Augmented Generation for Multi-Hop Queries", 2024,
arXiv:2401.15391. Code and data: github.com/yixuantt/MultiHop-RAG, ODC-By 1.0 (the articles are their publishers');
not included in this project.

One made-up query in the published format of `MultiHopRAG.json`, and one made-up article of `corpus.json`:

    {"query": "Do 'Esk News' and 'Lund Post' both say that the harbour was closed in May 2023?",
     "answer": "Yes", "question_type": "comparison_query",
     "evidence_list": [{"title": "Harbour shut", "author": "A. Prell", "url": "https://esk.example/harbour",
                        "source": "Esk News", "category": "business", "published_at": "2023-05-04T08:00:00+00:00",
                        "fact": "The harbour of Esk was closed on 3 May."}, ...]}
    {"title": "Harbour shut", "author": "A. Prell", "source": "Esk News", "category": "business",
     "published_at": "2023-05-04T08:00:00+00:00", "url": "https://esk.example/harbour", "body": "... was closed ..."}

A collection may also have only the evidence, as a list of texts in `facts`, with the address as `_id`.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Literal

from pydantic import Field

from ragbed.documents.chunkers import Sections
from ragbed.documents.errors import BenchmarkError
from ragbed.documents.rows import Row, convert_records
from ragbed.documents.types import Chunk, Document, digest
from ragbed.experiments.benchmarks.base import About, RecordFiles, collect_questions
from ragbed.experiments.benchmarks.fields import passage, pieces, unique_id
from ragbed.experiments.guests.datasets.splits import split_by_field
from ragbed.experiments.question import Benchmark, Gold, Question, Scheme

_NONE = "null_query"


class MultiHopRag(RecordFiles):
    """MultiHop-RAG: all queries search the same collection.

    Attributes:
        path: a folder with files of queries and articles under any name, or `hub:OWNER/NAME`.
        size: target size of a chunk of an article's body, in characters; the paper uses 256 tokens.
    """

    about = About(
        paper="MultiHop-RAG: Benchmarking Retrieval-Augmented Generation for Multi-Hop Queries (2024), "
              "https://arxiv.org/abs/2401.15391",
        licence="ODC-By 1.0", size="2,556 queries over 609 news articles, 301 of them unanswerable",
        get="hub:yixuantt/MultiHopRAG, or a folder with its MultiHopRAG.json and corpus.json",
        settings={"rules": "grounded", "brief": True, "conditions": "retrieved",
                  "retriever": {"kind": "dense", "k": 10}})
    scheme = Scheme(groups=("answers", "overlap", "ranking", "form"), rubric="grades",
                    columns=("correct / partial / wrong", "refusal_accuracy", "recall@10", "map", "mrr"),
                    views=("by:question_type",))

    kind: Literal["multihop_rag"] = "multihop_rag"
    path: str = "hub:yixuantt/MultiHopRAG"
    size: int = Field(default=1000, ge=1)

    def whole(self) -> Benchmark:
        """Return all queries, over the whole collection."""
        articles, asked = split_by_field(self.rows(), "query")
        if not articles or not asked:
            raise BenchmarkError(f"{self.path}: expected a folder with the queries in one file and the articles in "
                                 "another, such as MultiHopRAG.json and corpus.json")
        made = list(convert_records(partial(_article, size=self.size), articles))
        corpus, seen = {document.id: document for document, _ in made}, Counter[str]()
        questions, _ = collect_questions(convert_records(lambda row: (_question(row, corpus, seen), ()), asked))
        return Benchmark("multihop_rag", questions, corpus,
                         shared=tuple(chunk for _, chunks in made for chunk in chunks))


def _article(row: Row, size: int) -> tuple[Document, tuple[Chunk, ...]]:
    """Return an article with its address as id. Each chunk begins with title, source and date, since queries use them.
    """
    title = f"{row.text('title')} ({row.text('source')}, {row.text('published_at')[:10]})"
    if "facts" in row.fields:
        facts = row.texts("facts")
        document, _ = passage("\n".join(facts), title, row.id("url", "_id"))
        return document, tuple(pieces(document, facts).values())
    document, _ = passage(row.text("body"), title, row.id("url", "_id"))
    spans = Sections(target=size, largest=2 * size).chunk(document, "plain")
    return document, tuple(Chunk.of(document, "plain", span.start, span.end, f"{title}\n" if span.start else "")
                           for span in spans)


def _question(row: Row, corpus: Mapping[str, Document], seen: Counter[str]) -> Question:
    text, kind = row.filled("query"), row.text("question_type")
    gold = [_gold(part, corpus) for part in row.parts("evidence_list")]
    answerable = kind != _NONE
    return Question(
        id=row.stated_id() or unique_id(digest(text)[:12], seen), text=text, answerable=answerable,
        answers=(row.filled("answer"),) if answerable else (), gold=tuple(dict.fromkeys(gold)),
        tags={"question_type": (kind,)})


def _gold(part: Row, corpus: Mapping[str, Document]) -> Gold:
    """Return the position of the fact in its article, or the whole article if it words the fact differently."""
    address, fact = part.text("url"), part.text("fact").strip()
    start = corpus[address].plain.find(fact) if address in corpus else -1
    return Gold(address) if start < 0 else Gold(address, format="plain", start=start, end=start + len(fact))
