"""Parse plain text, with paragraphs between blank lines, and Markdown: CommonMark with tables, converted to HTML."""
from __future__ import annotations

import re

from ragbed.documents.parse import Parsed, decode
from ragbed.documents.parsers.clean_html import TAGS, Close, Event, Open, normalize_text, simplify_spaces, write_html
from ragbed.documents.parsers.html import parse_page
from ragbed.documents.paths import keep_hidden_text

_BLANK = re.compile(r"\n[^\S\n]*(?:\n[^\S\n]*)+")
_ALIGNED = re.compile(r"\S(?: {3,}|\t)\S|^(?: {2,}|\t)\S.*\n", re.MULTILINE)
_MAX_DEPTH = 60


def parse_text(data: bytes, source: str) -> Parsed:
    """Parse a text file. Paragraphs become HTML paragraphs, and text aligned with spaces keeps its layout. Raises
    DocumentError if the data is binary."""
    decoded = decode(data, source)
    text = simplify_spaces(normalize_text(decoded).expandtabs(4))
    events: list[Event] = []
    for paragraph in _BLANK.split(text.strip("\n")):
        if paragraph.strip():
            tag = "pre" if _ALIGNED.search(paragraph) else "p"
            events += [Open(tag), paragraph if tag == "pre" else paragraph.strip(), Close(tag)]
    return Parsed("", write_html(events), text, hidden=0 if keep_hidden_text() else len(TAGS.findall(decoded)))


def parse_markdown(data: bytes, source: str) -> Parsed:
    """Convert Markdown to HTML; its title is its first heading. A file nested deeper than `_MAX_DEPTH` is read as plain
    text, because the library drops deeper content. Raises DocumentError if the data is binary."""
    from markdown_it import MarkdownIt

    markdown = MarkdownIt("commonmark", {"maxNesting": _MAX_DEPTH}).enable(["table", "strikethrough"])
    text = decode(data, source)
    lines = text.split("\n")
    if lines[0].strip() == "---":  # YAML front matter: metadata rather than content
        end = next((index for index, line in enumerate(lines[1:60], 1) if line.strip() in ("---", "...")), -1)
        text = "\n".join(lines[end + 1:])
    tokens = markdown.parse(text)
    if any(token.level >= _MAX_DEPTH - 1 for each in tokens for token in (each, *(each.children or ()))):
        return parse_text(data, source)
    return parse_page(markdown.renderer.render(tokens, markdown.options, {}))
