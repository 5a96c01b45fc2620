"""How well the check of support without a model tells what documents say from what they do not.

    python bench/support.py DATA [--json]

Gold answers of five benchmarks, sentence by sentence, are scored against their gold passages, and against as many
others: HotpotQA's and MuSiQue's distractors of the same question, FinanceBench's pages of the same company, and other
pages of the same Korean PDF are hard to tell from gold; ClapNQ's, of other questions, are easy. Of FinanceBench only
the questions count whose answer stands on a page: what was computed from a page, half of all answers there, no such
check can find.

Where answers are short, wrong ones are scored against the gold passages too: yes for no, another number of these
passages for a number, another name of them for a name. That is the error that matters most, and the one that such a
check cannot see: it looks for words, not for who did what.

Weights and the threshold of `strategies/support/lexical.py` were chosen on these questions, but for MuSiQue's.
"""
from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ragbed.documents import Chunk
from ragbed.documents.numbers import values
from ragbed.strategies import Draft, Evidence, Passage, Task
from ragbed.strategies.retrieval.none import none
from ragbed.strategies.support.check import statements_of
from ragbed.strategies.support.lexical import score

DRAWS = 3
_LONGEST = 6  # words of an answer that a wrong one takes the place of
_LEAST = 10  # wrong answers: fewer say nothing
_FLIPPED = {"yes": "no", "no": "yes"}
_NAME = re.compile(r"[A-Z][\w'-]+(?: (?:(?:of|the|de|and) )?[A-Z][\w'-]+)*")
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


def musique(data: Path) -> Iterator[Item]:
    """Twenty titled paragraphs, two to four of them gold; held out."""
    for row in rows(data / "musique" / "musique.jsonl"):
        pages = [(f"{one['title']}\n{one['paragraph_text']}", one["is_supporting"]) for one in row["paragraphs"]]
        yield Item(row["question"], row["answer"], [text for text, gold in pages if gold],
                   [text for text, gold in pages if not gold])


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


class Scores(NamedTuple):
    """Of the sentences of answers.

    Attributes:
        gold: of right ones against gold passages.
        others: of right ones against other passages.
        replaced: of the right ones that `wrong` are wrong variants of, against gold passages.
        wrong: of wrong answers against gold passages.
    """

    gold: list[float]
    others: list[float]
    replaced: list[float]
    wrong: list[float]


def scored(items: Iterator[Item]) -> Scores:
    """The scores of all answers."""
    made = Scores([], [], [], [])
    for item in items:
        said, draws = _sentences(item.answer, item.question), random.Random(item.question)
        right = _values(said, item.question, item.gold)
        made.gold.extend(right)
        for _ in range(DRAWS if len(item.others) >= len(item.gold) else 0):
            made.others.extend(_values(said, item.question, draws.sample(item.others, len(item.gold))))
        wrong = wrong_answer(item, draws)
        if wrong is not None:
            made.replaced.extend(right)
            made.wrong.extend(_values(_sentences(wrong, item.question), item.question, item.gold))
    return made


def wrong_answer(item: Item, draws: random.Random) -> str | None:
    """Another answer of the same kind that the gold passages suggest; None where the answer is long or there is none.

    Yes and no are exchanged. What is taken from the passages stands neither in the answer nor in the question.
    """
    if item.answer.casefold() in _FLIPPED:
        return _FLIPPED[item.answer.casefold()]
    if len(item.answer.split()) > _LONGEST:
        return None
    text, avoided = "\n".join(item.gold), f"{item.answer}\n{item.question}".casefold()
    numbers = [text[one.start:one.end].strip() for one in values(text)]
    found = numbers if values(item.answer) else _NAME.findall(text)
    fitting = sorted({one for one in found if one.casefold() not in avoided})
    return draws.choice(fitting) if fitting else None


def _sentences(answer: str, question: str) -> list[str]:
    draft = Draft(answer, (1,), refused=False, well_formed=True, tagged=None)
    return [one.text for one in statements_of(draft, Task("bench", question, none))]


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


def report_of(made: Scores) -> dict[str, Any]:
    """Areas under the curve, and the shares that each threshold lets through; of wrong answers where there are any."""
    wrong = {"wrong": made.wrong} if len(made.wrong) >= _LEAST else {}
    sides = {"gold": made.gold, "others": made.others, **wrong}
    return {"sentences": len(made.gold), "wrong": len(made.wrong), "auc": area(made.gold, made.others),
            "auc_wrong": area(made.replaced, made.wrong) if wrong else None,
            "supported": {str(at): {name: share(one, at) for name, one in sides.items()} for at in THRESHOLDS}}


def line_of(name: str, found: dict[str, Any]) -> str:
    """The report of a benchmark, to be read."""
    told = "; ".join(f"{' / '.join(f'{100 * one:.0f}' for one in shares.values())} at {at}"
                     for at, shares in found["supported"].items())
    area_of_wrong = found["auc_wrong"]
    wrong = "" if area_of_wrong is None else f", {area_of_wrong:.3f} for {found['wrong']} wrong answers"
    held_out = "held out" if name in HELD_OUT else "chosen on these questions"
    return (f"{name} ({held_out}): {found['sentences']} sentences, AUC {found['auc']:.3f} for other passages{wrong}; "
            f"% of {' / '.join(found['supported']['0.5'])} supported: {told}")


HELD_OUT = ("musique",)
SETS = {"hotpotqa": hotpotqa, "musique": musique, "financebench": financebench, "clapnq": clapnq, "korean_rag": korean}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    report = {name: report_of(scored(items(given.data))) for name, items in SETS.items()}
    if given.json:
        print(json.dumps(report, indent=2))
    else:
        print("\n".join(line_of(name, found) for name, found in report.items()))
