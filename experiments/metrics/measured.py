"""What strategies measure on their way (`Draft.figures`) as metrics: of the questions that have one, and no others."""
from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from experiments.metrics.metric import Metric
from experiments.metrics.scored import Scores

_OVER = "questions whose strategy measured it"
MEASURED = (
    Metric("agreement", "self_consistency: the share of the samples that give the chosen answer", _OVER),
    Metric("samples", "self_consistency: how many samples the budget of tokens held", _OVER, high=None),
    Metric("sufficiency", "sufficient: the grade of the evidence, before the answer", _OVER),
    Metric("sentences_supported", "supported: the share of the answer's sentences that what they cite bears out",
           _OVER),
    Metric("quotes", "quote_first: how many quotes came", _OVER, high=None),
    Metric("quotes_found", "quote_first: the share of the quotes that stand in the documents", _OVER),
    Metric("rows", "table_first: how many rows the table has", _OVER, high=None),
    Metric("rows_found", "table_first: the share of the rows whose value stands in a document", _OVER),
    Metric("worked_out", "program_aided: the share of the lines that could be worked out", _OVER),
    Metric("checks", "chain_of_verification: how many questions checked the draft", _OVER, high=None),
    Metric("laps", "reflect: how often a draft was checked", _OVER, high=None),
    Metric("repaired", "supported: whether the answer was asked for a second time", _OVER, share=True),
    Metric("revised", "strategies that revise: whether the final answer says something else than the first", _OVER,
           share=True))
_UNNAMED = re.compile(r"[^a-z0-9]+")
_LONGEST = 40


def measured(figures: Mapping[str, float], metrics: Collection[str]) -> Scores:
    """The figures of a question as scores, under their names.

    A name becomes lower-case letters, digits and `_`. One that a metric has, which a strategy cannot score itself by,
    begins with `figure_`.

    Args:
        metrics: the names of those that are scored.
    """
    scores: Scores = {}
    for name, value in figures.items():
        plain = _UNNAMED.sub("_", name.lower())[:_LONGEST].strip("_")
        scores.setdefault(f"figure_{plain}" if plain in metrics or not plain[:1].isalpha() else plain, float(value))
    return scores
