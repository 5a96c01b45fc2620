"""Figures, counts and names as a reader is told them."""
from __future__ import annotations

from collections.abc import Sequence

from experiments.metrics.metric import cut_of, family_of

_METRICS = {
    "unified": "unified score", "partial": "partially correct", "refusal_accuracy": "rightly refused",
    "refused_answerable": "needlessly refused", "citation_recall_in_view": "citation recall, of gold in view",
    "citation_f1": "citation F1", "unparsed": "names no option", "graded_accuracy": "grade",
    "graded_em": "graded above 8",
    "gm": "G.M. of accuracy and reasoning", "em": "exact match", "f1": "token F1", "squad_em": "exact match or refusal",
    "squad_f1": "token F1 or refusal", "joint_em": "joint exact match", "joint_f1": "joint F1",
    "chain_correct": "right for the right reason", "lucky": "lucky", "joint_em_log": "joint exact match, -ln",
    "joint_f1_log": "joint F1, -ln", "support_em": "exact citations", "support_f1": "citation F1 by question",
    "support_joint_em": "exact answer and citations", "support_joint_f1": "F1 of answer and citations",
    "ndcg": "nDCG", "mrr": "reciprocal rank", "map": "average precision", "well_formed": "well-formed",
    "tagged": "in its tags", "agreement": "agreement of samples", "samples": "samples drawn",
    "sufficiency": "sufficiency of the evidence", "sentences_supported": "supported sentences",
    "repaired": "asked to repair", "revised": "revised answers"}
_SUB = {"sub_em": "exact match", "sub_f1": "token F1"}
_FRACTIONS = ((1 / 2, "half"), (1 / 3, "a third"), (1 / 4, "a quarter"), (1 / 5, "a fifth"), (1 / 10, "a tenth"))
_FEW = 20  # of which percentages would claim more than there is
_NEAR = 0.06  # of a fraction, by how much it may be off


def metric_words(name: str) -> str:
    """A metric's name for people, such as `exact match` of `em`."""
    family, cut = family_of(name), cut_of(name)
    if family in _SUB:
        return f"sub-question {cut}: {_SUB[family]}"
    return _METRICS.get(family, family.replace("_", " ")) + (f"@{cut}" if cut else "")


def column_words(column: str) -> str:
    """A column's name for people, with that of its judge."""
    metric, space, judge = column.partition(" ")
    return metric_words(metric) + space + judge


def plural(count: int, word: str, words: str | None = None) -> str:
    """`1 cell`, `2 cells`."""
    return f"{count:,} {word if count == 1 else words or word + 's'}"


def listed(names: Sequence[str], most: int = 5) -> str:
    """`a, b and c`; beyond `most`, how many more there are."""
    if len(names) > most:
        return ", ".join(names[:most - 1]) + f" and {len(names) - most + 1} more"
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def cut(name: str, most: int = 48) -> str:
    """The name, or its beginning where it is longer than a chart has room for."""
    return name if len(name) <= most else name[:most - 1] + "…"


def interval(low: float | None, high: float | None) -> str:
    """`[0.10, 0.50]`; empty where there is none."""
    return "" if low is None or high is None else f"[{low:z.2f}, {high:z.2f}]"


def percent(share: float) -> str:
    """A share as a percentage that is 0 or 100 only where the share is none or all."""
    rounded = round(100 * share)
    if rounded == 0 and share > 0:
        return "<1 %"
    return ">99 %" if rounded == 100 and share < 1 else f"{rounded} %"


def part(count: int, of: int) -> str:
    """A share in percent; of few, their count."""
    return f"{count}" if of < _FEW else percent(count / of)


def fraction(share: float) -> str:
    """A share below 1 in words where it is near a simple one, else in percent."""
    near = [words for value, words in _FRACTIONS if abs(share - value) <= _NEAR * value]
    return near[0] if near else percent(share)


def portion(share: float, of: str) -> str:
    """`half its price`, `a third of its price`."""
    words = fraction(share)
    return f"{words} {of}" if words == "half" else f"{words} of {of}"


def money(dollars: float) -> str:
    """Dollars with the digits that tell small sums apart: at least two that are not 0."""
    if dollars == 0:
        return "$0"
    return f"${dollars:,.2f}" if dollars >= 1 else f"${float(f'{dollars:.2g}'):.10f}".rstrip("0").rstrip(".")
