"""Parse Word files with mammoth, after rewriting what mammoth does not read."""
from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ragbed.documents.errors import MissingExtra
from ragbed.documents.parsers.html import parse_page
from ragbed.documents.paths import keep_hidden_text
from ragbed.documents.types import Document
from ragbed.experiments.guests.office.drawings import (
    DIAGRAM,
    MARKUP,
    C,
    R,
    parse_xml,
    read_chart,
    read_diagram,
    read_relations,
)
from ragbed.experiments.guests.office.office_math import read_office_math
from ragbed.experiments.guests.office.slides import open_archive
from ragbed.experiments.guests.office.word_numbering import WORD, Numbering

_STYLES = """
p[style-name='Title'] => h1:fresh
p[style-name='Subtitle'] => p:fresh
"""
_BACK = re.compile(r' <a href="#(?:foot|end)note-ref-[^"]*">↑</a>')
_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"
_WRAPPER = f"{WORD}smartTag"  # mammoth reads what is inside
_CONTENT = frozenset(f"{WORD}{name}" for name in ("r", "p", "tbl", "hyperlink"))
# Parents of content that mammoth reads, or leaves out because they are deleted.
_PARENTS = frozenset(f"{WORD}{name}" for name in (
    "p", "tbl", "tr", "tc", "body", "document", "footnotes", "footnote", "endnotes", "endnote", "sdt", "sdtContent",
    "ins", "moveTo", "hyperlink", "smartTag", "customXml", "pict", "object", "drawing", "txbxContent", "hdr", "ftr",
    "del", "moveFrom", "r", "ruby", "rt", "rubyBase"))
_RENAMED = {f"{WORD}cr": f"{WORD}br", f"{WORD}ptab": f"{WORD}tab"}
_MARK = "\ufdd0"  # stands on both sides of the number of a list item; not a character that texts have
_ITEM = re.compile(rf"<li>((?:<a id=\"[^\"]*\"></a>)*)((?:<(?:strong|em|sup|sub)>)*){_MARK}(\d+){_MARK}")
_MARKED = re.compile(rf"{_MARK}\d*{_MARK}?")
# What mammoth reads as numbering: list 1 has numbers, and list 2 has bullets.
_LISTS = (f'<w:numbering xmlns:w="{WORD[1:-1]}">' + "".join(
    f'<w:abstractNum w:abstractNumId="{id}">' + "".join(
        f'<w:lvl w:ilvl="{level}"><w:numFmt w:val="{format}"/></w:lvl>' for level in range(9)) + "</w:abstractNum>"
    for id, format in ((1, "decimal"), (2, "bullet"))) + "".join(
    f'<w:num w:numId="{id}"><w:abstractNumId w:val="{id}"/></w:num>' for id in (1, 2)) + "</w:numbering>").encode()


def parse_docx(data: bytes, source: str) -> Document:
    """Read a Word document: headings, lists with the numbers that Word shows, tables, formulas, notes, drawings.

    Headers and footers come once, at the end. Comments and deleted text are left out; hidden text is left out and
    counted. Raises DocumentError if it is not a valid Word document, and MissingExtra without mammoth.
    """
    MissingExtra.check("office", "mammoth")
    import mammoth

    with open_archive(data, source) as file:
        rewritten, hidden = _rewrite(file)
        page = mammoth.convert_to_html(rewritten, style_map=_STYLES, include_embedded_style_map=False,
                                       convert_image=mammoth.images.img_element(lambda image: {})).value
    page = _MARKED.sub("", _ITEM.sub(r'<li value="\3">\1\2', _BACK.sub("", page)))
    document = parse_page(page)
    return replace(document, hidden=document.hidden + hidden)


def _rewrite(file: io.BytesIO) -> tuple[io.BytesIO, int]:
    """Return the file with its text rewritten for mammoth, and the number of hidden characters that were removed."""
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(seen := io.BytesIO(), "w") as new:
        names = {kind: name for kind, name in read_relations(old, "").values() if kind == "officeDocument"}
        main = names.get("officeDocument", "word/document.xml")
        related = read_relations(old, main) if main in old.NameToInfo else {}
        parts = {name: kind for kind, name in related.values() if name in old.NameToInfo}
        kinds = {kind: name for name, kind in parts.items()}
        numbering, styles = ((parse_xml(old.read(kinds[kind])) if kind in kinds else None)
                             for kind in ("numbering", "styles"))
        counter = Numbering.read(numbering, styles)
        hidden = 0
        for name in old.namelist():
            if not name.endswith((".xml", ".rels")):
                continue
            part = old.read(name)
            if name == main or parts.get(name) in ("footnotes", "endnotes"):
                body = _Body(parse_xml(part), old, read_relations(old, name), counter, _heading_styles(styles))
                if name == main:
                    body.add_margins([parse_xml(old.read(each)) for each, kind in sorted(parts.items())
                                      if kind in ("header", "footer")])
                part, hidden = body.rewrite(), hidden + body.hidden
            elif name == kinds.get("styles"):
                part = _name_styles(styles)
            new.writestr(name, _LISTS if name == kinds.get("numbering") else part)
    return seen, hidden


