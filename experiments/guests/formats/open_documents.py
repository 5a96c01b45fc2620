"""Parse OpenDocument files: texts (.odt), spreadsheets (.ods) and presentations (.odp), as LibreOffice saves them."""
from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import replace
from html import escape
from typing import Any

from ragbed.documents.errors import DocumentError
from ragbed.documents.parsers.html import parse_page
from ragbed.documents.paths import keep_hidden_text
from ragbed.documents.types import Document, FieldValue
from ragbed.experiments.guests.formats.pages import (
    local_name,
    make_page,
    open_zip,
    parse_xml_tree,
    read_part,
    tag,
    text_of,
)

_SKIPPED = frozenset({"tracked-changes", "annotation", "annotation-end", "forms", "sequence-decls", "bookmark",
                      "table-of-content-source", "illustration-index-source", "user-index-source", "shapes"})
_TEXT = frozenset({"p", "h", "span", "a", "meta", "ruby", "ruby-base", "ruby-text", "note-body"})
_MAX_CELLS = 1_000_000
_MAX_COPIES = 1_000  # of a repeated row or cell with text
_MAX_DEPTH = 200
_FIELDS = {"creator": "author", "initial-creator": "author", "date": "date", "subject": "subject",
           "keyword": "keywords", "language": "language"}


def parse_open_document(data: bytes, source: str) -> Document:
    """Read headings, lists, tables, notes, text boxes, formulas and pictures' descriptions. Comments, deleted text,
    headers and footers are left out. Raises DocumentError if the file is damaged or encrypted."""
    with open_zip(data, source, "an OpenDocument file") as archive:
        names = set(archive.namelist())
        if "META-INF/manifest.xml" in names and b"encryption-data" in archive.read("META-INF/manifest.xml"):
            raise DocumentError(source, "encrypted: it needs a password")
        writer = _Writer(archive, source)
        body = writer.write_part("content.xml")
        title, fields = _metadata(parse_xml_tree(archive.read("meta.xml"), source)) if "meta.xml" in names else ("", {})
    parsed = make_page(body, title, fields)
    return replace(parsed, hidden=sum(len(parse_page(one).plain.strip()) for one in writer.hidden))


def _metadata(root: Any) -> tuple[str, dict[str, FieldValue]]:
    found = {local_name(one): text_of(one) for one in root.iter() if local_name(one) in {"title", *_FIELDS}}
    fields: dict[str, FieldValue] = {_FIELDS[name]: text for name, text in reversed(found.items())
                                     if name in _FIELDS and text}
    return found.get("title", ""), fields


