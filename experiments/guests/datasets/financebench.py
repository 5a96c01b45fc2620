"""FinanceBench: questions of financial analysts on companies' filings, with the pages that answer them.

Paper: Islam, Kannappan, Kiela, Qian, Scherrer, Vidgen, "FinanceBench: A New Benchmark for Financial Question
Answering", 2023, arXiv:2311.11944. Code, data and PDFs: github.com/patronus-ai/financebench, CC BY-NC 4.0; not
included in this project.

One made-up row in the published format of `financebench_open_source.jsonl`; pages count from 0:

    {"financebench_id": "financebench_id_00001", "company": "Esk Rail", "doc_name": "ESKRAIL_2022_10K",
     "question_type": "metrics-generated", "question_reasoning": "Information extraction", "domain_question_num": null,
     "question": "What is the FY2022 capital expenditure of Esk Rail in USD millions?", "answer": "$12.50",
     "justification": "Stated in the cash flow statement.", "dataset_subset_label": "OPEN_SOURCE",
     "evidence": [{"evidence_text": "Purchases of equipment 12.5", "doc_name": "ESKRAIL_2022_10K",
                   "evidence_page_num": 59, "evidence_text_full_page": "Cash flows ... Purchases of equipment 12.5"}]}
"""
from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Literal

from ragbed.documents.paths import expand_path
from ragbed.documents.rows import Row, convert_records
from ragbed.documents.types import Chunk, Document, Page
from ragbed.experiments.benchmarks.base import About, Loaded, RecordFiles, collect_questions
from ragbed.experiments.benchmarks.fields import make_tags
from ragbed.experiments.benchmarks.hub import fetch_files
from ragbed.experiments.question import Benchmark, Gold, Question, Scheme

_FILE = "financebench_open_source.jsonl"


class FinanceBench(RecordFiles):
    """FinanceBench's open-source questions. `provided` shows the evidence pages, and `retrieved` searches the PDFs.

    Attributes:
        path: the file of the questions, or a folder with it and the PDFs in `pdfs`.
        corpus: the folder of the PDFs, if they are elsewhere. Questions whose PDF is there have the tag `pdf=here`.
    """

    about = About(
        paper="FinanceBench: A New Benchmark for Financial Question Answering (2023), "
              "https://arxiv.org/abs/2311.11944",
        licence="CC BY-NC 4.0", size="150 questions on 84 filings", settings={"rules": "grounded"},
        get="https://github.com/patronus-ai/financebench: data/financebench_open_source.jsonl, and the folder pdfs")
    scheme = Scheme(groups=("answers", "overlap", "ranking", "form"), rubric="grades",
                    columns=("correct / partial / wrong", "refused_answerable", "citation_f1"),
                    views=("by:question_type",))

    kind: Literal["financebench"] = "financebench"
    corpus: str | None = None

    def whole(self) -> Benchmark:
        """Return all questions. They search the PDFs if these are available."""
        beside = fetch_files(self.path) / "pdfs"
        pdfs = expand_path(self.corpus) if self.corpus is not None else beside if beside.is_dir() else None
        questions, documents = collect_questions(convert_records(partial(_question, pdfs=pdfs), self.rows()))
        return Benchmark("financebench", questions, documents, corpus=None if pdfs is None else str(pdfs))

    def files(self) -> list[Path]:
        """List the file of the questions."""
        files = super().files()
        return [file for file in files if file.name == _FILE] or files


def _question(row: Row, pdfs: Path | None) -> Loaded:
    name = row.text("doc_name")
    pages = {(page.source, page.pages[0].number): page for page in map(_page, row.parts("evidence"))}
    here = pdfs is not None and (pdfs / f"{name}.pdf").is_file()
    return Question(
        id=row.id("financebench_id"), text=row.filled("question"), answers=(row.filled("answer"),), answerable=True,
        gold=tuple(Gold(source, page=number) for source, number in pages),
        provided=tuple(Chunk.of(page, "plain", 0, len(page.plain)) for page in pages.values()),
        tags=make_tags(question_type=row.text("question_type"), reasoning=row.optional("question_reasoning"),
                    company=row.text("company"), pdf="here" if here else "absent")), pages.values()


def _page(part: Row) -> Document:
    """Return the page with the evidence as a document of one page, with its PDF as source."""
    name, number = part.text("doc_name"), part.number("evidence_page_num") + 1
    text = part.optional("evidence_text_full_page") or part.text("evidence_text")
    return Document(f"{name}.pdf#{number}", f"{name}.pdf", name, "", text, (Page(number, 0, 0),))
