"""Material that loaders share: passages as documents of one chunk each, and options under their letters."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from documents.types import Chunk, Document, digest
from experiments.question import Gold

MOST_LETTERS = 26


def passage(text: str, title: str = "", id: str | None = None) -> tuple[Document, Chunk]:
    """A passage as a document in plain text and its one chunk, which begins with the title.

    Equal passages are one document, in whichever question they stand, unless `id` says otherwise; its source is its
    title, or `id`.
    """
    content = f"{title}\n{text}" if title else text
    name = digest("passage", title, text)[:16] if id is None else id
    document = Document(name, (title if id is None else "") or name, title, "", content)
    return document, Chunk.of(document, "plain", 0, len(content))


def pieces(document: Document, texts: Iterable[str]) -> dict[int, Chunk]:
    """Texts that a passage holds one after the other as chunks by place, each under the title; blank ones are none."""
    heading = f"{document.title}\n" if document.title else ""
    chunks, at = {}, len(heading)
    for place, text in enumerate(texts):
        start = document.plain.index(text, at)
        at = start + len(text)
        if text.strip():
            start = at - len(text.lstrip())
            chunks[place] = Chunk.of(document, "plain", start, start + len(text.strip()), heading)
    return chunks


def gold_chunk(chunk: Chunk) -> Gold:
    """The gold label of a whole chunk."""
    return Gold(chunk.document, chunk.id, chunk.format, chunk.start, chunk.end)


def lettered(options: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """The options under A, B, C and so on; `MOST_LETTERS` at most."""
    return tuple((chr(ord("A") + at), option) for at, option in enumerate(options))


def distinct(id: str, seen: Counter[str]) -> str:
    """The id, or with `~2`, `~3` and so on where it was seen before."""
    seen[id] += 1
    return id if seen[id] == 1 else f"{id}~{seen[id]}"
