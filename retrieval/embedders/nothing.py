"""No embedder: chunks that are found by their words alone need no model, and no time to embed."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from documents.chunkers.spans import Span
from documents.errors import SettingsError
from retrieval.embedders.settings import Nothing
from retrieval.types import Matrix


class NoEmbedder:
    """Gives every passage the same vector, so that nothing has to be loaded, and no query one."""

    settings = Nothing()
    name = identity = "none"
    dimension = 1
    window = 1 << 20

    def windows(self, texts: Sequence[str], header: str = "") -> list[list[Span]]:
        """Return one span for each text, which has all of it."""
        return [[(0, len(text))] for text in texts]

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        """Raise SettingsError: there is nothing to compare a query with."""
        raise SettingsError("this was indexed with embedder: none, so only bm25 finds anything; name another embedder "
                            "to search by vectors")

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """Return ones, float32 of shape (texts, 1)."""
        return np.ones((len(texts), 1), np.float32)
