"""How well the check of support without a model tells what documents say from what they do not.

    python bench/support.py DATA [--json]

Gold answers of four benchmarks, sentence by sentence, are scored against their gold passages, and against as many
others: HotpotQA's distractors of the same question, FinanceBench's pages of the same company, and other pages of the
same Korean PDF are hard to tell from gold; ClapNQ's, of other questions, are easy. Of FinanceBench only the questions
count whose answer stands on a page: what was computed from a page, half of all answers there, no such check can find.
"""
from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from documents.types import Chunk
from strategies.retrieval import none
from strategies.support.lexical import score
from strategies.support.sentences import statements_of
from strategies.types import Draft, Evidence, Passage, Task

DRAWS = 3
THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7)


class Item(NamedTuple):
    """A question, its gold answer, the texts that hold it, and others."""

    question: str
    answer: str
    gold: list[str]
    others: list[str]


def rows(path: Path) -> list[dict[str, Any]]:
    """The records of a JSON Lines file."""
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def hotpotqa(data: Path) -> Iterator[Item]:
    """Ten titled paragraphs, two of them gold."""
    for row in rows(data / "hotpotqa" / "hotpot_distractor_100.jsonl"):
        gold = set(row["supporting_facts"]["title"])
        pages = {title: f"{title}\n{''.join(said)}" for title, said in
                 zip(row["context"]["title"], row["context"]["sentences"], strict=True)}
        yield Item(row["question"], row["answer"], [text for title, text in pages.items() if title in gold],
                   [text for title, text in pages.items() if title not in gold])


def financebench(data: Path) -> Iterator[Item]:
    """Pages of filings."""
    found = rows(data / "financebench" / "financebench_open_source.jsonl")
    for row in found:
        if not (row["question_reasoning"] or "").startswith("Information extraction"):
            continue
        gold = [one["evidence_text"] for one in row["evidence"]]
        yield Item(row["question"], row["answer"], gold, [
            one["evidence_text"] for other in found if other["company"] == row["company"] for one in other["evidence"]
            if one["evidence_text"] not in gold])


def clapnq(data: Path) -> Iterator[Item]:
    """Long answers over one passage; the others are of the questions that follow."""
    found = rows(data / "clapnq" / "clapnq_dev_answerable.jsonl")
    for place, row in enumerate(found):
        passage = row["passages"][0]
        others = [found[(place + step) % len(found)]["passages"][0]["text"] for step in range(1, DRAWS + 1)]
        yield Item(row["input"], row["output"][0]["answer"], [f"{passage['title']}\n{passage['text']}"], others)


def korean(data: Path) -> Iterator[Item]:
    """Pages of Korean PDFs."""
    pages = {row["doc_id"]: row["contents"] for row in rows(data / "korean_rag" / "ocr_corpus_v3.jsonl")}
    for row in rows(data / "korean_rag" / "qa_v4.jsonl"):
        gold = [page for part in row["retrieval_gt"] for page in part if page in pages]
        file = gold[0].rpartition(" - ")[0]
        yield Item(row["query"], row["generation_gt"][0], [pages[page] for page in gold], [
            text for page, text in pages.items() if page.startswith(file) and page not in gold])


def scored(items: Iterator[Item]) -> tuple[list[float], list[float]]:
    """The scores of the sentences of all answers against gold, and against others."""
    right: list[float] = []
    wrong: list[float] = []
    for item in items:
        draft = Draft(item.answer, (1,), refused=False, well_formed=True, tagged=None)
        said = [one.text for one in statements_of(draft, Task("bench", item.question, none))]
        right += _values(said, item.question, item.gold)
        draws = random.Random(item.question)
        for _ in range(DRAWS if len(item.others) >= len(item.gold) else 0):
            wrong += _values(said, item.question, draws.sample(item.others, len(item.gold)))
    return right, wrong


def _values(said: Sequence[str], question: str, texts: Sequence[str]) -> list[float]:
    evidence: Evidence = tuple(Passage(number, Chunk(str(number), "", "plain", 0, len(text), text))
                               for number, text in enumerate(texts, 1))
    return [score(one, question, evidence).value for one in said]


def area(right: Sequence[float], wrong: Sequence[float]) -> float:
    """The area under the ROC curve: the share of pairs whose right one has the higher score, ties a half."""
    return sum((a > b) + (a == b) / 2 for a in right for b in wrong) / (len(right) * len(wrong))


def share(scores: Sequence[float], threshold: float) -> float:
    """The share of scores from the threshold on."""
    return sum(one >= threshold for one in scores) / len(scores)


SETS = {"hotpotqa": hotpotqa, "financebench": financebench, "clapnq": clapnq, "korean_rag": korean}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    report = {}
    for name, items in SETS.items():
        gold, other = scored(items(given.data))
        report[name] = {"sentences": len(gold), "auc": area(gold, other), "supported": {
            str(one): {"gold": share(gold, one), "others": share(other, one)} for one in THRESHOLDS}}
        if not given.json:
            told = "; ".join(f"{100 * share(gold, one):.0f} / {100 * share(other, one):.0f} at {one}"
                             for one in THRESHOLDS)
            print(f"{name}: {len(gold)} sentences, AUC {area(gold, other):.3f}; % of gold / others supported: {told}")
    if given.json:
        print(json.dumps(report, indent=2))
