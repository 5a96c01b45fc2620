"""Parse plain text, with paragraphs between blank lines, and Markdown: CommonMark with tables, converted to HTML.

A Markdown file may begin with front matter: YAML between `---`, or TOML between `+++`.
"""
from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime, time
from itertools import islice
from typing import TYPE_CHECKING, Any

from ragbed.documents.decoding import decode
from ragbed.documents.parsers.clean_html import (
    TAGS,
    Close,
    Event,
    Open,
    escape,
    normalize_text,
    simplify_spaces,
    write_html,
)
from ragbed.documents.parsers.html import parse_page
from ragbed.documents.paths import keep_hidden_text
from ragbed.documents.types import Document, FieldValue, new_document

if TYPE_CHECKING:
    from markdown_it.rules_block import StateBlock

_MAX_LENGTH = 64_000  # characters
_MAX_NESTING = 8
_MAX_FIELDS = 200  # aliases can repeat a mapping many times
_MAX_LISTED = 1_000  # characters of a list in one field
_FENCED = re.compile(r"\ufeff?(---|\+\+\+)[^\S\n]*\n(?:(.*?)\n)??(?:\1|(?<=\n)\.\.\.)[^\S\n]*(?:\n|\Z)", re.DOTALL)
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,17})(?:\.\d{1,17})?")


def split_front_matter(text: str) -> tuple[Mapping[str, FieldValue], str, str]:
    """Return the fields of the front matter, its lines, and the rest of the text. What is not YAML or TOML with fields
    is text, such as a paragraph between two rules."""
    found = _FENCED.match(text[:_MAX_LENGTH])
    if found is None:
        return {}, "", text
    lines = found[2] or ""
    fields = _read_yaml(lines) if found[1] == "---" else _read_toml(lines)
    if fields is None:
        return {}, "", text
    return dict(islice(_flatten(fields), _MAX_FIELDS)), lines, text[found.end():]


def _read_yaml(text: str) -> Mapping[Any, Any] | None:
    """Read YAML with all values as text, so that `02494` and `no` stay as written. None if it has no fields."""
    import yaml

    try:
        read = yaml.load(text, yaml.BaseLoader)  # noqa: S506 (makes texts, lists and mappings only)
    except (yaml.YAMLError, RecursionError, ValueError):
        return None
    empty = not re.sub(r"#.*", "", text).strip()
    return read if isinstance(read, dict) else {} if empty else None


def _read_toml(text: str) -> Mapping[Any, Any] | None:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError):
        return None


def _flatten(fields: Mapping[Any, Any], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, FieldValue]]:
    """Yield fields with one value each: `author: {name: Ann}` is `author.name`, and a list is text with commas."""
    for name, value in fields.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{name}.", depth + 1) if depth < _MAX_NESTING else ()
        elif isinstance(value, list):
            texts = [str(each) for each in map(_read_value, value) if each is not None]
            yield f"{prefix}{name}", ", ".join(texts)[:_MAX_LISTED]
        elif (read := _read_value(value)) is not None:
            yield f"{prefix}{name}", read


def _read_value(value: Any) -> FieldValue:
    if isinstance(value, datetime):
        return value.isoformat(" ")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, str):
        if value in ("true", "false"):
            return value == "true"
        return json.loads(value) if _NUMBER.fullmatch(value) else value or None
    return value if isinstance(value, bool | int | float) else None


_BLANK = re.compile(r"\n[^\S\n]*(?:\n[^\S\n]*)+")
_ALIGNED = re.compile(r"\S(?: {3,}|\t)\S|^(?: {2,}|\t)\S.*\n", re.MULTILINE)
_MAX_DEPTH = 60
_MAX_ROW = 20_000  # characters of a row of a table in which code is looked for
_PIECE = re.compile(r"\\.|[^|\\]+|.", re.DOTALL)
_CODE_PIECE = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)|\\.|.", re.DOTALL)


