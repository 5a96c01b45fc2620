"""Name a document, a section and a page in one line, for search and for prompts."""
from __future__ import annotations

import re
from html import unescape
from pathlib import Path

from ragbed.documents.sources import is_record
from ragbed.documents.types import Chunk, Document

_SECTION = {"plain": re.compile(r"^#{1,6} (.+)$", re.MULTILINE), "html": re.compile(r"<h[1-6]>(.*?)</h[1-6]>")}
_REACH = 20_000  # maximum characters between a section's heading and its chunk
_TAG = re.compile(r"<[^>]*>")
TITLE_CHARACTERS = 120  # maximum characters of a title in a header; on some web pages the title is a paragraph
NAME_CHARACTERS = 60


def plain_header(source: str, title: str) -> str:
    """Return the file's name, as words, and the title.

    The title of a filing is often only a number or the name of an authority. On FinanceBench, this header puts the gold
    page among the first 10 hits for 18 of 22 questions. Adding the name only to titles without words does so for 16.
    """
    stem = "" if is_record(source) else Path(source).stem  # the name of its file says nothing about a record
    name = re.sub(r"[\W_]+", " ", stem)[:NAME_CHARACTERS].strip()
    title = title[:TITLE_CHARACTERS].strip()
    return title if name.casefold() in title.casefold() else f"{name}: {title}"


def passage_header(document: Document, chunk: Chunk) -> str:
    """Return a line that tells where a chunk is from: `plain_header`, the heading of its section and its page."""
    text = document.text(chunk.format)[:chunk.start]
    headings = _SECTION[chunk.format].findall(text, max(0, len(text) - _REACH))
    section = " ".join(unescape(_TAG.sub("", headings[-1])).split())[:TITLE_CHARACTERS] if headings else ""
    name = plain_header(document.source, document.title)
    page = f"page {chunk.pages[0]}" if chunk.pages else ""
    return "; ".join(filter(None, [name, "" if section.casefold() in name.casefold() else section, page]))
