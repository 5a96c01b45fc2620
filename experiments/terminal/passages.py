"""Hits and citations as the rows that `search --json` and `ask --json` print."""
from __future__ import annotations

from typing import Any

from documents.types import Chunk
from retrieval.index import Index
from retrieval.types import Hit


def hit_row(hit: Hit, index: Index) -> dict[str, Any]:
    """A hit with where it comes from."""
    return {"rank": hit.rank, "score": round(hit.score, 6), "found_by": hit.found_by, **chunk_row(hit.chunk, index)}


def chunk_row(chunk: Chunk, index: Index) -> dict[str, Any]:
    """A chunk and its place; `document` is the source's path, `pages` first and last, counted from 1."""
    return {"chunk": chunk.id, "document": index.source_of(chunk.document), "format": chunk.format,
            "pages": list(chunk.pages) if chunk.pages else None, "start": chunk.start, "end": chunk.end,
            "text": chunk.content}


def place(row: dict[str, Any]) -> str:
    """`report.pdf, pages 3-4` in words."""
    pages = row["pages"]
    if not pages:
        return str(row["document"])
    return f"{row['document']}, " + (f"page {pages[0]}" if pages[0] == pages[1] else f"pages {pages[0]}-{pages[1]}")
