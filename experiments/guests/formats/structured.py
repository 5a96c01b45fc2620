"""Parse JSON and XML as readable text: one line `path: value` for each value. Each line of a JSON Lines file is a
document of its own."""
from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

from ragbed.documents.decoding import decode
from ragbed.documents.errors import DocumentError
from ragbed.documents.parsers.html import parse_html
from ragbed.documents.sources import MAX_BYTES, Record
from ragbed.documents.types import Document, FieldValue
from ragbed.experiments.guests.formats.pages import local_name, make_page, paragraphs, parse_xml_tree, tag, text_of

_TITLES = ("title", "name", "headline", "subject")
_TEXTS = ("text", "contents", "content", "body", "abstract")
_IDS = ("_id", "id", "docid", "doc_id")
_SHORT = 200  # characters; a longer value of a record goes into its text instead of its fields
_MAX_DEPTH = 200
_HEADINGS = frozenset({"title", "head", "heading", "subtitle"})
_PROSE = frozenset({"p", "para", "simpara", "formalpara", "ab", "l", "li", "item", "listitem", "quote", "speaker", "td",
                    "th", "entry", "caption", "label", "note", "footnote"})
_DECLARED = re.compile(rb"""^[^<]*<\?xml[^>]*encoding\s*=\s*["']([\w.-]+)""")


class _Decimal(float):
    """A number that is shown as it is written, such as `1.10`."""

    def __init__(self, written: str) -> None:
        self.written = written


def parse_json(data: bytes, source: str) -> Document:
    """Read JSON: each value stands after its path, and each object of a list at the top becomes a section. Raises
    DocumentError if it is not valid."""
    value = load_json(data, source)
    if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        return replace(make_page("".join(_section(one, number) for number, one in enumerate(value, 1))), title="")
    if isinstance(value, dict) and isinstance(value.get("cells"), list) and "nbformat" in value:
        return make_page("".join(_cell(one) for one in value["cells"] if isinstance(one, dict)))
    title = _first(value, _TITLES) if isinstance(value, dict) else ""
    return make_page("".join(_values(value, "", source, 0)), title, _fields(value) if isinstance(value, dict) else {})


def parse_record(data: bytes, source: str) -> Document:
    """Read one line of a JSON Lines file: a document whose text is `text` under its `title`, as in BEIR's corpora. Its
    other short values are fields to filter by. An object without a text is read like JSON."""
    value = load_json(data, source)
    if not isinstance(value, dict):
        return make_page("".join(_values(value, "", source, 0)))
    title, texts = _first(value, _TITLES), [name for name in _TEXTS if isinstance(value.get(name), str)]
    if not texts:
        return make_page("".join(_values(value, "", source, 0)), title, _fields(value))
    rest = {name: one for name, one in value.items() if name not in (*texts[:1], *_TITLES, *_IDS)}
    if title:  # a title that is not shown as the heading stays among the rest
        rest |= {name: value[name] for name in _TITLES if name in value and value[name] != title}
    fields = {**_fields(rest), **{name: value[name] for name in _IDS if isinstance(value.get(name), str | int)}}
    more = "".join(_values({name: one for name, one in rest.items() if name not in fields and one not in (
        None, "", [], {})}, "", source, 0))
    return make_page(tag("h1", title) + paragraphs(value[texts[0]]) + more, title, fields)


def load_json(data: bytes, source: str) -> Any:
    """Decode and parse JSON. Raises DocumentError if it is not valid or nested too deeply."""
    try:
        return json.loads(decode(data, source), parse_float=_Decimal)
    except ValueError as error:
        raise DocumentError(source, f"not valid JSON: {error}") from error
    except RecursionError:
        raise DocumentError(source, "nested too deeply to parse") from None


