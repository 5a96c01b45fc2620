"""What stands in front of chunks where they are searched: a header of each document, or nothing."""
from __future__ import annotations

from collections.abc import Mapping

from retrieval.types import Collection


def headers(collection: Collection) -> Mapping[str, str]:
    """The header of each document that has one. Reads every chunk once."""
    found: dict[str, str] = {}
    for chunk, text in zip(collection.chunks, collection.texts(), strict=True):
        if chunk.document not in found and len(text) > len(chunk.content) and text.endswith(chunk.content):
            found[chunk.document] = text[:len(text) - len(chunk.content)]
    return found
