"""What a reader of rankings has to know, in sentences."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from experiments.metrics.metric import cut_of
from experiments.question import Question
from experiments.record import Result


def on_cuts(asked: Mapping[str, int], columns: Sequence[str]) -> list[str]:
    """That a column looks deeper than a retriever was asked to search.

    Args:
        asked: how many chunks each retriever is asked for, by its name.
    """
    deepest = max((cut_of(name) or 0 for column in columns for name in column.split(" / ")), default=0)
    short = [(name, k) for name, k in asked.items() if k < deepest]
    return [f"{name} finds {k} for a question, so its figures for more than {k} are those for {k}; set k to {deepest} "
            "or more." for name, k in short]


def on_unranked(questions: Iterable[Question]) -> list[str]:
    """That questions which have no gold are in no figure, though trec_eval counts them."""
    every = list(questions)
    without = sum(not one.gold for one in every)
    return [f"{without} of {len(every)} queries have no relevant document, and are in no figure here; trec_eval counts "
            "those of them that were judged as 0."] if without else []


def on_chunked(results: Mapping[str, Sequence[Result]], names: Mapping[str, str]) -> list[str]:
    """That chunks of documents were found where documents are ranked: the deeper cuts are then of fewer documents.

    Args:
        results: by cell; `names`, what each cell is called.
    """
    found = []
    for cell, own in results.items():
        if any(passage.repeats for result in own for passage in result.in_view):
            counts = [sum(not passage.repeats for passage in result.in_view) for result in own]
            found.append(f"{names[cell]} {median(counts):g}")
    return [f"Chunks are searched and documents ranked, so that a search finds fewer documents than chunks, and the "
            f"fewer the smaller they are cut: in the median {'; '.join(found)}. Deeper cuts favour large chunks."
            ] if found else []
