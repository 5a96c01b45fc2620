"""Convert questions over paragraphs to records in CReSt's format.

The sources include AutoRAG's Korean questions over pages of PDF files. A record has ten chunks in text and HTML, with
gold positions. Half of the questions lack their gold.
"""
from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from conversion import Converter, Draw, Source, Sources, json_lines

from ragbed.documents.rows import Row, read_rows
from ragbed.experiments import Benchmark, Question
from ragbed.experiments.guests.datasets.crest import Split
from ragbed.experiments.guests.datasets.hotpotqa import HotpotQa
from ragbed.experiments.metrics import contains_answer
from ragbed.strategies.normalizing import normalize_answer


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One paragraph or page.

    Attributes:
        source: its name in the whole dataset.
        gold: whether it is needed for the answer to the question that has it.
    """

    title: str
    text: str
    source: str
    gold: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """One question.

    Attributes:
        kind: CReSt's optional `question_type`; empty where nothing is known.
        field: the subject whose paragraphs may be given to one another's questions.
        paragraphs: what is shown, in order.
        more: paragraphs that may be given to it, and to others.
    """

    id: str
    query: str
    answer: str
    language: str
    difficulty: str
    reasoning: str
    kind: str
    field: str
    paragraphs: tuple[Paragraph, ...]
    more: tuple[Paragraph, ...] = ()


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


_CHUNKS = 10  # of a question, as in CReSt
_HTML = 55  # percent of chunks, as in CReSt


def _files(sources: Sources, draw: Draw) -> Mapping[str, str]:
    items: list[Item] = []
    for path in sources.get("hotpotqa", ()):
        items += draw.limited(list(_hotpotqa(HotpotQa(path=str(path)).load())), lambda item: item.id)
    for path in sources.get("korean", ()):
        items += draw.limited(korean_items(path), lambda item: item.id)
    items = list({item.id: item for item in items}.values())  # two samples of one dataset may share a question
    pool = _Pool(items, draw)
    refused = {item.id for item in draw.ranked(items, lambda item: item.id, "refusal")[:len(items) // 2]}
    records: dict[Split, list[dict[str, Any]]] = {"non_refusal": [], "refusal": []}
    for item in items:
        records["refusal" if item.id in refused else "non_refusal"].append(
            pool.record(item, with_gold=item.id not in refused))
    return {f"{split}.jsonl": json_lines(made) for split, made in records.items()}


CONVERTER = Converter({
    "hotpotqa": Source(
        "HotpotQA, distractor setting (Yang et al. 2018), https://hotpotqa.github.io", "CC BY-SA 4.0",
        "a JSON or JSON Lines file of it",
        "Its ten paragraphs are the chunks, about 55 % of them rendered as HTML. Half of the questions lost their gold "
        "paragraphs to paragraphs of other questions; that nothing else among the ten answers them was not checked by "
        "people. Questions of level easy are SimpleQA, all others ComplexQA. No "
        "tables, no long pages, English alone."),
    "korean": Source(
        "AutoRAG's Korean evaluation set: pages of PDF files, questions and answers, "
        "https://github.com/Marker-Inc-Korea/AutoRAG", "none stated",
        "the folder with qa_v4.jsonl and ocr_corpus_v3.jsonl",
        "The gold page and nine pages of the same field are the chunks, about 55 % of them rendered as HTML; half of "
        "the questions lost the gold page. SimpleQA, since one page holds the answer."),
}, _files)


def _hotpotqa(benchmark: Benchmark) -> Iterator[Item]:
    for question in benchmark.questions:
        paragraphs = tuple(_paragraph(question, benchmark))
        tags = question.tags
        yield Item(
            id=question.id, query=question.text, answer=question.answers[0], language="en",
            difficulty="SimpleQA" if tags.get("level") == ("easy",) else "ComplexQA",
            reasoning="textual reasoning", kind=tags.get("type", ("",))[0], field="hotpotqa", paragraphs=paragraphs)


def _paragraph(question: Question, benchmark: Benchmark) -> Iterator[Paragraph]:
    gold = {item.document for item in question.gold}
    for chunk in question.provided:
        title = benchmark.documents[chunk.document].title
        yield Paragraph(title, chunk.content.removeprefix(f"{title}\n"), f"hotpotqa/{title}",
                        chunk.document in gold)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A paragraph that another question may be given."""

    of: str
    field: str
    paragraph: Paragraph


class _Pool:
    """Every paragraph under a number of its own, and those that stand in for others."""

    def __init__(self, items: Sequence[Item], draw: Draw) -> None:
        self._draw = draw
        sources = dict.fromkeys(paragraph.source for item in items for paragraph in item.paragraphs + item.more)
        self._docids = {source: number for number, source in enumerate(sources, 1)}
        seen: dict[str, _Candidate] = {}
        for item in items:
            for paragraph in (*item.paragraphs, *item.more):
                if not paragraph.gold:
                    seen.setdefault(paragraph.source, _Candidate(item.id, item.field, paragraph))
        self._candidates = list(seen.values())

    def record(self, item: Item, with_gold: bool) -> dict[str, Any]:
        """The record of a question; a gold paragraph that it loses is replaced where it stood."""
        fresh = self._negatives(item)
        shown = []
        for paragraph in item.paragraphs:
            kept = paragraph if with_gold or not paragraph.gold else next(fresh, None)
            if kept is not None:
                shown.append(kept)
        shown += islice(fresh, max(0, _CHUNKS - len(shown)))
        if item.more:  # they have no order of their own
            shown = self._draw.ranked(shown, lambda paragraph: paragraph.source, item.id, "order")
        documents = [self._document(paragraph) for paragraph in shown]
        return {
            "id": item.id, "query": item.query, "answer": item.answer,
            "documents": json.dumps(documents, ensure_ascii=False),
            "citation_ids": json.dumps([one["docid"] for one in documents if one["ground"]]),
            "meta": json.dumps({"language": item.language, "difficulty_type": item.difficulty}),
            "reasoning_type": [item.reasoning], **({"question_type": item.kind} if item.kind else {})}

    def _negatives(self, item: Item) -> Iterator[Paragraph]:
        """Paragraphs of the same field that are not the question's own and do not hold its answer."""
        own = {paragraph.source for paragraph in item.paragraphs}
        answer = normalize_answer(item.answer)
        for one in self._draw.ranked((one for one in self._candidates if one.field == item.field),
                                     lambda one: one.paragraph.source, item.id):
            if one.paragraph.source not in own and not contains_answer(normalize_answer(one.paragraph.text), answer):
                yield one.paragraph

    def _document(self, paragraph: Paragraph) -> dict[str, Any]:
        number = self._docids[paragraph.source]
        as_html = self._draw.percent("html", paragraph.source) < _HTML
        title, text = html.escape(paragraph.title, quote=False), html.escape(paragraph.text, quote=False)
        heading = f"<h1>{title}</h1>\n" if title else ""
        plain = f"{paragraph.title}\n{paragraph.text}" if title else paragraph.text
        return {"docid": number, "content": f"{heading}<p>{text}</p>" if as_html else plain,
                "type": "html" if as_html else "text", "source_path": paragraph.source, "ground": paragraph.gold,
                "citation_idx": None}
