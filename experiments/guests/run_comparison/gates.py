"""Conditions of `ragbed compare --fail-if`, such as `right < baseline - 0.02`, and their results as JUnit XML."""
from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Literal, NamedTuple
from xml.etree.ElementTree import Element, ElementTree, SubElement

from ragbed.documents.errors import RunError, SettingsError
from ragbed.experiments.formatting import BOUNDS, format_bounds, format_difference, format_p
from ragbed.experiments.guests.run_comparison.compare import CellComparison
from ragbed.experiments.statistics import Comparison
from ragbed.retrieval.storage.files import explain_write_error, write_atomically

_FORM = re.compile(r"\s*(?P<metric>[a-z0-9_]+(?:@[0-9]+)?)(?:\.(?P<bound>low|high))?\s*(?P<sign>[<>])\s*baseline\s*"
                   r"(?:(?P<more>[+-])\s*(?P<number>[0-9]{1,6}(?:\.[0-9]{1,9})?)\s*)?", re.ASCII)
_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Gate:
    """A condition: the cell's metric is below (`<`) or above (`>`) the baseline's metric plus `offset`.

    Attributes:
        bound: the end of the difference's interval to compare instead of the difference. `right.high < baseline`
            holds if the whole interval is below 0. `right.low < baseline - 0.02` holds if a loss of 0.02 cannot be
            ruled out.
    """

    text: str
    metric: str
    below: bool
    offset: float
    bound: Literal["low", "high"] | None = None

    @classmethod
    def parse(cls, text: str) -> Gate:
        """Parse a condition. Raises SettingsError if it is malformed. Its metric may be declared by the run to read."""
        found = _FORM.fullmatch(text)
        if found is None:
            raise SettingsError(f"--fail-if {text!r}: expected METRIC < baseline or METRIC > baseline, such as "
                                "'right < baseline - 0.02' or 'right.high < baseline'; fixed thresholds are not "
                                "supported")
        offset = float(found["number"] or 0) * (-1 if found["more"] == "-" else 1)
        return cls(text.strip(), found["metric"], found["sign"] == "<", offset,
                   None if found["bound"] is None else "low" if found["bound"] == "low" else "high")

    def holds(self, comparison: Comparison) -> bool:
        """Return whether the condition holds for a comparison. Raises RunError if the comparison lacks the figure,
        because an unchecked gate must not pass."""
        if comparison.before is None or comparison.after is None:
            raise RunError(f"--fail-if {self.text!r} cannot be checked: the cells share no question that has "
                           f"{self.metric}, or the judge graded no answer of one of them")
        found = {None: comparison.after - comparison.before, "low": comparison.low, "high": comparison.high}[self.bound]
        if found is None:
            raise RunError(f"--fail-if {self.text!r} cannot be checked: the difference has no interval")
        if comparison.bounds:  # the worst case, so that unjudged answers cannot make a gate pass
            found += comparison.bounds[not self.below] - (comparison.after - comparison.before)
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
            raise RunError(f"{error}, in {finding.match.cell} against {finding.match.baseline}; choose other "
                           "cells with --cell") from error

    @property
    def said(self) -> str:
        """Return the condition as text, with both means, the difference and its p."""
        made = self.finding.comparison
        return (f"{self.gate.text}: {self.finding.match.cell} has {made.after:.4f}, its baseline {made.before:.4f}; "
                f"the difference is {format_difference(made)}, p {format_p(made.p)}, p (Holm) {format_p(made.p_holm)}"
                f"{format_bounds(made.bounds, f'; {BOUNDS}: ', '+z.2f')}")


_COUNTERS = {"failure": "failures", "error": "errors", "skipped": "skipped"}
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # not allowed in XML 1.0
_MAX_TEXT = 2_000  # characters


class _Test(NamedTuple):
    name: str
    kind: Literal["failure", "error"] | None = None  # None if it passed
    type: str = ""
    message: str = ""


_BEGINNING = re.compile(rb"<\?xml version='1\.0' encoding='utf-8'\?>\n<testsuites name=\"[^\"]*\" tests=")


def is_gate_file(beginning: bytes) -> bool:
    """Return whether a file with these first bytes is one that `write_gates` wrote."""
    return _BEGINNING.match(beginning) is not None


def write_gates(results: Sequence[GateResult], left_out: Mapping[str, str], path: Path) -> None:
    """Write a test suite for each gate, with one test for each cell.

    Args:
        left_out: questions or cells for which no gate was checked, with the reason. Each is an error in every suite.

    Raises:
        RunError: the file cannot be written.
    """
    suites: dict[str, list[_Test]] = defaultdict(list)
    for one in results:
        name = one.finding.match.cell
        failed = _Test(name, "failure", one.gate.metric, one.said)
        suites[one.gate.text].append(_Test(name) if one.passes else failed)
    for tests in suites.values():
        tests += [_Test(what, "error", "left_out", why) for what, why in left_out.items()]
    content = BytesIO()
    ElementTree(_to_xml(suites)).write(content, encoding="utf-8", xml_declaration=True)
    try:
        write_atomically(path, content.getvalue())
    except OSError as error:
        raise RunError(f"{path}: {explain_write_error(error)}") from error


def _to_xml(suites: Mapping[str, Sequence[_Test]]) -> Element:
    root = Element("testsuites", name="gates")
    for name, tests in suites.items():
        counts = {counter: str(sum(test.kind == kind for test in tests)) for kind, counter in _COUNTERS.items()}
        suite = SubElement(root, "testsuite", {"name": _clean(name), "tests": str(len(tests)), **counts,
                                               "time": "0.000"})
        for test in tests:
            case = SubElement(suite, "testcase", classname=_clean(name), name=_clean(test.name), time="0.000")
            if test.kind:
                SubElement(case, test.kind, type=_clean(test.type), message=_clean(test.message))
    for counter in ("tests", *_COUNTERS.values()):
        root.set(counter, str(sum(int(suite.attrib[counter]) for suite in root)))
    return root


def _clean(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)[:_MAX_TEXT]
