"""Format numbers, names and comparisons for the terminal, notes and the report."""
from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragbed.experiments.metrics.intervals import ALPHA
from ragbed.experiments.metrics.metric import cut_of, family_of

if TYPE_CHECKING:
    from ragbed.experiments.statistics import Comparison


def format_price(dollars: float | None, unknown: str = "an unknown price") -> str:
    """Format a price with four decimals; None becomes `unknown`."""
    return unknown if dollars is None else f"${dollars:.4f}" if dollars else "$0"


def fmt2(value: float) -> str:
    """Format a figure with two decimals, never as `-0.00`."""
    return f"{value:z.2f}"


UNKNOWN = "[no interval]"  # for instance if a figure is infinite in some resample
ON_INTERVALS = ("The interval of a difference excludes 0 exactly if p is below 0.05, before the correction for the "
                "number of comparisons.")


def verdict(comparison: Comparison) -> str:
    """Return a few words that say whether a difference is significant after the correction."""
    if comparison.said:
        return comparison.said
    if comparison.n == 0:
        return "no common questions"
    if comparison.difference is None:
        return "no finite value"
    if comparison.real:
        unsure = comparison.bounds is not None and comparison.bounds[0] <= 0 <= comparison.bounds[1]
        way = "higher" if comparison.difference > 0 else "lower"
        return f"significantly {way}{' (among judged answers)' if unsure else ''}"
    if is_uncorrected(comparison):
        return "before correction only"
    if comparison.gained == comparison.lost == 0 or (comparison.difference == 0 and comparison.low is None):
        return "identical"
    return "not significant"


def detectable(comparison: Comparison) -> str:
    """Return the smallest difference that the test would have found with a power of 80 %."""
    if comparison.smallest is None or comparison.smallest > 1:
        return "none (too few)"
    return fmt2(comparison.smallest)


def is_uncorrected(comparison: Comparison) -> bool:
    """Return whether a difference is significant before the correction for all comparisons, but not after it."""
    return not comparison.real and comparison.p is not None and comparison.p < ALPHA


def format_difference(comparison: Comparison) -> str:
    """Format a difference with its sign and interval."""
    return estimate(comparison.difference, comparison.low, comparison.high, "+z.2f")


def estimate(value: float | None, low: float | None, high: float | None, form: str = "z.2f") -> str:
    """Format a figure with its interval, such as `0.39 [0.25, 0.55]`."""
    if value is None:
        return "-"
    interval = UNKNOWN if low is None or high is None else f"[{low:{form}}, {high:{form}}]"
    return f"{value:{form}} {interval}"


def format_p(p: float | None) -> str:
    """Format a p value with three decimals, or as `<0.001`."""
    return "-" if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"


BOUNDS = "with unjudged"  # title of the column of bounds


def format_bounds(bounds: Sequence[float] | None, before: str = "", form: str = "z.2f") -> str:
    """Format the bounds of a mean with unjudged answers, as `0.10 to 0.60` after `before`; empty without bounds."""
    return f"{before}{bounds[0]:{form}} to {bounds[1]:{form}}" if bounds else ""


def format_effect(comparison: Comparison) -> str:
    """Format an effect size: the odds of gains to losses, or Cohen's d_z."""
    if comparison.odds is not None:
        return f"odds {comparison.odds:z.2f}"
    return "-" if comparison.dz is None else f"d_z {comparison.dz:+z.2f}"


_METRICS = {
    "unified": "unified score", "right": "right answers and refusals", "partial": "partially correct",
    "refusal_accuracy": "rightly refused",
    "refused_answerable": "needlessly refused", "citation_recall_in_view": "citation recall, of gold in view",
    "citation_f1": "citation F1", "unparsed": "names no option", "graded_accuracy": "grade",
    "graded_em": "graded above 8",
    "gm": "G.M. of accuracy and reasoning", "em": "exact match", "f1": "token F1", "squad_em": "exact match or refusal",
    "squad_f1": "token F1 or refusal", "joint_em": "joint exact match", "joint_f1": "joint F1",
    "chain_correct": "right for the right reason", "lucky": "lucky", "joint_em_log": "joint exact match, -ln",
    "joint_f1_log": "joint F1, -ln", "support_em": "exact citations", "support_f1": "citation F1 by question",
    "support_joint_em": "exact answer and citations", "support_joint_f1": "F1 of answer and citations",
    "ndcg": "nDCG", "mrr": "reciprocal rank", "map": "average precision", "well_formed": "well-formed",
    "tagged": "in the requested tags", "agreement": "agreement of samples", "samples": "samples drawn",
    "sufficiency": "sufficiency of the evidence", "sentences_supported": "supported sentences",
    "repaired": "asked to repair", "revised": "revised answers"}
_SUB = {"sub_em": "exact match", "sub_f1": "token F1"}
_FEW = 20  # of fewer items, percentages suggest too much precision


def metric_title(name: str) -> str:
    """Return the title of a metric, such as `exact match` for `em`."""
    family, cut = family_of(name), cut_of(name)
    if family in _SUB:
        return f"sub-question {cut}: {_SUB[family]}"
    return _METRICS.get(family, family.replace("_", " ")) + (f"@{cut}" if cut else "")


def column_title(column: str) -> str:
    """Return the title of a column: a metric and its judge."""
    metric, space, judge = column.partition(" ")
    return metric_title(metric) + space + judge


def plural(count: int, word: str, words: str | None = None) -> str:
    """Return a count with its noun: `1 cell`, `2 cells`."""
    return f"{count:,} {word if count == 1 else words or word + 's'}"


def join_names(names: Sequence[str], most: int = 5) -> str:
    """Join names, as in `a, b and c`. Beyond `most`, end with the number of the others: `a, b and 4 more`."""
    if len(names) > most:
        return ", ".join(names[:most - 1]) + f" and {len(names) - most + 1} more"
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def truncate(name: str, most: int = 48) -> str:
    """Cut a name to `most` characters."""
    return name if len(name) <= most else name[:most - 1] + "…"


def format_interval(low: float | None, high: float | None) -> str:
    """Format an interval as `[0.10, 0.50]`; without one, return an empty string."""
    return "" if low is None or high is None else f"[{low:z.2f}, {high:z.2f}]"


def format_percent(share: float) -> str:
    """Format a share as a percentage. Only an exact 0 or 1 becomes `0 %` or `100 %`."""
    rounded = round(100 * share)
    if rounded == 0 and share > 0:
        return "<1 %"
    return ">99 %" if rounded == 100 and share < 1 else f"{rounded} %"


def count_or_percent(count: int, of: int) -> str:
    """Format a part as a percentage, or as a count if the whole is below `_FEW`."""
    return f"{count}" if of < _FEW else format_percent(count / of)


def format_dollars(dollars: float) -> str:
    """Format dollars with at least two significant digits."""
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
    """Write every invisible or direction-changing character as a code, such as `⟨U+202E⟩`, and line ends as `\\n`.

    The result can always be encoded as UTF-8.
    """
    return _HIDDEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text.replace("\r\n", "\n"))
