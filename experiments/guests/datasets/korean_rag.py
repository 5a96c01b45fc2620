"""Korean RAG: questions in Korean on pages of Korean reports, each answered by one page.

Paper: Kim, Kim, Han, Kim, Ko, Lee, "AutoRAG: Automated Framework for optimization of Retrieval Augmented Generation
Pipeline", 2024, arXiv:2410.20878, whose authors made the set. Code and data:
github.com/Marker-Inc-Korea/AutoRAG-example-korean-embedding-benchmark, no licence stated; not included in this project.

One made-up passage in the published format, which is the text of one page of a PDF, and one made-up question:

    {"doc_id": "finance - 에스크 은행 보고서.pdf - 4", "contents": "에스크 은행의 최저자본금은\\n250억원이다.",
     "metadata": {"last_modified_datetime": "2024-06-05T20:59:48.782"}}
    {"index": 0, "qid": "0_finance", "query": "에스크 은행의 최저자본금은 얼마인가요?",
     "generation_gt": ["250억원입니다."], "retrieval_gt": [["finance - 에스크 은행 보고서.pdf - 4"]]}
"""
from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal

from ragbed.documents.errors import BenchmarkError
from ragbed.documents.rows import Row, convert_records
from ragbed.documents.types import Chunk, Document, Page
from ragbed.experiments.benchmarks.base import About, RecordFiles, collect_questions
from ragbed.experiments.benchmarks.fields import make_tags
from ragbed.experiments.guests.datasets.splits import split_by_field
from ragbed.experiments.question import Benchmark, Gold, Question, Scheme

_PAGE = re.compile(r"(.+) - (\d{1,6})", re.DOTALL)


class KoreanRag(RecordFiles):
    """Korean RAG: every question searches all pages. `by:domain` shows the figures of each domain.

    Attributes:
        path: a folder with files of passages and questions under any name, or `hub:OWNER/NAME`.
    """

    about = About(
        paper="AutoRAG: Automated Framework for optimization of Retrieval Augmented Generation Pipeline (2024), "
              "https://arxiv.org/abs/2410.20878",
        licence="none stated", size="114 questions over 720 pages",
        get="https://github.com/Marker-Inc-Korea/AutoRAG-example-korean-embedding-benchmark: the corpus and the "
            "questions as .parquet or .jsonl",
        settings={"rules": "grounded", "conditions": "retrieved", "retriever": {"kind": "bm25", "k": 10}})
    scheme = Scheme(groups=("answers", "overlap", "ranking", "form"), rubric="grades",
                    columns=("correct / partial / wrong", "refused_answerable", "recall@10", "mrr"),
                    views=("by:domain",))

    kind: Literal["korean_rag"] = "korean_rag"

    def whole(self) -> Benchmark:
        """Return all questions, over all pages."""
        asked, passages = split_by_field(self.rows(), "doc_id")
        if not passages or not asked:
            raise BenchmarkError(f"{self.path}: expected a folder with the passages, which have a doc_id, in one file, "
                                 "and the questions in another")
        pages: dict[str, Document] = {}

        def page(row: Row) -> Document:
            made = _page(row.id("doc_id"), row.text("contents"))
            return made if pages.setdefault(made.id, made) is made else row.fail(
                "doc_id", "an id that no other passage has", made.id)

        shared = tuple(Chunk.of(one, "plain", 0, len(one.plain)) for one in convert_records(page, passages))
        questions, _ = collect_questions(convert_records(lambda row: (_question(row, pages), ()), asked))
        return Benchmark("korean_rag", questions, pages, shared)


def _page(id: str, text: str) -> Document:
    """Return a page as a document, with its PDF as source and its page number if the id has them."""
    named = _PAGE.fullmatch(id)
    source, pages = (named[1], (Page(int(named[2]), 0, 0),)) if named else (id, ())
    return Document(id, source, source.removesuffix(".pdf"), "", text, pages)


def _question(row: Row, pages: Collection[str]) -> Question:
    id, answers = row.id("qid", "index"), row.filled_texts("generation_gt")
    if not answers:
        row.fail("generation_gt", "at least one answer", [])
    return Question(id=id, text=row.filled("query"), answers=answers, answerable=True, gold=_gold(row, pages),
                    tags=make_tags(language="ko", domain=id.partition("_")[2]))


def _gold(row: Row, pages: Collection[str]) -> tuple[Gold, ...]:
    """Return the pages in all lists. Every published list has one page."""
    lists = row.fields.get("retrieval_gt")
    if not isinstance(lists, list) or not lists or not all(
            isinstance(ids, list) and ids and all(isinstance(id, str) for id in ids) for ids in lists):
        row.fail("retrieval_gt", "lists of passages' ids", lists)
    named = dict.fromkeys(id if id in pages else row.fail("retrieval_gt", "the id of a passage", id)
                          for ids in lists for id in ids)
    return tuple(map(Gold, named))