def _name_styles(styles: Any) -> bytes:
    """Return the styles with their names alone, since mammoth reads all else for longer than the document, in vain."""
    from lxml import etree

    named = etree.Element(styles.tag)
    for style in styles.iterchildren("{*}style"):
        etree.SubElement(named, style.tag, style.attrib).extend(style.findall("{*}name"))
    return bytes(etree.tostring(named))


def _heading_styles(styles: Any) -> frozenset[str]:
    """Return the ids of the styles that become headings."""
    found = [] if styles is None else styles.iterchildren(f"{WORD}style")
    names = {style.get(f"{WORD}styleId", ""): style.find(f"{WORD}name") for style in found}
    return frozenset(id for id, name in names.items() if name is not None and re.fullmatch(
        "title|heading [1-6]", name.get(f"{WORD}val", "").lower()))


@dataclass(slots=True)
class _Body:
    """The text of a document, or of its notes, to be rewritten in place."""

    root: Any
    archive: zipfile.ZipFile
    related: dict[str, tuple[str, str]]
    counter: Numbering
    headings: frozenset[str]
    hidden: int = 0

    def rewrite(self) -> bytes:
        from lxml import etree

        self._choose_alternatives()
        if not keep_hidden_text():
            self._remove_hidden()
        self._write_formulas()
        self._read_drawings()
        for element in list(self.root.iter(f"{WORD}cr", f"{WORD}ptab", f"{WORD}sym")):
            code = element.get(f"{WORD}char", "")
            if element.tag in _RENAMED:
                element.tag = _RENAMED[element.tag]
            elif re.fullmatch("[0-9A-Fa-f]{4}", code) and not "D800" <= code.upper() < "F900":  # not in a symbol font
                element.tag, element.text = f"{WORD}t", chr(int(code, 16))
        for element in list(self.root.iter("{*}*")):
            if element.tag not in _PARENTS and any(child.tag in _CONTENT for child in element):
                element.tag = _WRAPPER
        self._number_paragraphs()
        return bytes(etree.tostring(self.root))

    def add_margins(self, roots: Sequence[Any]) -> None:
        """Add the paragraphs of headers and footers to the end of the document, each text once."""
        body = self.root.find(f"{WORD}body")
        texts = dict.fromkeys(text for root in roots for paragraph in root.iter(f"{WORD}p") if (text := "".join(
            each.text or "" if each.tag == f"{WORD}t" else " "
            for each in paragraph.iter(f"{WORD}t", f"{WORD}tab", f"{WORD}br")).strip()))
        for text in texts if body is not None else ():
            body.append(_make_paragraph(text))

    def _choose_alternatives(self) -> None:
        """Replace alternatives by the first if it has text, because mammoth reads only the last."""
        for element in list(self.root.iter(f"{MARKUP}AlternateContent")):
            choice = element.find(f"{MARKUP}Choice")
            readable = choice is not None and next(choice.iter(
                f"{WORD}t", f"{_MATH}t", f"{C}chart", f"{DIAGRAM}relIds"), None) is not None
            if readable:
                parent = element.getparent()
                at = parent.index(element)
                parent[at:at + 1] = list(choice)

    def _remove_hidden(self) -> None:
        for run in list(self.root.iter(f"{WORD}r")):
            mark = run.find(f"{WORD}rPr/{WORD}vanish")
            parent = run.getparent()
            if mark is not None and parent is not None and mark.get(f"{WORD}val") not in ("0", "false"):
                self.hidden += len("".join(map(str, run.itertext())))
                parent.remove(run)

    def _write_formulas(self) -> None:
        """Turn formulas and glossed words into runs of text."""
        for one in list(self.root.iter(f"{WORD}ruby", f"{_MATH}oMath")):
            base = one.find(f"{WORD}rubyBase")
            text = read_office_math(one) if base is None else "".join(each.text or "" for each in base.iter(f"{WORD}t"))
            text += "".join(f"({gloss})" for part in one.findall(f"{WORD}rt") if (gloss := "".join(
                each.text or "" for each in part.iter(f"{WORD}t"))))
            tail = one.tail
            one.clear()
            one.tag, one.tail = _WRAPPER, tail
            one.append(_make_run(text))
        for whole in self.root.iter(f"{_MATH}oMathPara"):
            whole.tag = _WRAPPER

    def _read_drawings(self) -> None:
        """Put text boxes, charts and diagrams behind their paragraph, and WordArt and form entries behind their run."""
        for each in list(self.root.iter("{urn:schemas-microsoft-com:vml}textpath", f"{WORD}ddList")):
            entries = [one.get(f"{WORD}val", "") for one in each.iter(f"{WORD}listEntry")]
            chosen = each.find(f"{WORD}result")
            at = "0" if chosen is None else chosen.get(f"{WORD}val", "0")
            text = each.get("string") or (entries[int(at)] if at.isdecimal() and int(at) < len(entries) else "")
            run = next(each.iterancestors(f"{WORD}r"), None)
            if text and run is not None:
                run.addnext(_make_run(text))
        for drawing in list(self.root.iter(f"{WORD}drawing")):
            blocks = [child for box in drawing.iter(f"{WORD}txbxContent") if not any(
                above.tag == f"{WORD}txbxContent" for above in _parents_within(box, drawing)) for child in box]
            for chart in drawing.iter(f"{C}chart"):
                if root := self._related(chart.get(f"{R}id")):
                    titles, rows = read_chart(root[0])
                    blocks += [*map(_make_paragraph, titles), *([_make_table(rows)] if rows else [])]
            for diagram in drawing.iter(f"{DIAGRAM}relIds"):
                blocks += [_make_paragraph(text) for root in self._related(diagram.get(f"{R}dm"))
                           for text in read_diagram(root)]
            if blocks and drawing.getparent() is not None:
                pict = drawing.makeelement(f"{WORD}pict")
                pict.extend(blocks)
                drawing.addnext(pict)

    def _related(self, id: str | None) -> list[Any]:
        _, name = self.related.get(id or "", ("", ""))
        return [parse_xml(self.archive.read(name))] if name in self.archive.NameToInfo else []

    def _number_paragraphs(self) -> None:
        """Write numbers as text. Items of simple lists get a list that mammoth reads, and a mark with their number."""
        listed: dict[str, set[int]] = {}
        open_items: list[tuple[int, int, Any]] = []  # by depth: the list that mammoth reads, the number, the parent
        for paragraph in list(self.root.iter(f"{WORD}p")):
            properties = paragraph.find(f"{WORD}pPr")
            if properties is not None and properties.find(f"{WORD}rPr/{WORD}del") is not None:
                continue  # it continues in the next paragraph
            label = self.counter.next_label(paragraph)
            for own in () if properties is None else properties.findall(f"{WORD}numPr"):
                properties.remove(own)
            if next(paragraph.iter(f"{WORD}t", f"{WORD}sym", f"{WORD}drawing"), None) is None:
                continue
            style = None if properties is None else properties.find(f"{WORD}pStyle")
            heading = style is not None and style.get(f"{WORD}val") in self.headings
            text = "" if label is None else label.text
            if label is None or heading or (label.value is None and not label.bullet):
                open_items.clear()
            else:
                levels = listed.setdefault(label.list, set())
                levels.add(label.level)
                depth = min(sum(level < label.level for level in levels), len(open_items))
                kind, parent, value = 2 if label.bullet else 1, paragraph.getparent(), label.value or 0
                before = open_items[depth:depth + 1]
                follows = before[0][1] + 1 if before and before[0][0] == kind and before[0][2] is parent else 1
                open_items[depth:] = [(kind, value, parent)]
                _set_list(paragraph, kind, depth)
                text = "" if label.bullet or value == follows else f"{_MARK}{value}{_MARK}"
            if text:
                first = paragraph.find(f"{WORD}pPr")
                paragraph.insert(0 if first is None else paragraph.index(first) + 1, _make_run(text))


def _parents_within(element: Any, top: Any) -> Iterator[Any]:
    while (element := element.getparent()) is not None and element is not top:
        yield element


def _set_list(paragraph: Any, list_id: int, level: int) -> None:
    properties = paragraph.find(f"{WORD}pPr")
    if properties is None:
        properties = paragraph.makeelement(f"{WORD}pPr")
        paragraph.insert(0, properties)
    numbering = _make("numPr", _make("ilvl"), _make("numId"))
    for child, value in zip(numbering, (level, list_id), strict=True):
        child.set(f"{WORD}val", str(value))
    properties.append(numbering)


def _make(name: str, *children: Any) -> Any:
    from lxml import etree

    element = etree.Element(f"{WORD}{name}")
    element.extend(children)
    return element


def _make_run(text: str) -> Any:
    content = _make("t")
    content.text = text
    content.set(_SPACE, "preserve")
    return _make("r", content)


def _make_paragraph(text: str) -> Any:
    return _make("p", _make_run(text))


def _make_table(rows: Iterable[Sequence[str]]) -> Any:
    made = [_make("tr", *(_make("tc", _make_paragraph(text)) for text in row)) for row in rows]
    made[0].insert(0, _make("trPr", _make("tblHeader")))
    return _make("tbl", *made)
