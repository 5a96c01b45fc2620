"""Conditions of `ragbed compare --fail-if`, such as `unified < baseline - 0.02`."""
from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ragbed.documents.errors import RunError, SettingsError
from ragbed.experiments.analysis.compare import CellComparison
from ragbed.experiments.formatting import format_difference, format_p
from ragbed.experiments.metrics import find_metric
from ragbed.experiments.statistics import Comparison

_FORM = re.compile(r"\s*(?P<metric>[a-z0-9_]+(?:@[0-9]+)?)(?:\.(?P<bound>low|high))?\s*(?P<sign>[<>])\s*baseline\s*"
                   r"(?:(?P<more>[+-])\s*(?P<number>[0-9]{1,6}(?:\.[0-9]{1,9})?)\s*)?", re.ASCII)
_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Gate:
    """A condition: the cell's metric is below (`<`) or above (`>`) the baseline's metric plus `offset`.

    Attributes:
        bound: the end of the difference's interval to use instead of the difference. `unified.high < baseline` holds if
            the whole interval is below 0. `unified.low < baseline - 0.02` holds if a loss of 0.02 cannot be ruled out.
    """

    text: str
    metric: str
    below: bool
    offset: float
    bound: Literal["low", "high"] | None = None

    @classmethod
    def parse(cls, text: str) -> Gate:
        """Parse a condition. Raises SettingsError if it has another form, or the metric is unknown."""
        found = _FORM.fullmatch(text)
        if found is None:
            raise SettingsError(f"--fail-if {text!r}: expected METRIC < baseline or METRIC > baseline, with .low or "
                                ".high after METRIC and + or - NUMBER at the end if needed, such as 'unified < "
                                "baseline - 0.02'; fixed thresholds are not supported")
        find_metric(found["metric"])
        offset = float(found["number"] or 0) * (-1 if found["more"] == "-" else 1)
        return cls(text.strip(), found["metric"], found["sign"] == "<", offset,
                   None if found["bound"] is None else "low" if found["bound"] == "low" else "high")

    def holds(self, comparison: Comparison) -> bool:
        """Return whether the condition holds for a comparison. Raises RunError if the comparison lacks the figure,
        since an unchecked gate must not pass."""
        if comparison.before is None or comparison.after is None:
            raise RunError(f"--fail-if {self.text!r} cannot be checked: the cells share no question that has "
                           f"{self.metric}")
        found = {None: comparison.after - comparison.before, "low": comparison.low, "high": comparison.high}[self.bound]
        if found is None:
            raise RunError(f"--fail-if {self.text!r} cannot be checked: the difference has no interval")
        beyond = round(found - self.offset, _DIGITS)
        return beyond < 0 if self.below else beyond > 0


@dataclass(frozen=True, slots=True)
class GateResult:
    """Whether a cell passes a gate."""

    gate: Gate
    finding: CellComparison
    passes: bool

    @classmethod
    def of(cls, gate: Gate, finding: CellComparison) -> GateResult:
        """Check a gate. Raises RunError if it cannot be checked."""
        try:
            return cls(gate, finding, not gate.holds(finding.comparison))
        except RunError as error:
            raise RunError(f"{error}, in {finding.match.cell} against {finding.match.baseline}; choose others "
                           "with --cell") from error

    @property
    def said(self) -> str:
        """The condition as text, with both means, the difference and its p."""
        made = self.finding.comparison
        return (f"{self.gate.text}: {self.finding.match.cell} has {made.after:.4f}, its baseline {made.before:.4f}; "
                f"the difference is {format_difference(made)}, p {format_p(made.p)}, p (Holm) {format_p(made.p_holm)}")