def parse_text(data: bytes, source: str) -> Document:
    """Parse a text file. Paragraphs become HTML paragraphs, and text aligned with spaces keeps its layout. Raises
    DocumentError if the data is binary."""
    decoded = decode(data, source)
    text = simplify_spaces(normalize_text(decoded).expandtabs(4))
    events: list[Event] = []
    for paragraph in _BLANK.split(text.strip("\n")):
        if paragraph.strip():
            tag = "pre" if _ALIGNED.search(paragraph) else "p"
            events += [Open(tag), paragraph if tag == "pre" else paragraph.strip(), Close(tag)]
    return new_document("", write_html(events), text, hidden=0 if keep_hidden_text() else len(TAGS.findall(decoded)))


def parse_markdown(data: bytes, source: str) -> Document:
    """Convert Markdown to HTML. Front matter gives the title and fields, and its lines come first in the text. Without
    a title there, the first heading is the title.

    A file nested deeper than `_MAX_DEPTH` is read as plain text, because the library drops deeper content. Raises
    DocumentError if the data is binary."""
    from markdown_it import MarkdownIt

    markdown = MarkdownIt("commonmark", {"maxNesting": _MAX_DEPTH}).enable(["table", "strikethrough"])
    markdown.block.ruler.at("table", _read_table, {"alt": ["paragraph", "reference"]})
    markdown.block.ruler.at("reference", _read_reference)
    fields, lines, text = split_front_matter(re.sub("\r\n?", "\n", decode(data, source)))
    title = fields.get("title")
    tokens = markdown.parse(text)
    if any(token.level >= _MAX_DEPTH - 1 for each in tokens for token in (each, *(each.children or ()))):
        parsed = parse_text(data, source)
    else:
        head = f"<p>{'<br>'.join(map(escape, lines.split(chr(10))))}</p>\n" if lines.strip() else ""
        parsed = parse_page(head + markdown.renderer.render(tokens, markdown.options, {}))
    return replace(parsed, title=" ".join(normalize_text(str(title)).split()) if title else parsed.title,
                   fields={name: value for name, value in fields.items() if name != "title"})


def _read_reference(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """Read the target of a link. A footnote with one word, as in `[^1]: Yes`, is text."""
    from markdown_it.rules_block import reference

    return not state.src.startswith("[^", state.bMarks[first] + state.tShift[first]) and reference(
        state, first, end, silent)


def _read_table(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """Read a table, and keep the cells beyond its header, which the library drops. In a row that has too many, a
    `|` inside code does not end a cell."""
    from markdown_it.rules_block import table

    begin = len(state.tokens)
    if not table(state, first, end, silent):
        return False
    made = state.tokens[begin:]
    del state.tokens[begin:]
    width = sum(token.type == "th_open" for token in made)
    for token in made:
        rows = state.tokens[-3 * width:]
        if token.type == "tr_close" and rows[0].type == "td_open" and rows[1].map is not None:
            line = rows[1].map[0]
            cells = _split_row(state.src[state.bMarks[line] + state.tShift[line]:state.eMarks[line]], width)
            if len(cells) > width or cells != [each.content for each in rows[1::3]][:len(cells)]:
                del state.tokens[-3 * width:]
                for cell in cells:
                    state.push("td_open", "td", 1)
                    inline = state.push("inline", "", 0)
                    inline.map, inline.content, inline.children = [line, line + 1], cell, []
                    state.push("td_close", "td", -1)
        state.tokens.append(token)
    return True


def _split_row(line: str, width: int) -> list[str]:
    """Return the cells of a row. Those beyond the header's width may be parts of code, which is then not divided."""
    cells = _split_cells(line, _PIECE)
    if len(cells) > width and len(line) < _MAX_ROW:
        cells = _split_cells(line, _CODE_PIECE)
    return cells


def _split_cells(line: str, pieces: re.Pattern[str]) -> list[str]:
    cells = [""]
    for piece in pieces.finditer(line.strip()):
        if piece[0] == "|":
            cells.append("")
        else:
            cells[-1] += "|" if piece[0] == "\\|" else piece[0]
    inner = cells[1:] if not cells[0] and len(cells) > 1 else cells
    return [cell.strip() for cell in (inner[:-1] if not inner[-1] and len(inner) > 1 else inner)]
