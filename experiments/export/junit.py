"""Write the gates of `ragbed compare --fail-if` as JUnit XML for CI."""
from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Literal, NamedTuple
from xml.etree.ElementTree import Element, ElementTree, SubElement

from ragbed.documents.errors import RunError
from ragbed.experiments.analysis.gates import GateResult
from ragbed.retrieval.storage.files import explain_write_error, write_atomically

_COUNTERS = {"failure": "failures", "error": "errors", "skipped": "skipped"}
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # not allowed in XML 1.0
_MAX_TEXT = 2_000  # characters


class _Test(NamedTuple):
    name: str
    kind: Literal["failure", "error"] | None = None  # None if it passed
    type: str = ""
    message: str = ""


def write_gates(results: Sequence[GateResult], left_out: Mapping[str, str], path: Path) -> None:
    """Write a test suite for each gate, with one test for each cell.

    Args:
        left_out: questions or cells that no gate was checked on, with the reason. Each is an error in every suite.

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
