"""AutoRAG's Korean questions over pages of PDF files."""
from __future__ import annotations

from pathlib import Path

from documents.rows import Row, read_rows
from experiments.converters.crest_paragraphs import Item, Paragraph


def korean_items(folder: Path) -> list[Item]:
    """The questions of `qa_v4.jsonl`, each with its gold page; the other pages of its field are there to be added.

    Raises:
        BenchmarkError: a file cannot be read, or a question names a page that is not there.
    """
    pages = {row.text("doc_id"): row.text("contents") for row in read_rows(folder / "ocr_corpus_v3.jsonl")}
    return [_item(row, pages) for row in read_rows(folder / "qa_v4.jsonl")]


def _item(row: Row, pages: dict[str, str]) -> Item:
    groups = row.fields.get("retrieval_gt")
    gold = [name for group in groups if isinstance(group, list) for name in group] if isinstance(groups, list) else []
    if not gold or any(name not in pages for name in gold):
        row.fail("retrieval_gt", "lists of pages in ocr_corpus_v3.jsonl", groups)
    answers = row.fields.get("generation_gt")
    if not isinstance(answers, list) or not answers or not isinstance(answers[0], str):
        row.fail("generation_gt", "a list of texts", answers)
    field = gold[0].partition(" - ")[0]
    return Item(
        id=row.text("qid"), query=row.text("query"), answer=answers[0], language="ko", difficulty="SimpleQA",
        reasoning="textual reasoning", kind="", field=field,
        paragraphs=tuple(Paragraph("", pages[name], name, gold=True) for name in dict.fromkeys(gold)),
        more=tuple(Paragraph("", text, name) for name, text in pages.items()
                   if name.startswith(f"{field} - ") and name not in gold))
