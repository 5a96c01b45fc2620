"""Late interaction as the first stage: compare the query with every passage of a small collection."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ragbed.documents.errors import SettingsError
from ragbed.experiments.guests.learned_retrievers.late_interaction import LateInteraction, MaxSim
from ragbed.retrieval.model_files import MINILM, Precision
from ragbed.retrieval.types import DECIMALS, Collection, Hit, RerankerDeps, RetrieverKind

MAX_CHUNKS = 20_000  # about 4 GB of token vectors


class LateInteractionSearch(RetrieverKind):
    """Ranks chunks by late interaction (ColBERT), without another retriever before it.

    Every passage is compared, so this is for pools and small collections, up to 20,000 chunks. For larger ones, use
    {kind: reranked, of: fused, with: late_interaction}. The score is that of the reranker of the same name. Token
    vectors of passages are stored in the cache.

    Attributes:
        model: a folder or hub name; preferably of a model that was trained for late interaction.
        precision: precision of the computation.
    """

    kind: Literal["late_interaction"] = "late_interaction"
    model: str = MINILM
    precision: Precision = "float32"

    @property
    def embeds(self) -> bool:
        return False

    def open(self, collection: Collection, deps: RerankerDeps) -> LateInteractionRetriever:
        """Open the retriever. Raises SettingsError if the collection has too many chunks."""
        if len(collection.chunks) > MAX_CHUNKS:
            raise SettingsError(f"late_interaction compares every chunk, and this collection has "
                                f"{len(collection.chunks)}, more than {MAX_CHUNKS}; use {{kind: reranked, of: fused, "
                                "with: late_interaction}")
        return LateInteractionRetriever(collection, self._scorer.open(deps))

    def identity(self) -> str:
        return self._scorer.identity()

    @property
    def _scorer(self) -> LateInteraction:
        return LateInteraction(model=self.model, precision=self.precision, keep=True)


@dataclass(frozen=True, slots=True)
class LateInteractionRetriever:
    """Late interaction over a collection."""

    collection: Collection
    scorer: MaxSim

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return the hits of each query, ties by row. Raises ModelError if the model cannot be loaded."""
        among = self.collection.among
        rows = [row for row in range(len(self.collection.chunks)) if among is None or among[row]]
        every = list(self.collection.texts())
        texts = [every[row] for row in rows]
        found = []
        for scores in self.scorer.scores(queries, [texts] * len(queries)):
            rounded = np.round(np.asarray(scores, np.float64), DECIMALS)
            best = np.argsort(-rounded, kind="stable")[:k].tolist()
            found.append([Hit(self.collection.chunks[rows[place]], float(rounded[place]), rank, "late_interaction")
                          for rank, place in enumerate(best, 1)])
        return found
