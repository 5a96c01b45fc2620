"""Late interaction: every token of the query against every token of the passage."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from documents.types import digest
from retrieval.loading import Precision
from retrieval.models import MINILM, find_model
from retrieval.rerankers.base import Reranker
from retrieval.rerankers.tokens import TokenVectors, token_vectors
from retrieval.types import Aids

if TYPE_CHECKING:
    from retrieval.embedder import Matrix

_WHAT = "reranking model"
_GROUP = 128
"""Passages whose token vectors are in memory together, beside those that are kept: 30 MB of 384 numbers."""
_NOTHING = -1.0  # the score of a passage without a token: no cosine is lower


class LateInteraction(Reranker):
    """The mean over the query's tokens of each one's highest cosine with a token of the passage (MaxSim).

        score(q, d) = 1/|q| sum_i max_j q_i . d_j

    with unit vectors q_i and d_j of the tokens (Khattab and Zaharia, "ColBERT", SIGIR 2020, equation 3, where it is
    the sum, which gives the same order). A passage that is longer than the model's window is read by windows, and its
    tokens are those of all of them. A query is read as far as the window goes.

    Made for models that were trained for it, such as `lightonai/LateOn` or `answerdotai/answerai-colbert-small-v1`,
    which are read as they were saved. Any other sentence-transformers model, as the default, was trained for one vector
    a text: its last layer's token vectors are compared then, and what that gives has to be measured.

    Attributes:
        model: a folder, or the hub's name, found as embedders are.
        precision: of the model's computation.
        keep: whether the token vectors of passages are kept in the user's cache, so that the next process need not
            compute them: some 0.2 MB an abstract, which nothing deletes. It changes no score.
    """

    kind: Literal["late_interaction"] = "late_interaction"
    model: str = MINILM
    precision: Precision = "float32"
    keep: bool = False

    def open(self, aids: Aids) -> MaxSim:
        return MaxSim(token_vectors(find_model(self.model, _WHAT), self.precision, self.keep))

    def identity(self) -> str:
        return f"late_interaction {digest(self.precision, find_model(self.model, _WHAT).identity)}"


class MaxSim:
    """Scores passages by late interaction."""

    def __init__(self, vectors: TokenVectors) -> None:
        self._vectors = vectors

    def scores(self, queries: Sequence[str], texts: Sequence[Sequence[str]]) -> list[list[float]]:
        """From -1 to 1. Each different text is embedded once, however many queries it is a candidate of.

        Raises:
            ModelError: the model cannot be loaded.
        """
        readers: dict[str, list[int]] = {}
        for place, own in enumerate(texts):
            for text in dict.fromkeys(own):
                readers.setdefault(text, []).append(place)
        asked = self._vectors.queries(queries) if readers else []
        scored: dict[tuple[int, str], float] = {}
        order = sorted(readers, key=len)
        for first in range(0, len(order), _GROUP):
            group = order[first:first + _GROUP]
            for text, passage in zip(group, self._vectors.passages(group), strict=True):
                places = readers[text]
                found = maxsim([asked[place] for place in places], passage)
                scored |= {(place, text): score for place, score in zip(places, found, strict=True)}
        return [[scored[place, text] for text in own] for place, own in enumerate(texts)]


def maxsim(queries: Sequence[Matrix], passage: Matrix) -> list[float]:
    """The score of one passage for each query, as the class above has it.

    Args:
        queries: unit vectors of the tokens, each of shape (tokens, dimension), at least one token.
        passage: the same of the passage, in whatever precision.
    """
    import numpy as np

    if not len(passage):
        return [_NOTHING] * len(queries)
    nearest = (np.concatenate(queries) @ passage.astype(np.float32).T).max(axis=1)
    counts = [len(query) for query in queries]
    sums = np.add.reduceat(nearest, np.cumsum([0, *counts[:-1]]))
    scores: list[float] = (sums / counts).tolist()
    return scores
