"""Late interaction: every token of the query against every token of the passage."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from documents.types import digest
from retrieval.models.finding import MINILM, find_model
from retrieval.models.loading import Precision
from retrieval.rerankers.base import Reranker
from retrieval.rerankers.tokens import TokenVectors, is_multi, token_store, token_vectors
from retrieval.storage.cache import VectorStore
from retrieval.types import Aids

if TYPE_CHECKING:
    from retrieval.embedder import Matrix

_WHAT = "reranking model"
_GROUP = 200_000
"""Characters whose token vectors are computed together, and are in memory beside those that are kept: some 80 MB."""
_NOTHING = -1.0  # the score of a passage without a token: no cosine is lower


class LateInteraction(Reranker):
    """The mean over the query's tokens of each one's highest cosine with a token of the passage (MaxSim).

        score(q, d) = sum_i max_j q_i . d_j / sum_i |q_i|

    with a vector q_i of each token of the query, and a unit vector d_j of each of the passage. Where the q_i are unit
    vectors too, it is the published sum over the number of tokens, which gives the same order (Khattab and Zaharia,
    "ColBERT", SIGIR 2020, equation 3). A passage that is longer than the model's window is read by windows, and its
    tokens are those of all of them. A query is read as far as the window goes.

    Made for models that were trained for it, such as `lightonai/LateOn` or `answerdotai/answerai-colbert-small-v1`,
    which are read as they were saved. Any other sentence-transformers model, as the default, was trained for one vector
    a text: of its last layer every token is compared, and one of the query counts by its vector's length, as in the
    mean that the model was trained for. Its score then counts for half, beside that of before. This was chosen on the
    809 training claims of SciFact with MiniLM over `fused`, whose nDCG@10 is 0.733: alone it has 0.731 (with unit
    vectors 0.724, p = 0.03), by half 0.746. Leaving out special tokens or punctuation made no difference to speak of.

    Attributes:
        model: a folder, or the hub's name, found as embedders are.
        precision: of the model's computation.
        keep: whether the token vectors of passages are kept in the user's cache, so that the next process need not
            compute them: some 0.2 MB an abstract, deleted when nobody used them for 90 days. It changes
            no score.
    """

    kind: Literal["late_interaction"] = "late_interaction"
    model: str = MINILM
    precision: Precision = "float32"
    keep: bool = False

    def open(self, aids: Aids) -> MaxSim:
        folder = find_model(self.model, _WHAT)
        return MaxSim(token_vectors(folder, self.precision), token_store(folder, self.precision) if self.keep else None)

    def weight(self) -> float:
        """A half for a model that was not trained for it, see above."""
        return 1.0 if is_multi(find_model(self.model, _WHAT)) else 0.5

    def identity(self) -> str:
        return f"late_interaction {digest(self.precision, find_model(self.model, _WHAT).identity)}"


class MaxSim:
    """Scores passages by late interaction.

    Args:
        store: where the token vectors of passages are kept; None keeps them in memory alone.
    """

    def __init__(self, vectors: TokenVectors, store: VectorStore | None = None) -> None:
        self._vectors, self._store = vectors, store

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
        for group in _groups(sorted(readers, key=len)):
            for text, passage in zip(group, self._vectors.passages(group, self._store), strict=True):
                places = readers[text]
                found = maxsim([asked[place] for place in places], passage)
                scored |= {(place, text): score for place, score in zip(places, found, strict=True)}
        return [[scored[place, text] for text in own] for place, own in enumerate(texts)]


def _groups(texts: Sequence[str]) -> Iterator[list[str]]:
    """The texts in their order, some at a time."""
    group: list[str] = []
    size = 0
    for text in texts:
        if group and size + len(text) > _GROUP:
            yield group
            group, size = [], 0
        group.append(text)
        size += len(text)
    if group:
        yield group


def maxsim(queries: Sequence[Matrix], passage: Matrix) -> list[float]:
    """The score of one passage for each query, as `LateInteraction` has it.

    Args:
        queries: vectors of the tokens, each of shape (tokens, dimension), at least one token.
        passage: unit vectors of the passage's, in whatever precision.
    """
    import numpy as np

    if not len(passage):
        return [_NOTHING] * len(queries)
    tokens = np.concatenate(queries)
    starts = np.cumsum([0, *map(len, queries[:-1])])
    nearest = (tokens @ passage.astype(np.float32).T).max(axis=1)
    sums, lengths = (np.add.reduceat(of, starts) for of in (nearest, np.linalg.norm(tokens, axis=1)))
    scores: list[float] = (sums / lengths).tolist()
    return scores
