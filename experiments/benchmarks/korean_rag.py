"""Korean RAG: questions in Korean on pages of Korean reports, each answered by one page.

Paper: Kim, Kim, Han, Kim, Ko, Lee, "AutoRAG: Automated Framework for optimization of Retrieval Augmented Generation
Pipeline", 2024, arXiv:2410.20878, whose authors made the set. Code and data:
github.com/Marker-Inc-Korea/AutoRAG-example-korean-embedding-benchmark, no licence stated; nothing of it is in this
project.

One passage of the published shape, which is the text of one page of a PDF, and one question, made up:

    {"doc_id": "finance - 에스크 은행 보고서.pdf - 4", "contents": "에스크 은행의 최저자본금은\\n250억원이다.",
     "metadata": {"last_modified_datetime": "2024-06-05T20:59:48.782"}}
    {"index": 0, "qid": "0_finance", "query": "에스크 은행의 최저자본금은 얼마인가요?",
     "generation_gt": ["250억원입니다."], "retrieval_gt": [["finance - 에스크 은행 보고서.pdf - 4"]]}
"""
from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal

from documents.errors import BenchmarkError
from documents.rows import Row, read_rows
from documents.types import Chunk, Document, Page
from experiments.benchmarks.base import About, Selection, files_below, gathered
from experiments.benchmarks.hub import fetched
from experiments.question import Benchmark, Gold, Question, Scheme

_PAGE = re.compile(r"(.+) - (\d{1,6})", re.DOTALL)


class KoreanRag(Selection):
    """Korean pages, all of which every question is searched over; `by:domain` tells their fields apart.

    Attributes:
        path: a folder with the passages and the questions, in files of any name, or `hub:OWNER/NAME`.
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
    path: str

    def load(self) -> Benchmark:
        """Load the chosen questions, over all pages.

        Raises:
            BenchmarkError: passages or questions are not there, or a record does not fit.
        """
        place = fetched(self.path)
        rows = [row for file in files_below(place) for row in read_rows(file)]
        pages: dict[str, Document] = {}
        for row in (row for row in rows if "doc_id" in row.fields):
            page = _page(row.id("doc_id"), row.text("contents"))
            if page.id in pages:
                row.fail("doc_id", "an id that no other passage has", page.id)
            pages[page.id] = page
        asked = [row for row in rows if "doc_id" not in row.fields]
        if not pages or not asked:
            raise BenchmarkError(f"{place}: expected a folder with the passages, which have a doc_id, in one file, and "
                                 "the questions in another")
        questions, _ = gathered((_question(row, pages), ()) for row in asked)
        shared = tuple(Chunk.of(page, "plain", 0, len(page.plain)) for page in pages.values())
        return self.select(Benchmark("korean_rag", questions, pages, shared))


def _page(id: str, text: str) -> Document:
    """A page as a document of its own, under the source of its PDF and with its number, where the id says them."""
    named = _PAGE.fullmatch(id)
    source, pages = (named[1], (Page(int(named[2]), 0, 0),)) if named else (id, ())
    return Document(id, source, source.removesuffix(".pdf"), "", text, pages)


def _question(row: Row, pages: Collection[str]) -> Question:
    id = row.id("qid", "index")
    answers = row.filled_texts("generation_gt")
    if not answers:
        row.fail("generation_gt", "at least one answer", [])
    domain = id.partition("_")[2]
    return Question(id=id, text=row.filled("query"), answers=answers, answerable=True, gold=_gold(row, pages),
                    tags={"language": ("ko",), **({"domain": (domain,)} if domain else {})})


def _gold(row: Row, pages: Collection[str]) -> tuple[Gold, ...]:
    """The pages that all lists name: every published list is of one page."""
    lists = row.fields.get("retrieval_gt")
    if not isinstance(lists, list) or not lists or not all(
            isinstance(ids, list) and ids and all(isinstance(id, str) for id in ids) for ids in lists):
        row.fail("retrieval_gt", "lists of passages' ids", lists)
    named = dict.fromkeys(id for ids in lists for id in ids)
    for id in named:
        if id not in pages:
            row.fail("retrieval_gt", "the id of a passage", id)
    return tuple(map(Gold, named))
