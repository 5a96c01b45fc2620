"""Reranker: the settings of one way to score candidates against a query."""
from __future__ import annotations

from retrieval.kinds import Named
from retrieval.types import Aids, Scorer


class Reranker(Named):
    """Settings of a reranker."""

    def open(self, aids: Aids) -> Scorer:
        """What scores. Nothing large is loaded before the first candidates come.

        Raises:
            UserError: a model or package that it needs is not to be had.
        """
        raise NotImplementedError

    def weight(self) -> float:
        """What its score should count for beside the score of before, where the settings do not say: all."""
        return 1.0

    def identity(self) -> str:
        """Tells rerankers apart that score otherwise: their settings, and what they use.

        Raises:
            UserError: a model that it needs is not to be had.
        """
        raise NotImplementedError
