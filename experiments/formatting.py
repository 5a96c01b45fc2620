"""Figures, counts, names and comparisons in words, as terminal, notes and report show them."""
from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragbed.experiments.metrics import cut_of, family_of
from ragbed.experiments.statistics import ALPHA

if TYPE_CHECKING:
    from ragbed.experiments.statistics import Comparison


def format_price(dollars: float | None, unknown: str = "an unknown price") -> str:
    """Return a price as it is shown; `unknown` stands for None."""
    return unknown if dollars is None else f"${dollars:.4f}" if dollars else "$0"


def fmt2(value: float) -> str:
    """Return a figure with two digits, in which nothing is less than nothing: no `-0.00`."""
    return f"{value:z.2f}"


UNKNOWN = "[no interval]"  # as where a figure is infinite in some resample
ON_INTERVALS = ("The test decides, also where its p is below 0.05 and the interval holds 0. The interval of a "
                "difference is of that one alone, approximate and not corrected for how many are shown; where p is not "
                "below 0.05 it is made to hold 0.")


def verdict(comparison: Comparison) -> str:
    """Return whether there is a difference, and what could have been found where there is none."""
    if comparison.said:
        return comparison.said
    if comparison.n == 0:
        return "nothing to compare: no question of both cells has it"
    if comparison.difference is None:
        return "nothing to compare: it has no finite value"
    if comparison.real:
        within = comparison.low is not None and comparison.high is not None and comparison.low <= 0 <= comparison.high
        return (f"{'higher' if comparison.difference > 0 else 'lower'} by {abs(comparison.difference):z.2f}"
                + (", by the test, though the interval holds 0" if within else ""))
    if is_uncorrected(comparison):
        return f"{'higher' if comparison.difference > 0 else 'lower'} on its own, not after the correction"
    if comparison.gained == comparison.lost == 0:
        return f"the same score on {plural(comparison.n, 'question')}"
    if comparison.difference == 0 and comparison.low is None:
        return f"the same figure over {plural(comparison.n, 'question')}"
    return f"no difference that {plural(comparison.n, 'question')} can show{_least(comparison)}"


def is_uncorrected(comparison: Comparison) -> bool:
    """Return whether two cells differ by their own test, though not after the correction for all."""
    return not comparison.real and comparison.p is not None and comparison.p < ALPHA


def _least(comparison: Comparison) -> str:
    if comparison.smallest is None or comparison.smallest > 1:
        return "; they are too few to show any"
    return f"; the smallest they could: {comparison.smallest:z.2f}"


def format_difference(comparison: Comparison) -> str:
    """Return the difference with its interval."""
    return estimate(comparison.difference, comparison.low, comparison.high, "+z.2f")


def estimate(value: float | None, low: float | None, high: float | None, form: str = "z.2f") -> str:
    """Return a figure with its interval; one that has none says so."""
    if value is None:
        return "-"
    interval = UNKNOWN if low is None or high is None else f"[{low:{form}}, {high:{form}}]"
    return f"{value:{form}} {interval}"


def format_p(p: float | None) -> str:
    """Return a p with three decimals; what is smaller is said to be."""
    return "-" if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"


def format_effect(comparison: Comparison) -> str:
    """Return the odds of the flips, or d_z."""
    if comparison.odds is not None:
        return f"odds {comparison.odds:z.2f}"
    return "-" if comparison.dz is None else f"d_z {comparison.dz:+z.2f}"


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


def metric_title(name: str) -> str:
    """Return a metric's name for people, such as `exact match` of `em`."""
    family, cut = family_of(name), cut_of(name)
    if family in _SUB:
        return f"sub-question {cut}: {_SUB[family]}"
    return _METRICS.get(family, family.replace("_", " ")) + (f"@{cut}" if cut else "")


def column_title(column: str) -> str:
    """Return a column's name for people, with that of its judge."""
    metric, space, judge = column.partition(" ")
    return metric_title(metric) + space + judge


def plural(count: int, word: str, words: str | None = None) -> str:
    """`1 cell`, `2 cells`."""
    return f"{count:,} {word if count == 1 else words or word + 's'}"


def join_names(names: Sequence[str], most: int = 5) -> str:
    """`a, b and c`; beyond `most`, how many more there are."""
    if len(names) > most:
        return ", ".join(names[:most - 1]) + f" and {len(names) - most + 1} more"
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def truncate(name: str, most: int = 48) -> str:
    """Return the name, or its beginning where it is longer than a chart has room for."""
    return name if len(name) <= most else name[:most - 1] + "…"


def format_interval(low: float | None, high: float | None) -> str:
    """`[0.10, 0.50]`; empty where there is none."""
    return "" if low is None or high is None else f"[{low:z.2f}, {high:z.2f}]"


def format_percent(share: float) -> str:
    """Return a share as a percentage that is 0 or 100 only where the share is none or all."""
    rounded = round(100 * share)
    if rounded == 0 and share > 0:
        return "<1 %"
    return ">99 %" if rounded == 100 and share < 1 else f"{rounded} %"


def count_or_percent(count: int, of: int) -> str:
    """Return a share in percent; of few, their count."""
    return f"{count}" if of < _FEW else format_percent(count / of)


def fraction(share: float) -> str:
    """Return a share below 1 in words where it is near a simple one, else in percent."""
    near = [words for value, words in _FRACTIONS if abs(share - value) <= _NEAR * value]
    return near[0] if near else format_percent(share)


def portion(share: float, of: str) -> str:
    """`half its price`, `a third of its price`."""
    words = fraction(share)
    return f"{words} {of}" if words == "half" else f"{words} of {of}"


def format_dollars(dollars: float) -> str:
    """Dollars with the digits that tell small sums apart: at least two that are not 0."""
    if dollars == 0:
        return "$0"
    return f"${dollars:,.2f}" if dollars >= 1 else f"${float(f'{dollars:.2g}'):.10f}".rstrip("0").rstrip(".")


# C0 and C1 controls, bidi controls, zero-width and tag characters, lone surrogates, noncharacters.
# The joiners U+200C and U+200D stay: Persian, Indic scripts and emoji need them.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff"
    "\ufff9-\ufffb\ufffe\uffff\ud800-\udfff\U000e0000-\U000e0fff]"
)


def visible(text: str) -> str:
    """Return the text with every invisible or direction-changing character written out, such as `⟨U+202E⟩`, and its
    line ends as `\\n`; it can always be encoded as UTF-8."""
    return _HIDDEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text.replace("\r\n", "\n"))