def record_id(line: bytes) -> str:
    """Return the id that a line of JSON Lines states; empty if it has none, or is not an object."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    return _first(value, _IDS) if isinstance(value, dict) else ""


def _first(value: Mapping[str, Any], names: tuple[str, ...]) -> str:
    found = (value.get(name) for name in names)
    return next((" ".join(str(one).split()) for one in found if isinstance(one, str | int) and str(one).strip()), "")


def _fields(value: Mapping[str, Any]) -> dict[str, FieldValue]:
    """Return the short values of an object, also those of objects in it, as `metadata.url`."""
    fields: dict[str, FieldValue] = {}
    for name, one in value.items():
        for path, inner in ([(name, one)] if not isinstance(one, dict) else
                            [(f"{name}.{key}", each) for key, each in one.items()]):
            if isinstance(inner, bool | int | float) or (isinstance(inner, str) and len(inner) <= _SHORT):
                fields[path] = inner
        if isinstance(one, dict) and one and all(f"{name}.{key}" in fields for key in one):
            fields[name] = None  # all of it is among the fields
    return fields


def _section(record: Mapping[str, Any], number: int) -> str:
    heading = _first(record, (*_TITLES, *_IDS)) or f"{number}"
    return tag("h2", heading) + "".join(_values(record, "", heading, 0))


def _cell(cell: Mapping[str, Any]) -> str:
    """Return a cell of a notebook: prose, or code with its printed output."""
    text = _joined(cell.get("source"))
    if cell.get("cell_type") == "markdown":
        from markdown_it import MarkdownIt

        return str(MarkdownIt("commonmark", {"html": True}).enable("table").render(text))
    outputs = [one for one in cell.get("outputs") or () if isinstance(one, dict)]
    shown = [one.get("data") or {} for one in outputs]
    printed = [_joined(one.get("text") or data.get("text/plain")) or ": ".join(str(one[name]) for name in (
        "ename", "evalue") if one.get(name)) for one, data in zip(outputs, shown, strict=True)]
    pages = [_joined(data.get("text/html")) for data in shown if not data.get("text/plain")]
    return "".join([*(tag("pre", one) for one in (text, *printed)), *pages])


def _joined(text: Any) -> str:
    return "".join(map(str, text)) if isinstance(text, list) else str(text or "")


def _values(value: Any, path: str, source: str, depth: int) -> Iterator[str]:
    if depth > _MAX_DEPTH:
        raise DocumentError(source, "nested too deeply to parse")
    if isinstance(value, dict):
        for name, one in value.items():
            yield from _values(one, f"{path}.{name}" if path else name, source, depth + 1)
    elif isinstance(value, list) and all(isinstance(one, str | int | float | None) for one in value) and (
            sum(len(str(one)) for one in value) <= _SHORT):
        yield paragraphs(", ".join(map(_text, value)), path)
    elif isinstance(value, list):
        for number, one in enumerate(value, 1):
            yield from _values(one, f"{path}[{number}]" if isinstance(one, dict | list) else path, source, depth + 1)
    elif value is not None:
        yield paragraphs(_text(value), path)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else value.written if isinstance(value, _Decimal) else json.dumps(
        value, ensure_ascii=False)


def parse_xml(data: bytes, source: str) -> Document:
    """Read XML: each text stands after the name of its element, and titles and paragraphs stand alone. Entities that
    the file defines are not expanded. Raises DocumentError if it is not well-formed."""
    root = parse_xml_tree(_unicode(data, source), source)
    if local_name(root) == "html":
        return parse_html(data, source)
    body = "".join(_elements(root, "", source, 0))
    titles = (one for one in root.iter() if local_name(one) in _HEADINGS)
    parsed = make_page(body, next((text for one in titles if (text := text_of(one))), ""))
    return replace(parsed, fields={})


def _unicode(data: bytes, source: str) -> bytes:
    """Return the file in UTF-8 without its declaration, because declared encodings may be wrong."""
    found = _DECLARED.match(data[:1_000])
    text = decode(data, source, found[1].decode("ascii", "replace") if found else None)
    return re.sub(r"^\s*<\?xml[^>]*\?>", "", text.lstrip("\ufeff")).lstrip().encode("utf-8", "replace")


def _elements(element: Any, path: str, source: str, depth: int) -> Iterator[str]:
    if depth > _MAX_DEPTH:
        raise DocumentError(source, "nested too deeply to parse")
    name = local_name(element)
    here = f"{path}.{name}" if path else name
    for key, value in element.attrib.items():
        yield paragraphs(value, f"{here}@{key.rpartition('}')[2]}")
    mixed = (element.text or "").strip() or any((child.tail or "").strip() for child in element)
    if mixed or not len(element):
        text = text_of(element)
        if name in _HEADINGS:
            yield tag("h2", text)
        elif text:
            yield f"<p>{escape(text)}</p>" if name in _PROSE else paragraphs(text, here)
        for child in element.iterdescendants() if mixed else ():
            for key, value in child.attrib.items():
                yield paragraphs(value, f"{here}.{local_name(child)}@{key.rpartition('}')[2]}")
        return
    for child in element:
        yield from _elements(child, here if depth else "", source, depth + 1)


_MAX_PARSED = 4_000_000  # bytes of a line that is parsed for its id; a longer line is named by its number


def find_records(path: Path) -> Iterator[Record]:
    """Yield each line that is not blank, with its id or number. Raises OSError if the file cannot be read."""
    seen: set[str] = set()
    with path.open("rb") as file:
        number = start = 0
        if file.peek(2)[:2] in (b"\xff\xfe", b"\xfe\xff"):
            return  # UTF-16, whose lines cannot be found by their bytes
        while line := file.readline(MAX_BYTES + 1):
            begin, start, number = start, start + len(line), number + 1
            whole = line.endswith(b"\n") or len(line) <= MAX_BYTES
            while not whole and (more := file.readline(MAX_BYTES)):  # the rest of a line that is too long
                start, whole = start + len(more), more.endswith(b"\n")
            text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            if not text.strip():
                continue
            named = record_id(text) if len(text) <= _MAX_PARSED else ""
            name = named or f"line {number}"
            if name in seen:
                name = f"{name} line {number}"
            seen.add(name)
            yield Record(name, begin + len(line) - len(text), start, named == name)