class _Writer:
    """Writes the content of an archive as HTML. `hidden` collects what a reader cannot see."""

    def __init__(self, archive: Any, source: str) -> None:
        self._archive, self._source = archive, source
        self._invisible: set[str] = set()
        self._numbered: set[str] = set()  # styles of numbered lists
        self._cells = 0
        self.hidden: list[str] = []

    def write_part(self, name: str, depth: int = 0) -> str:
        """Return the HTML of a part, such as `content.xml`."""
        root = parse_xml_tree(read_part(self._archive, name, self._source), self._source)
        if local_name(root) == "math":
            return f"<math>{escape(text_of(root))}</math>" if not len(root) else _math(root)
        for style in root.iter():
            if local_name(style) == "style" and any(_attribute(one, "display") in ("none", "false") for one in style):
                self._invisible.add(_attribute(style, "name"))
            elif local_name(style) == "list-style" and [local_name(one) for one in style][:1] == [
                    "list-level-style-number"]:
                self._numbered.add(_attribute(style, "name"))
        body = next((one for one in root.iter() if local_name(one) == "body"), root)
        return "".join(self._write_all(body, depth))

    def _write_all(self, element: Any, depth: int) -> Iterator[str]:
        if depth > _MAX_DEPTH:
            raise DocumentError(self._source, "nested too deeply to parse")
        if (local_name(element) in _TEXT or local_name(element) == "title") and element.text:
            yield escape(element.text)
        for child in element:
            yield from self._write(child, depth)
            if local_name(element) in _TEXT and child.tail:
                yield escape(child.tail)

    def _write(self, element: Any, depth: int) -> Iterator[str]:
        name = local_name(element)
        if name in _SKIPPED:
            return
        if _attribute(element, "style-name") in self._invisible and not keep_hidden_text():
            self.hidden.append("".join(self._write_all(element, depth + 1)))
            return
        inside = self._write_all(element, depth + 1)
        if name == "s":
            yield " " * min(int(_attribute(element, "c") or 1), 100)
        elif name == "tab":
            yield " \t "
        elif name == "line-break":
            yield "<br>"
        elif name == "h":
            level = min(max(int(_attribute(element, "outline-level") or 1), 1), 6)
            yield f"<h{level}>{''.join(inside)}</h{level}>"
        elif name in ("p", "list", "list-item", "list-header", "note"):
            numbered = _attribute(element, "style-name") in self._numbered
            html = {"list": "ol" if numbered else "ul", "note": "span", "p": "p"}.get(name, "li")
            yield f"<{html}>{''.join(inside)}</{html}>"
        elif name == "note-citation":
            yield f"<sup>{escape(text_of(element))}</sup>"
        elif name == "note-body":
            yield f" [{' '.join(text_of(one) for one in element)}] "
        elif name == "a":
            yield f'<a href="{escape(_attribute(element, "href"), quote=True)}">{"".join(inside)}</a>'
        elif name == "page":
            yield f"<div>{''.join(inside)}</div>"
        elif name == "table":
            yield from self._table(element, depth)
        elif name in ("title", "desc") and not len(element):
            yield f'<img alt="{escape(element.text or "", quote=True)}">'
        elif name == "object":
            yield self._object(_attribute(element, "href"), depth)
        elif name in _TEXT:
            yield from inside
        else:
            yield from inside if len(element) else [escape(element.text or "")]

    def _object(self, href: str, depth: int) -> str:
        """Return an embedded formula or the table of a chart; nothing for other objects."""
        name = posixpath.normpath(posixpath.join(href, "content.xml"))
        known = depth < _MAX_DEPTH and name in self._archive.namelist() and name != "content.xml"
        return self.write_part(name, depth + 50) if known else ""

    def _table(self, table: Any, depth: int) -> Iterator[str]:
        name = _attribute(table, "name")
        if local_name(table.getparent()) == "spreadsheet":
            yield tag("h2", name)
        rows = [row for row in table.iter() if local_name(row) == "table-row" and _nearest_table(row) is table]
        heads = {row for row in rows if local_name(row.getparent()) == "table-header-rows"}
        yield "<table>"
        for row in rows:
            cells = "".join(self._cells_of(row, "th" if row in heads else "td", depth + 1))
            self._cells += cells.count("<t")
            if self._cells > _MAX_CELLS:
                raise DocumentError(self._source, f"more than the limit of {_MAX_CELLS:,} cells")
            copies = _count(row, "number-rows-repeated") if cells.replace("<td></td>", "") else 1
            yield f"<tr>{cells}</tr>" * copies
        yield "</table>"

    def _cells_of(self, row: Any, html: str, depth: int) -> Iterator[str]:
        empty = 0
        for cell in row:
            if local_name(cell) != "table-cell":  # others are covered by a cell that spans them
                continue
            inside, copies = "".join(self._write_all(cell, depth)), _count(cell, "number-columns-repeated")
            if not inside:
                empty += copies
                continue
            spans = "".join(f' {name}="{count}"' for name, count in (
                ("colspan", _count(cell, "number-columns-spanned")), ("rowspan", _count(cell, "number-rows-spanned")))
                if count > 1)
            yield f"<{html}></{html}>" * min(empty, _MAX_COPIES) + f"<{html}{spans}>{inside}</{html}>" * copies
            empty = 0


def _math(root: Any) -> str:
    """Return a formula as MathML without namespaces."""
    from lxml import etree

    for one in root.iter():
        one.tag = local_name(one) or one.tag
    return str(etree.tostring(root, encoding="unicode", with_tail=False))


def _nearest_table(row: Any) -> Any:
    return next(one for one in row.iterancestors() if local_name(one) == "table")


def _attribute(element: Any, name: str) -> str:
    return next((value for key, value in element.attrib.items() if key.rpartition("}")[2] == name), "")


def _count(element: Any, name: str) -> int:
    text = _attribute(element, name)
    return min(int(text), _MAX_COPIES) if text.isascii() and text.isdigit() and int(text) else 1
