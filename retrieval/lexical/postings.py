"""Postings: which chunks hold which tokens, and what each token adds to a chunk's score, by bm25s."""
from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from retrieval.lexical.tokens import Tokenizer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Scores = NDArray[np.float32]

Method = Literal["lucene", "robertson", "atire", "bm25l", "bm25+"]


@dataclass(frozen=True, slots=True)
class Weights:
    """How BM25 weighs a token; see `retrieval.retrievers.bm25`."""

    method: Method
    k1: float
    b: float
    delta: float


class Postings:
    """The scores of every token in every chunk that holds it, computed once. Searching is thread-safe.

    Attributes:
        scorer: None where no chunk has a token.
    """

    def __init__(self, scorer: Any) -> None:
        self.scorer = scorer

    @classmethod
    def build(cls, texts: Iterable[str], tokenizer: Tokenizer, weights: Weights) -> Postings:
        """Of the tokens of all texts, numbers alone are in memory: four bytes for each."""
        import bm25s

        vocabulary: dict[str, int] = {}
        held = [array("i", [vocabulary.setdefault(token, len(vocabulary)) for token in tokens])
                for tokens in tokenizer.tokens(texts)]
        if not vocabulary:
            return cls(None)
        scorer = bm25s.BM25(k1=weights.k1, b=weights.b, delta=weights.delta, method=weights.method)
        scorer.index(bm25s.tokenization.Tokenized(ids=held, vocab=vocabulary), create_empty_token=False,
                     show_progress=False)
        return cls(scorer)

    def best(self, tokens: Sequence[str], k: int, among: Scores | None = None) -> list[tuple[int, float]]:
        """At most `k` rows that hold any of the tokens, with their score, best first, then by row.

        A token that stands twice counts twice.

        Args:
            among: 1 for the rows that may be found and 0 for the others, shape (chunks,); None for all.
        """
        import numpy as np

        ids = self.scorer.get_tokens_ids(tokens) if self.scorer else []
        if not ids or k < 1:
            return []
        scores: Scores = self.scorer.get_scores_from_ids(ids, weight_mask=among)
        rows = np.flatnonzero(scores > self._without(ids))
        if len(rows) > k:
            found = scores[rows]
            rows = rows[found >= np.partition(found, len(found) - k)[len(found) - k]]
        best = rows[np.argsort(-scores[rows], kind="stable")[:k]]
        return list(zip(best.tolist(), scores[best].tolist(), strict=True))

    def _without(self, ids: Sequence[int]) -> float:
        """The score of a chunk that holds none of the tokens: BM25L and BM25+ give it some."""
        if self.scorer.nonoccurrence_array is None:
            return 0.0
        return float(self.scorer.nonoccurrence_array[ids].sum())
