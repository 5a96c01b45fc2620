"""Markdown: CommonMark with tables, through the HTML path."""
from __future__ import annotations

from documents.decode import decode
from documents.parse import Parsed
from documents.parsers.html import parse_html


def parse(data: bytes, source: str) -> Parsed:
    """The renderings of the HTML that the Markdown stands for; its title is its first heading.

    Raises:
        DocumentError: the data is binary.
    """
    from markdown_it import MarkdownIt

    text = decode(data, source)
    return parse_html(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(_body(text)))


def _body(text: str) -> str:
    """The text without its YAML front matter, which is about the file and not of it."""
    lines = text.split("\n")
    if lines[0].strip() != "---":
        return text
    ends = [index for index, line in enumerate(lines[1:60], 1) if line.strip() in ("---", "...")]
    return "\n".join(lines[ends[0] + 1:]) if ends else text
