"""Records as JUnit's XML, which continuous integration shows: a suite for each cell, a test for each question."""
from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import Literal
from xml.etree.ElementTree import Element, ElementTree, SubElement

from ragbed.documents.errors import RunError
from ragbed.experiments.analysis.causes import BY_NAME
from ragbed.experiments.analysis.gates import Passed
from ragbed.experiments.export.tables import ExportedRun
from ragbed.experiments.record import Record
from ragbed.retrieval.storage.files import why_unwritten, write_atomically

Kind = Literal["failure", "error", "skipped"]

# What an answer that is not right is, by its cause; a failure by all others.
_KINDS: MappingProxyType[str, Kind] = MappingProxyType({
    "failed": "error", "unjudged": "error", "not_scored": "skipped"})
_COUNTED: MappingProxyType[Kind, str] = MappingProxyType({
    "failure": "failures", "error": "errors", "skipped": "skipped"})
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # what XML 1.0 has no form for
_LONGEST = 2_000


@dataclass(frozen=True, slots=True)
class JUnitTest:
    """One test as JUnit has it. Its kind is None where it passed; what `why` and `message` then say is its output."""

    name: str
    kind: Kind | None = None
    why: str = ""
    message: str = ""
    seconds: float = 0.0


def write_junit(material: ExportedRun, path: Path) -> None:
    """Write a suite for each cell and a test for each question. A test passes where the answer is right by its score,
    fails where it is wrong, is an error where there is none or no verdict on it, and is skipped where nothing says what
    is right. A right answer that rests on no gold, or cites none, passes with its cause as output. Raises RunError
    where the benchmark has no right answers."""
    if not material.causes:
        raise RunError(f"{material.run.path}: its benchmark has no right answers, so there is nothing to pass or "
                       "fail; export it as .csv, .jsonl or .parquet")
    run = material.run
    suites: dict[str, list[JUnitTest]] = {cell: [] for cell in run.labels}
    for record in run.folder.records():
        suites[record.result.cell].append(_test(record, material))
    write_suites(run.name, zip(run.labels.values(), suites.values(), strict=True), path)


def write_suites(name: str, suites: Iterable[tuple[str, list[JUnitTest]]], path: Path) -> None:
    """Write named suites of tests as one file, whole or not at all; RunError where it cannot be written."""
    root = Element("testsuites", name=_clean(name))
    for suite, tests in suites:
        counts = {of: str(sum(test.kind == kind for test in tests)) for kind, of in _COUNTED.items()}
        inside = SubElement(root, "testsuite", {"name": _clean(suite), "tests": str(len(tests)), **counts,
                                                "time": f"{sum(test.seconds for test in tests):.3f}"})
        for test in tests:
            case = SubElement(inside, "testcase", classname=_clean(suite), name=_clean(test.name),
                              time=f"{test.seconds:.3f}")
            if test.kind:
                SubElement(case, test.kind, type=_clean(test.why), message=_clean(test.message))
            elif test.message:
                SubElement(case, "system-out").text = _clean(f"{test.why}: {test.message}")
    for counted in ("tests", *_COUNTED.values()):
        root.set(counted, str(sum(int(inside.attrib[counted]) for inside in root)))
    whole = BytesIO()
    ElementTree(root).write(whole, encoding="utf-8", xml_declaration=True)
    try:
        write_atomically(path, whole.getvalue())
    except OSError as error:
        raise RunError(f"{path}: {why_unwritten(error)}") from error


def _test(record: Record, material: ExportedRun) -> JUnitTest:
    result = record.result
    cause = BY_NAME[material.causes[result.cell][result.question]]
    if cause.right:
        flaw = "" if cause.name == "right" else cause.definition
        return JUnitTest(result.question, None, cause.name, flaw, record.timing.seconds)
    failure = f": {result.failure.message}" if result.failure else ""
    answered = f"; answered: {result.text}" if result.text else ""
    gold = " / ".join(material.run.questions[result.question].answers) or "none"
    return JUnitTest(result.question, _KINDS.get(cause.name, "failure"), cause.name,
                f"{cause.title} ({result.outcome}{failure}); gold: {gold}{answered}", record.timing.seconds)


def _clean(text: str) -> str:
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", text)[:_LONGEST]


def write_gates(all_passed: Sequence[Passed], left_out: Mapping[str, str], path: Path) -> None:
    """Write a suite for each gate, a test for each cell; what no gate was checked of, `left_out` by what it is, are
    errors of every gate. Raises RunError where the file cannot be written."""
    suites: dict[str, list[JUnitTest]] = defaultdict(list)
    for one in all_passed:
        name = one.finding.match.cell
        failed = JUnitTest(name, "failure", one.gate.metric, one.said)
        suites[one.gate.text].append(JUnitTest(name) if one.passes else failed)
    for tests in suites.values():
        tests += [JUnitTest(what, "error", "left_out", said) for what, said in left_out.items()]
    write_suites("gates", suites.items(), path)
