"""Gates as tests of JUnit's form, which continuous integration shows."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from documents.errors import RunError
from experiments.comparing.findings import Finding
from experiments.comparing.gate import Gate
from experiments.comparing.words import difference, probability

if TYPE_CHECKING:
    from experiments.export.junit import Test


@dataclass(frozen=True, slots=True)
class Passed:
    """Whether a cell passes a gate."""

    gate: Gate
    finding: Finding
    passes: bool

    @classmethod
    def of(cls, gate: Gate, finding: Finding) -> Passed:
        """RunError where that cannot be checked."""
        try:
            return cls(gate, finding, not gate.holds(finding.comparison))
        except RunError as error:
            raise RunError(f"{error}, in {finding.match.cell} against {finding.match.baseline}; --cell names those "
                           "that can be") from error

    @property
    def said(self) -> str:
        """The condition, both means, and how far chance may have made the difference."""
        made = self.finding.comparison
        return (f"{self.gate.text}: {self.finding.match.cell} has {made.after:.4f}, its baseline {made.before:.4f}; "
                f"the difference is {difference(made)}, p {probability(made.p)}, p (Holm) {probability(made.p_holm)}")


def write_gates(all_passed: Sequence[Passed], left_out: Mapping[str, str], path: Path) -> None:
    """A suite for each gate, a test for each cell; RunError where the file cannot be written.

    Args:
        left_out: what no gate was checked of, by what it is: errors of every gate.
    """
    from experiments.export.junit import Test, write_suites  # brings all exports with it

    suites: dict[str, list[Test]] = defaultdict(list)
    for one in all_passed:
        name = one.finding.match.cell
        suites[one.gate.text].append(Test(name) if one.passes else Test(name, "failure", one.gate.metric, one.said))
    for tests in suites.values():
        tests += [Test(what, "error", "left_out", said) for what, said in left_out.items()]
    write_suites("gates", suites.items(), path)
