"""Measure the guard of `ragbed negatives` without answers, on passages that are known to hold the answer or not.

    python bench/mining_guard.py --data FOLDER

RGB's questions have several passages with the answer (`positive`) and several without it (`negative`). The first
passage with the answer is the gold, and the answer itself is hidden. The others are candidates. With the reranker, a
candidate is also rejected if late interaction scores it above the gold.
"""
from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

from ragbed.documents.types import Chunk
from ragbed.experiments.guests.hard_negatives.guard import Guard, RareWords, Thresholds
from ragbed.experiments.guests.learned_retrievers.late_interaction import LateInteraction
from ragbed.experiments.question import Question
from ragbed.retrieval.types import RerankerDeps


def main() -> None:
    """Print the share of both sorts of candidates that is rejected, by reason."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with rgb/en_fact.jsonl")
    parser.add_argument("--model", default="all-MiniLM-L6-v2", help="model of the late interaction")
    options = parser.parse_args()
    rows = [json.loads(line) for line in (options.data / "rgb" / "en_fact.jsonl").read_text().splitlines()]
    rows = [row for row in rows if len(row["positive"]) > 1]
    rare = RareWords(text for row in rows for text in (*row["positive"], *row["negative"]))
    scorer = LateInteraction(model=options.model).open(RerankerDeps())
    scores = scorer.scores([row["query"] for row in rows], [[*row["positive"], *row["negative"]] for row in rows])
    counts: dict[str, Counter[str]] = {"positive": Counter(), "negative": Counter()}
    for row, scored in zip(rows, scores, strict=True):
        texts, known = [*row["positive"], *row["negative"]], len(row["positive"])
        gold, *candidates = [Chunk(id=str(at), document=str(at), start=0, end=len(text), content=text, format="plain")
                             for at, text in enumerate(texts)]
        guard = Guard(Question(str(row["id"]), row["query"], (), answerable=True), [gold], Thresholds(), rare)
        for chunk, score in zip(candidates, scored[1:], strict=True):
            found = guard.check(chunk)
            reason = found.reason if found else "reranker" if score > scored[0] else "kept"
            counts["positive" if int(chunk.id) < known else "negative"][reason] += 1
    for sort, count in counts.items():
        total = count.total()
        text = total - count["kept"] - count["reranker"]
        print(f"{sort}: {total} candidates; rejected by their text {text / total:.3f}, "
              f"with the reranker {1 - count['kept'] / total:.3f}; {dict(count.most_common())}")


if __name__ == "__main__":
    main()
