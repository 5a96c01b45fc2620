"""Markdown: CommonMark with tables, through the HTML path."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from documents.decode import decode
from documents.parse import Parsed
from documents.parsers.html import parse_html
from documents.parsers.text import parse as parse_text

if TYPE_CHECKING:
    from markdown_it.token import Token

_DEEPEST = 60


def parse(data: bytes, source: str) -> Parsed:
    """The renderings of the HTML that the Markdown stands for; its title is its first heading.

    Below `_DEEPEST` levels the library leaves out what it does not reach, so text nested that deep is read as
    plain text.

    Raises:
        DocumentError: the data is binary.
    """
    from markdown_it import MarkdownIt

    markdown = MarkdownIt("commonmark", {"maxNesting": _DEEPEST}).enable(["table", "strikethrough"])
    text = _body(decode(data, source))
    tokens = markdown.parse(text)
    if any(token.level >= _DEEPEST - 1 for token in _all(tokens)):
        return parse_text(data, source)
    return parse_html(markdown.renderer.render(tokens, markdown.options, {}))


def _all(tokens: Sequence[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from token.children or ()


def _body(text: str) -> str:
    """The text without its YAML front matter, which is about the file and not of it."""
    lines = text.split("\n")
    if lines[0].strip() != "---":
        return text
    ends = [index for index, line in enumerate(lines[1:60], 1) if line.strip() in ("---", "...")]
    return "\n".join(lines[ends[0] + 1:]) if ends else text
