"""Read drawings of Office files: text boxes, charts as tables, and diagrams (SmartArt)."""
from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import Any
from zipfile import ZipFile

from ragbed.experiments.guests.office.number_formats import format_number

A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
MARKUP = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_MAX_POINTS = 100_000  # of a chart's series


def parse_xml(data: bytes) -> Any:
    """Parse a part of an Office file without resolving entities. Raises SyntaxError if it is not XML."""
    from lxml import etree

    return etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True))


def read_relations(archive: ZipFile, part: str) -> dict[str, tuple[str, str]]:
    """Return the related parts of a part, by id: the last word of the relation's type, and the name of the part."""
    folder, name = posixpath.split(part)
    rels = posixpath.join(folder, "_rels", f"{name}.rels")
    if rels not in archive.NameToInfo:
        return {}
    return {each.get("Id", ""): (each.get("Type", "").rpartition("/")[2],
                                 posixpath.normpath(posixpath.join("/" + folder, each.get("Target", ""))).lstrip("/"))
            for each in parse_xml(archive.read(rels)).iterchildren("{*}Relationship")
            if each.get("TargetMode") != "External"}


def read_paragraphs(element: Any) -> Iterator[str]:
    """Yield the text of each DrawingML paragraph that is not blank, with superscripts as in 10^3."""
    for paragraph in element.iter(f"{A}p"):
        if text := read_paragraph(paragraph).strip():
            yield text


def read_paragraph(paragraph: Any) -> str:
    """Return the text of a DrawingML paragraph."""
    parts: list[str] = []
    for run in paragraph.iter(f"{A}r", f"{A}fld", f"{A}br"):
        if run.tag == f"{A}br":
            parts.append("\n")
            continue
        text = "".join(each.text or "" for each in run.iter(f"{A}t"))
        properties = run.find(f"{A}rPr")
        raised = properties is not None and re.match("0*[1-9]", properties.get("baseline", "0")) is not None
        parts.append(f"^{text}" if raised and text.strip() else text)
    return "".join(parts)


def read_lines(element: Any) -> str:
    """Return the text of all DrawingML paragraphs, one in a line."""
    return "\n".join(map(read_paragraph, element.iter(f"{A}p")))


def read_diagram(root: Any) -> list[str]:
    """Return the texts of a diagram's data part."""
    return [text for each in root.iter(f"{DIAGRAM}t") for text in read_paragraphs(each)]


def read_chart(root: Any) -> tuple[list[str], list[list[str]]]:
    """Return a chart's titles, and its table: a header with the names of its series, and a row for each category."""
    titles = [text for title in root.iter(f"{C}title") for text in read_paragraphs(title)]
    series = list(root.iter(f"{C}ser"))
    names = ["; ".join(_points(one.find(f"{C}tx")).values()) for one in series]
    labels: dict[int, str] = {}
    columns: list[dict[int, str]] = []
    for one in series:
        for tag in (f"{C}cat", f"{C}xVal"):
            for at, text in _points(one.find(tag)).items():
                labels.setdefault(at, text)
        values = one.find(f"{C}val")
        columns.append(_points(values if values is not None else one.find(f"{C}yVal")))
    places = sorted(set(labels).union(*columns))[:_MAX_POINTS]
    rows = [[labels.get(at, ""), *(column.get(at, "") for column in columns)] for at in places]
    return titles, [["", *names], *rows] if series else []


def _points(element: Any) -> dict[int, str]:
    """Return the stored values of a series by place, in their number formats. Levels of categories are joined."""
    found: dict[int, str] = {}
    caches = [f"{C}{name}" for name in ("strCache", "numCache", "lvl", "strLit", "numLit")]
    for cache in () if element is None else element.iter(*caches):
        code = cache.findtext(f"{C}formatCode") or "General"
        for point in cache.iterchildren(f"{C}pt"):
            at, text = point.get("idx", ""), (point.findtext(f"{C}v") or "").strip()
            if at.isdecimal() and len(at) < 7 and text:
                text = _write_point(text, point.get("formatCode", code)) if cache.tag.startswith(f"{C}num") else text
                found[int(at)] = f"{text} {found[int(at)]}" if int(at) in found else text
    if element is not None and not found:
        found = {at: each.text for at, each in enumerate(element.iter(f"{C}v")) if each.text}
    return found


def _write_point(text: str, code: str) -> str:
    try:
        return format_number(float(text), code)
    except (ValueError, OverflowError):
        return text
