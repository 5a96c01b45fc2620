"""Parse texts that are shown as they are, such as source code and logs, and the markup of reStructuredText and RTF."""
from __future__ import annotations

import re
from dataclasses import replace
from html import escape
from typing import Any

from ragbed.documents.decoding import decode
from ragbed.documents.errors import DocumentError, MissingExtra
from ragbed.documents.parsers.clean_html import Close, Event, Open, normalize_text, simplify_spaces, write_html
from ragbed.documents.paths import keep_hidden_text
from ragbed.documents.types import Document, FieldValue, new_document
from ragbed.experiments.guests.formats.pages import make_page, paragraphs, tag

_BLANK = re.compile(r"\n(?:[^\S\n]*\n)+")
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")  # codes for terminals
_RULE = re.compile(r"([=\-`:'\"~^_*+#<>.])\1{2,}\s*")
_DIRECTIVE = re.compile(r"\.\. +(?:[\w-]+::|_|\[|\|)|\.\.$")
_FIELD = re.compile(r":([A-Za-z][\w -]{0,40}):\s+(\S.*)")


def parse_code(data: bytes, source: str) -> Document:
    """Read source code or a log as it is, with spaces for tabs. Raises DocumentError if the data is binary."""
    text = simplify_spaces(normalize_text(_COLOUR.sub("", decode(data, source))).expandtabs(4))
    events: list[Event] = []
    for block in _BLANK.split(text.strip("\n")):
        if block.strip():
            events += [Open("pre"), block, Close("pre")]
    return new_document("", write_html(events), text)


def parse_rst(data: bytes, source: str) -> Document:
    """Read reStructuredText: underlined titles become headings, and fields at the top can be filtered by. Other markup
    stays as it is written. Raises DocumentError if the data is binary."""
    lines = decode(data, source).replace("\r\n", "\n").split("\n")
    body: list[str] = []
    levels: list[str] = []
    waiting: list[str] = []
    fields: dict[str, FieldValue] = {}

    def flush() -> None:
        text = "\n".join(waiting)
        waiting.clear()
        aligned = any(line.startswith((" ", "\t")) for line in text.split("\n") if line.strip())
        body.append(tag("pre", text) if aligned else paragraphs(text))

    at = 0
    while at < len(lines):
        line = lines[at].rstrip()
        over = bool(_RULE.fullmatch(line)) and at + 2 < len(lines) and lines[at + 2].rstrip() == line
        title = lines[at + 1].strip() if over else line.strip()
        under = lines[at + 1].rstrip() if not over and at + 1 < len(lines) else line
        if title and not title.startswith("..") and _RULE.fullmatch(under) and not _RULE.fullmatch(title) and (
                over or (len(under) >= len(title) and not line.startswith(" ") and not waiting)):
            flush()
            style = f"{under[0]}{'over' if over else ''}"
            levels += [style] if style not in levels else []
            body.append(tag(f"h{min(levels.index(style) + 1, 6)}", title))
            at += 3 if over else 2
            continue
        if len(body) <= 3 and not waiting and (found := _FIELD.fullmatch(line)):
            fields[found[1].lower()] = found[2]
        if line:
            waiting.append(line)
        elif waiting:
            flush()
        at += 1
    flush()
    return make_page("".join(body), fields=fields)


_GROUP_V = re.compile(r"\{[^{}]*\\v(?![a-z0-9])[^{}]*\}")
_SHOWN = re.compile(r"\\(?:\*\\)?(?:footnote|shp|shpinst|shptxt|shprslt|result)(?![a-z])")
_INFO = re.compile(r"\{\\(title|author|subject|keywords)\s((?:[^{}\\]|\\'[0-9a-f]{2}|\\u-?\d+ ?\??)*)\}")
_INFO_END = 20_000


def parse_rtf(data: bytes, source: str) -> Document:
    """Read Rich Text: paragraphs, tables and footnotes; pictures are left out. Raises DocumentError if it is not RTF,
    and MissingExtra without striprtf."""
    MissingExtra.check("formats", "striprtf")
    if not data.lstrip()[:5] == b"{\\rtf":
        raise DocumentError(source, "not RTF: it does not begin with {\\rtf")
    raw = data.decode("latin-1")
    hidden = 0
    if not keep_hidden_text():
        hidden = sum(len(_plain(found[0]).strip()) for found in _GROUP_V.finditer(raw))
        raw = _GROUP_V.sub("", raw)
    fields: dict[str, FieldValue] = {name: _plain("{\\rtf1 " + text + "}").strip()
                                     for name, text in _INFO.findall(raw[:_INFO_END])}
    title = str(fields.pop("title", ""))
    return replace(make_page(_rtf_body(_plain(_SHOWN.sub(" ", raw))), title, fields), hidden=hidden)


def _plain(text: str) -> str:
    from striprtf import striprtf

    library: Any = striprtf  # without types
    return str(library.rtf_to_text(text, errors="replace"))


def _rtf_body(text: str) -> str:
    """Return paragraphs, and lines of cells as tables."""
    parts: list[str] = []
    rows: list[str] = []
    for line in [*text.split("\n"), ""]:
        cells = line.split("|")
        if len(cells) > 1 and not cells[-1].strip():
            rows.append("".join(f"<td>{escape(cell)}</td>" for cell in cells[:-1]))
            continue
        if rows:
            parts.append(f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>")
            rows = []
        parts.append(tag("p", line))
    return "".join(parts)
